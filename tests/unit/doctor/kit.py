"""A namespace as the doctor sees it, and a clock that moves only while a caller waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from solocron.clock import SECOND
from solocron.doctor.sight import Sight
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life, Session
from solocron.runtime import Flag, Threads
from solocron.schedules import zone_data_version
from solocron.stores.contract import Check, Doc, Named, Store
from solocron.version import __version__
from tests.unit.model.one_job import T0, OneJob

__all__ = ["NOW", "PatientRuntime", "dead", "job", "levels", "only", "put", "session", "sight", "silent"]

NOW = T0 + 3600 * SECOND


def session(node: str = "a", *, left: float = 12, now: int = NOW, **options: Any) -> Session:
    """A live session with so many seconds left of its lease of 15."""
    given: dict[str, Any] = {
        "host": "host",
        "pid": 1,
        "handlers": ("work",),
        "version": __version__,
        "zone_data": zone_data_version(),
        "lease": 15 * SECOND,
        "started_at": T0,
    }
    expires_at = now + round(left * SECOND)
    return Session(**{"name": f"session of {node}", "node": node, "expires_at": expires_at, **given, **options})


def silent(node: str = "a", *, since: float = 1, **options: Any) -> Session:
    return session(node, left=-since, **options)


def dead(node: str = "a", *, since: float = 1) -> Session:
    ended = NOW - round(since * SECOND)
    return session(node, left=-since, state=Life.DEAD, ended_at=ended, reason="not renewed in time")


def job(name: str = "work", *, held_by: str | None = None, late: float = 0, **options: Any) -> Job:
    """A job every minute, its next slot a minute away, or due for so many seconds; perhaps held by a node."""
    one = OneJob("1m", **options).at(3600)
    if held_by is not None:
        one.claims(held_by)
    return replace(one.job, name=name, due_at=NOW - round(late * SECOND) if late else NOW + 60 * SECOND)


def sight(*docs: Job | Session, **options: Any) -> Sight:
    jobs = tuple(doc for doc in docs if isinstance(doc, Job))
    sessions = tuple(doc for doc in docs if isinstance(doc, Session))
    holders = frozenset(hold.session for one in jobs for hold in one.active)
    return Sight(**{"now": NOW, "jobs": jobs, "sessions": sessions, "holders": holders, **options})


def only(checks: Iterator[Check]) -> Check:
    """The one line that there is."""
    (found,) = checks
    return found


def levels(checks: Iterator[Check]) -> list[str]:
    return [check.level for check in checks]


def put(store: Store, *docs: Doc) -> None:
    """Write documents as they are."""
    for doc in docs:
        kind = Kind.JOB if isinstance(doc, Job) else Kind.SESSION
        store.update(Named(kind, (doc.name,)), _to(doc))


def _to(doc: Doc) -> Callable[[Any, int], Change]:
    return lambda _, now: Change(doc)


class _Moving:
    """An event that is never set: waiting for it moves the clock."""

    def __init__(self, runtime: PatientRuntime) -> None:
        self._runtime = runtime

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool:
        return False

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self._runtime.waits(timeout)
        return False


class PatientRuntime(Threads):
    """Boot time moves by waiting, and `waited` is called each time."""

    def __init__(self, waited: Callable[[float], None] = lambda seconds: None) -> None:
        super().__init__(clock=self)
        self._boot = 1_000.0
        self._waited = waited

    def boot(self) -> float:
        return self._boot

    def wall(self) -> int:
        return NOW

    def waits(self, seconds: float) -> None:
        self._boot += seconds
        self._waited(seconds)

    def event(self) -> Flag:
        return _Moving(self)
