"""Read the documents of a namespace: jobs and small documents in pages, sessions at once.

A listing must not hold a whole table in one reply, so `All` takes a limit; these are the only loops over its pages.
Every document is given as its own type, so that callers need no `isinstance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from solocron.model.change import Kind, SmallDocument
from solocron.model.documents import namespace
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.documents.session import Session, is_live
from solocron.stores.contract import All, Doc, HeldByAny, Mark, Named, RecentSessions, Store, Which

__all__ = [
    "PAGE",
    "find_job",
    "find_session",
    "iter_documents",
    "iter_job_pages",
    "iter_jobs",
    "iter_jobs_below",
    "iter_marked",
    "iter_names",
    "live_sessions",
    "read_documents",
    "read_held",
    "read_jobs",
    "read_namespace",
    "read_page",
    "read_pauses",
    "read_sessions",
    "sessions_since",
]

PAGE = 1_000
_REFILL = 100
"""Documents to read at least to fill a page up: one by one, a store full of undecodable ones would take forever."""


def iter_job_pages(store: Store, *, size: int = PAGE, after: str = "") -> Iterator[list[Job]]:
    """Yield every job after a name, by name, a page at a time, for callers that write between two pages."""
    for page in _pages(store, Kind.JOB, size, after):
        yield [doc for doc in page if isinstance(doc, Job)]


def iter_jobs(store: Store, *, size: int = PAGE, after: str = "") -> Iterator[Job]:
    """Yield every job after a name, by name; each page is read when the one before it is used up."""
    for page in iter_job_pages(store, size=size, after=after):
        yield from page


def iter_jobs_below(store: Store, prefix: str, *, size: int = PAGE, after: str = "") -> Iterator[Job]:
    """Yield the jobs after a name whose names begin with a prefix, that of the bare prefix included, by name."""
    if prefix > after:  # it does not come after itself
        yield from read_jobs(store, (prefix,))
    for job in iter_jobs(store, size=size, after=max(after, prefix)):
        if not job.name.startswith(prefix):
            return
        yield job


def iter_names(store: Store, kind: Kind, *, size: int = PAGE, after: str = "") -> Iterator[str]:
    """Yield the names of the documents of a kind after a name, in their order, without reading the documents."""
    while True:
        page = store.names(kind, after=after, limit=size)
        yield from page
        if len(page) < size:
            return
        after = page[-1]


def iter_marked(store: Store, mark: Mark, *, size: int = PAGE, after: str = "") -> Iterator[str]:
    """Yield the names of the jobs after a name that bear one of these marks, in their order."""
    while True:
        page = store.marked(mark, after=after, limit=size)
        yield from page
        if len(page) < size:
            return
        after = page[-1]


def iter_documents(store: Store, kind: Kind, *, size: int = PAGE) -> Iterator[SmallDocument]:
    """Yield every small document of a kind by name, as `iter_jobs` does for jobs."""
    for page in _pages(store, kind, size):
        for doc in page:
            if isinstance(doc, SmallDocument):
                yield doc


def read_namespace(store: Store) -> namespace.Namespace | None:
    """Read the document of the namespace; None if no node has written it yet."""
    found = store.read(Named(Kind.NAMESPACE, (namespace.NAME,)))
    return namespace.read(found[0]) if found else None


def read_pauses(store: Store) -> tuple[ScopedPause, ...]:
    """Read the pauses of many jobs at once: those that stand, and the latest of those that are over."""
    known = read_namespace(store)
    return () if known is None else known.pauses


def read_documents(store: Store, which: Which) -> list[SmallDocument]:
    """Read the small documents of one selection."""
    return [doc for doc in store.read(which) if isinstance(doc, SmallDocument)]


def read_jobs(store: Store, names: Sequence[str]) -> list[Job]:
    """Read the jobs of these names; a name without a job is left out."""
    return [doc for doc in store.read(Named(Kind.JOB, tuple(names))) if isinstance(doc, Job)]


def read_held(store: Store) -> list[Job]:
    """Read the jobs that any session holds."""
    return [doc for doc in store.read(HeldByAny()) if isinstance(doc, Job)]


def find_job(store: Store, name: str) -> Job | None:
    """Read one job; None if there is none of that name."""
    return next(iter(read_jobs(store, (name,))), None)


def read_sessions(store: Store) -> list[Session]:
    """Read every session that is kept: live, dead and swept."""
    return [doc for doc in store.read(All(Kind.SESSION)) if isinstance(doc, Session)]


def sessions_since(store: Store, since: int | None = None) -> list[Session]:
    """Read the sessions that are not swept, and with `since`, those that were swept but ended then or later."""
    return [doc for doc in store.read(RecentSessions(since)) if isinstance(doc, Session)]


def find_session(store: Store, name: str) -> Session | None:
    """Read one session; None if there is none of that name."""
    return next((doc for doc in store.read(Named(Kind.SESSION, (name,))) if isinstance(doc, Session)), None)


def live_sessions(store: Store) -> list[Session]:
    """Read the sessions whose lease has not run out by the store's clock.

    The clock is read after the sessions: a session counted as live was so at the time it was read, or later.
    """
    found = sessions_since(store)
    now = store.clock()
    return [session for session in found if is_live(session, now=now)]


def read_page(which: Which, read: Callable[[Which], Sequence[tuple[str, Doc | None]]]) -> tuple[Doc, ...]:
    """Read a selection for a store: fill a page up with what follows where documents cannot be decoded.

    `read` returns names and documents in order, None for a document that cannot be decoded. A caller takes a page that
    is not full for the last one. If undecodable documents only shortened it, one of them would hide every document
    after its page.
    """
    found: list[Doc] = []
    limit = which.limit if isinstance(which, All) else None
    while True:
        rows = read(which)
        found += (doc for _, doc in rows if doc is not None)
        if limit is None or not isinstance(which, All) or len(found) >= limit or len(rows) < (which.limit or 0):
            return tuple(found[:limit])
        which = replace(which, after=rows[-1][0], limit=max(limit - len(found), _REFILL))


def _pages(store: Store, kind: Kind, size: int, after: str = "") -> Iterator[tuple[Doc, ...]]:
    while True:
        page = store.read(All(kind, after=after, limit=size))
        yield page
        if len(page) < size:
            return
        after = page[-1].name
