"""`make_run`: a run for a unit test that calls a job's function itself, without a scheduler, a node or a database.

    assert send_invoice(make_run(payload={"customer": 42})) == "sent"

The run's effects (`once`, `step`, `sleep`) act on a store in memory that only this run has.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict, Unpack

from solocron.client.instants import check_instant
from solocron.clock import to_us
from solocron.dispatch.contract import Stop
from solocron.effects.locks.lock import LockPlace
from solocron.effects.verbs import Attempt, RunVerbs
from solocron.errors import ConflictError, InvalidError
from solocron.jobs.checks import check_name, check_payload
from solocron.model.change import Kind
from solocron.model.documents.run import Origin, Shards, key_of, run_id
from solocron.model.documents.session import Session, begin
from solocron.model.policy import whole
from solocron.runs.async_run import AsyncRun
from solocron.runs.base import BaseRun, Previous
from solocron.runs.making import make_effects
from solocron.runs.run import Run
from solocron.runtime import Threads
from solocron.stores.contract import Named
from solocron.stores.memory import MemoryStore

__all__ = ["RunFacts", "make_async_run", "make_run"]

_SESSION = "made for a test"
_STOPS = {"cancel": "it was asked to stop", "timeout": "still running at its deadline", "lost": "its lease is lost"}
_NONE = "No run was made."
_FOREVER = to_us(datetime(9000, 1, 1, tzinfo=UTC))


class RunFacts(TypedDict, total=False):
    """The facts of a made run; what is left out has a plain default."""

    payload: Any
    """JSON, as the store would give it back."""
    slot: datetime
    """Aware; by default now."""
    attempt: int
    fence: int
    deadline: datetime | None
    shard: int | str | None
    shards: Shards | None
    previous: Previous | None
    stop: Literal["cancel", "timeout", "lost"] | None
    """Makes a run that must stop: `check` raises, and `cancelled` is true."""
    report: Callable[[dict[str, Any]], None]
    """Gets what `progress` and `track` report."""


def make_run(job: str = "job", **facts: Unpack[RunFacts]) -> Run:
    """Make the run of a plain function."""
    return Run(**_arguments(job, facts))


def make_async_run(job: str = "job", **facts: Unpack[RunFacts]) -> AsyncRun:
    """Make the run of a coroutine."""
    return AsyncRun(**_arguments(job, facts))


def _arguments(job: str, facts: RunFacts) -> dict[str, Any]:
    """Check the facts, and return the arguments of a run."""
    check_name(job, "job")
    unknown = sorted(facts.keys() - RunFacts.__annotations__.keys())
    if unknown:
        raise InvalidError(f"a run has no {unknown[0]!r}; known are {', '.join(RunFacts.__annotations__)}. {_NONE}")
    slot, payload, stop = facts.get("slot", datetime.now(UTC)), facts.get("payload"), facts.get("stop")
    attempt, fence, shard = facts.get("attempt", 1), facts.get("fence", 1), facts.get("shard")
    for what, moment in (("slot", slot), ("deadline", facts.get("deadline"))):
        if moment is not None:
            check_instant(what, moment, undone="no run was made")
    for what, number in (("attempt", attempt), ("fence", fence)):
        if not whole(number) or number < 1:
            raise InvalidError(f"{what}={number!r}: give a whole number from 1 up. {_NONE}")
    if stop is not None and stop not in _STOPS:
        raise InvalidError(f"stop={stop!r} is not known; choose {', '.join(_STOPS)}. {_NONE}")
    reason = None if stop is None else Stop(stop, _STOPS[stop])
    return {
        "id": run_id(job, 0, Origin.SCHEDULE, to_us(slot)),
        "job": job,
        "slot": slot,
        "attempt": attempt,
        "fence": fence,
        "key": key_of(job, Origin.SCHEDULE, to_us(slot), None, shard),
        "node": "test",
        "deadline": facts.get("deadline"),
        "payload": None if payload is None else check_payload(payload, whose=job),
        "previous": facts.get("previous"),
        "stopped": lambda: reason,
        "report": facts.get("report", _unreported),
        "shard": shard,
        "shards": facts.get("shards"),
        "effects": lambda run: _effects(run, job),
    }


def _unreported(progress: dict[str, Any]) -> None:
    """Let the progress of a body go: the test did not ask for it."""


def _effects(run: BaseRun, scope: str) -> RunVerbs:
    """Make the effects of a run on a store in memory, under a session that lives as long as the test."""
    store = MemoryStore()
    session = Session(name=_SESSION, node=run.node, host="test", pid=0, lease=_FOREVER)
    store.update(Named(Kind.SESSION, (_SESSION,)), lambda doc, now: begin(doc, session, now=now))
    place = LockPlace(store, Threads(), run.node, _no_session, ward=lambda: None)

    def make(attempt: Attempt) -> RunVerbs:
        return RunVerbs(attempt, place)

    return make_effects(make, _SESSION, scope, None, run)  # no ward: a store that ends with the test cannot go back


def _no_session() -> Any:
    raise ConflictError("the effects of this run are tied to the session that was made for it.")
