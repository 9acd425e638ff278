"""Names of jobs and runs for a shell that completes a word.

It only reads, waits for two seconds at most, and prints nothing at all where the store is away: a shell would show the
error in the middle of the line that is being typed.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solocron.stores.contract import Store

__all__ = ["KINDS", "candidates"]

KINDS = ("jobs", "runs")

_PATIENCE = 2.0
"""Seconds after which a store counts as away."""
_MOST = 200
"""Names that are offered; no terminal shows more."""


def candidates(args: Namespace, kind: str, prefix: str) -> list[str]:
    """Return names that begin with the prefix; none if the store does not answer in time."""
    from solocron.cli.opening import named_store

    found: list[str] = []
    with suppress(Exception):
        store = named_store(args)
        _within_patience(lambda: found.extend(_looked_up(store, kind, prefix)))
    return found


def _within_patience(call: Callable[[], None]) -> None:
    def look() -> None:
        with suppress(Exception):
            call()

    # A thread that is left behind when the time is over: no driver can be stopped in the middle of a connect.
    looking = Thread(target=look, daemon=True, name="completion")
    looking.start()
    looking.join(_PATIENCE)


def _looked_up(store: Store, kind: str, prefix: str) -> list[str]:
    try:
        store.open(read_only=True)
        found = dict[str, None]()
        for name in _jobs(store, prefix) if kind == "jobs" else _runs(store, prefix):
            found[name] = None
            if len(found) == _MOST:
                break
        return list(found)
    finally:
        store.close()


def _jobs(store: Store, prefix: str) -> Iterator[str]:
    from solocron.stores.paging import iter_jobs, read_jobs

    exact = read_jobs(store, (prefix,)) if prefix else []
    for job in chain(exact, iter_jobs(store, size=_MOST, after=prefix)):
        if not job.name.startswith(prefix):
            return
        if not job.removed:
            yield job.name


def _runs(store: Store, prefix: str) -> Iterator[str]:
    """Yield what runs and waits, then the newest on record; of one job, once its name is complete."""
    from solocron.model.documents.run import job_of
    from solocron.stores.contract import Query
    from solocron.stores.paging import read_held, read_jobs

    job = job_of(prefix)
    for doc in read_jobs(store, (job,)) if job else read_held(store):
        open_runs = [hold.run for hold in doc.active] + [waiting.run for waiting in doc.waiting_runs]
        yield from (run for run in open_runs if run.startswith(prefix))
    for record in store.history(Query(job=job or None, limit=5 * _MOST)).records:
        if record.run.startswith(prefix):
            yield record.run
