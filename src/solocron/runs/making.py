"""Builds the run that an execution gives to its function; the engine knows it only as a factory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, partial

from solocron.clock import from_us
from solocron.effects.verbs import Attempt, RunVerbs
from solocron.engine.execution import Execution
from solocron.model.documents.run import key_of
from solocron.runs.async_run import AsyncRun
from solocron.runs.base import BaseRun, Previous
from solocron.runs.run import Run
from solocron.schedules.zone import load_zone
from solocron.stores.ward import Ward

__all__ = ["MakeVerbs", "make_run"]

MakeVerbs = Callable[[Attempt], RunVerbs]


def make_run(execution: Execution, *, verbs: MakeVerbs) -> Run | AsyncRun:
    """Build the run of one attempt. Its effects are made when they are first used: many runs have none."""
    job, hold, zone, last = execution.job, execution.running.hold, execution.zone, execution.job.last
    return run_class(execution.handler.is_async)(
        id=hold.run,
        job=job.name,
        slot=_moment(hold.slot, zone),
        attempt=hold.attempt,
        fence=hold.fence,
        key=key_of(job.name, hold.origin, hold.slot, hold.request, hold.shard),
        node=hold.node,
        deadline=None if hold.deadline is None else _moment(hold.deadline, zone),
        payload=job.definition.payload if hold.payload is None else hold.payload,
        previous=None
        if last is None
        else Previous(
            last.run,
            _moment(last.slot, zone),
            last.attempt,
            last.status,
            _moment(last.finished_at, zone),
            last.error,
        ),
        stopped=execution.stopped,
        report=execution.running.report,
        shard=hold.shard,
        shards=hold.shards,
        effects=partial(make_effects, verbs, execution.running.session, execution.scope, execution.ward),
    )


def run_class(is_async: bool) -> type[Run | AsyncRun]:
    """Return the class for a plain function or for a coroutine."""
    return AsyncRun if is_async else Run


def make_effects(verbs: MakeVerbs, session: str, scope: str, ward: Ward | None, run: BaseRun) -> RunVerbs:
    """Make the verbs with I/O of a run, under the session, the fence and the ward of its attempt."""
    return verbs(
        Attempt(
            run=run.id,
            node=run.node,
            session=session,
            fence=run.fence,
            scope=scope,
            check=run.check,
            lease=run._check_lease,
            ward=ward,
        )
    )


@lru_cache(maxsize=256)  # jobs that fall due together share their slot
def _moment(us: int, zone: str) -> datetime:
    return from_us(us).astimezone(load_zone(zone).info)
