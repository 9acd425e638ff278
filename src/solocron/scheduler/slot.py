"""A process that lives for the slots of one job, or for one message: what a Pod of Kubernetes does."""

from __future__ import annotations

from math import inf

from solocron import surroundings
from solocron.clock import SECOND
from solocron.dispatch.carrier import Message
from solocron.engine.node import Node
from solocron.errors import NotFoundError
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import job_of
from solocron.model.documents.session import Session
from solocron.scheduler.inline import Here
from solocron.scheduler.scheduler import Scheduler
from solocron.stores.contract import Named
from solocron.views import RunView

__all__ = ["run_due_slots", "run_message"]

_LOOK = 0.5
"""Seconds between two looks at whether this process was told to stop."""
_SOON = 0.05


def run_message(scheduler: Scheduler, run: str, attempt: int) -> RunView | None:
    """Pick one attempt up and carry it out; None if it was picked up before, has ended, or was never handed over.

    What its body prints is kept with the run, and goes where it went before.
    """
    namespace = scheduler._core.store.namespace
    message = Message.read({"namespace": namespace, "job": job_of(run), "run": run, "attempt": attempt})
    here = Here.on_thread()
    here.keep_output()
    try:
        return scheduler._carry_out(message, here)
    finally:
        scheduler._end_guest()


def run_due_slots(scheduler: Scheduler, name: str) -> list[RunView]:
    """Run what is due of one job, and its retries; return the last attempts.

    A run that a process was killed in is taken over once its lease and its backoff are over. One that another process
    is in the middle of is left to it. Ends early, with what has ended, if the scheduler is stopped meanwhile.
    """
    surroundings.refuse_node(passing=True)
    core = scheduler._core
    with scheduler._ticking(None) as (node, finished):
        _refuse_unknown(scheduler, name)
        waiting = _Waiting(scheduler, node, name)
        while core.running_node is node:
            node.tick(only=name)
            seconds = waiting.seconds({run for run, _ in finished})
            if seconds is None:
                break
            core.runtime.event().wait(min(max(seconds, _SOON), _LOOK))
    return [core.client.get_run(run) for run in dict.fromkeys(run for run, _ in finished)]


def _refuse_unknown(scheduler: Scheduler, name: str) -> None:
    """Refuse a job that does not exist, or whose function is not here."""
    core = scheduler._core
    handler = core.client.get_job(name).handler
    if handler not in core.registry.handlers:
        raise NotFoundError(
            f"{name} calls the handler {handler!r}, which this program does not have; nothing was run. Name the "
            "program that declares it."
        )


class _Waiting:
    """Decides how long to wait for a retry, or for the lease of a process that may have died."""

    def __init__(self, scheduler: Scheduler, node: Node, name: str) -> None:
        self._store = scheduler._core.store
        self._node = node
        self._name = name
        self._expiry: dict[str, int] = {}
        """When the session of each holder was to expire at the first look: one that is renewed lives."""

    def seconds(self, own: set[str]) -> float | None:
        """Return the seconds to wait; None if nothing is to be waited for."""
        found = self._store.read(Named(Kind.JOB, (self._name,)))
        job = found[0] if found else None
        if not isinstance(job, Job) or job.removed or job.paused is not None:
            return None
        now = self._store.clock()
        retries = [one for one in job.waiting_runs if one.tried and (one.crashed or one.run in own)]
        retry = min((one.ready_at for one in retries), default=inf)
        ends = min(retry, self._silent_until(job))
        return None if ends == inf else max(0.0, (ends - now) / SECOND)

    def _silent_until(self, job: Job) -> float:
        """Return when the first lease ends whose holder has not been heard of since this process looks."""
        ours = self._node.attempts.lease.session
        holders = {hold.session for hold in job.active} - {ours}
        ends = inf
        for session in self._store.read(Named(Kind.SESSION, tuple(sorted(holders)))) if holders else ():
            if isinstance(session, Session):
                first = self._expiry.setdefault(session.name, session.expires_at)
                if session.expires_at == first:
                    ends = min(ends, first)
        return ends
