"""One write cache for every store: documents as this client wrote them last, and a time that the server has reached.

A node ends most runs from the very document that its claim left, renews a session that no other client writes, and
releases the locks that it took. What is kept here saves the read before such a write. None of it is believed: the write
is made only if the stored document still has the remembered mark, and if the server's clock is about where it is
expected. What is recalled can only be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from solocron.clock import MILLISECOND, SECOND
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life
from solocron.stores.contract import Doc, Named
from solocron.stores.drafts import Draft, Row, Selection

__all__ = ["WriteCache"]

_MOST = 2_000
"""Documents kept: more than a node runs at once. One that is used is dropped."""
_LOCKS_WITHIN = 20 * MILLISECOND
_BEHIND = 2 * MILLISECOND


class _Kept(NamedTuple):
    row: Row
    doc: Doc
    at: float
    """Boot time at which it was written."""


class WriteCache:
    """What one client remembers. Each step is one operation on a dictionary, so that threads need no lock."""

    def __init__(
        self, boot: Callable[[], float], lease: int, *, recalls: frozenset[Kind], jobs_within: int | None = None
    ) -> None:
        """`recalls`: the kinds that the store can write without a read. Times are in microseconds."""
        self._boot = boot
        self._lease = lease
        self._recalls = recalls
        # How far behind the server's clock the time of a decision may be: a small part of the margin of trust.
        self._within = {Kind.SESSION: lease // 50, Kind.JOB: jobs_within or lease // 50, Kind.LOCK: _LOCKS_WITHIN}
        self._kept: dict[tuple[Kind, str], _Kept] = {}
        self._observed: tuple[int, float] | None = None

    # --- time

    def observe(self, server: int) -> int:
        """Note the server's time, which it has just told; return it."""
        self._observed = (server, self._boot())
        return server

    @property
    def time(self) -> int | None:
        """A time that the server's clock has surely reached; None if it has not told one within a lease.

        No clock runs slower than another by more than a thousandth. Two milliseconds less than that, but never less
        than what the server told.
        """
        if self._observed is None:
            return None
        told, boot = self._observed
        passed = self._boot() - boot
        if passed * SECOND > self._lease:
            return None
        return max(told, told + int(passed * SECOND * 0.999) - _BEHIND)

    # --- documents

    def remember(self, drafts: Sequence[Draft], mark: Callable[[Draft], object], session: str | None) -> None:
        """Keep what was just written, where its next write will most likely come from this client.

        That is a job that was claimed (`session` tells), a live session that was written alone, and a lock that is
        held. `mark` returns the mark of a written document, None where it is not known.
        """
        if len(self._kept) >= _MOST:
            self._kept.clear()
        for one in drafts:
            key = (one.kind, one.name)
            self._kept.pop(key, None)
            doc = None if one.change is None else one.change.doc
            if doc is None or doc is one.doc or not self._is_kept(doc, session, alone=len(drafts) == 1):
                continue
            written = mark(one)
            if written is not None:
                self._kept[key] = _Kept(Row(one.name, written, one.fixed_now, one.state), doc, self._boot())

    def _is_kept(self, doc: Doc, session: str | None, *, alone: bool) -> bool:
        if isinstance(doc, Job):
            return session is not None and _comes_back_as_it_is(doc)
        if isinstance(doc, SmallDocument):
            return Kind.LOCK in self._recalls and doc.kind is Kind.LOCK and doc.body.get("token") is not None
        return alone and doc.state is Life.LIVE

    def recall(self, which: Named, *, whole: bool = False) -> Selection | None:
        """Return the documents that are remembered, at a time that the server has reached.

        With `whole`, all that are named or none, and only jobs with a single hold: where others hold a job too, they
        write it as well, and it is better to read it first.
        """
        now = self.time
        if now is None or which.kind not in self._recalls:
            return None
        oldest = self._boot() - self._lease / SECOND
        if whole and not all(self._is_ours(which.kind, name) for name in which.names):
            return None
        found: dict[str, Row | None] = {}
        for name in which.names:
            kept = self._kept.get((which.kind, name))  # `parsed` takes it
            if kept is not None and kept.at >= oldest:
                found[name] = kept.row
        if not found:
            return None
        return Selection(found, now, latest=now + self._within[which.kind])

    def _is_ours(self, kind: Kind, name: str) -> bool:
        kept = self._kept.get((kind, name))
        return kept is not None and (not isinstance(kept.doc, Job) or len(kept.doc.active) <= 1)

    def parsed(self, kind: Kind, row: Row) -> Doc | None:
        """Return the document of these very texts, once, if it is remembered: it need not be parsed again.

        Texts are compared, not marks: what a restored backup or another client wrote meanwhile is parsed as ever.
        """
        kept = self._kept.pop((kind, row.name), None)
        if kept is None or kept.row.state != row.state or kept.row.fixed != row.fixed:
            return None
        return kept.doc

    def forget(self) -> None:
        """Drop everything: another process goes on with it."""
        self._kept.clear()


def _comes_back_as_it_is(job: Job) -> bool:
    """Return whether parsing its texts would give an equal document, with no part that a body could change."""
    active = job.active
    if not active or job.waiting_runs or job.waiting_ranges or job.requests or job.extra:
        return False
    return all(hold.payload is None for hold in active)
