"""Bodies where their caller is: `run_now`, and what `tick(inline=True)` runs on.

Everything else is as in production: a session of its own, a claim with a fence, a record. Only the place of the body
differs, so that a test's transaction, its thread-local connection and its event loop are those of the body too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from solocron import surroundings
from solocron.client.refusals import error_of
from solocron.dispatch.contract import Dispatcher
from solocron.dispatch.inline import Ended, Inline, Observed
from solocron.engine.node import Node
from solocron.errors import Cancelled, ConflictError, InvalidError, NotFoundError, StaleFence, TimedOut
from solocron.events import Event
from solocron.jobs.checks import check_payload
from solocron.model.documents.job import Hold
from solocron.model.documents.run import Status
from solocron.model.refusals import Refusal
from solocron.model.transitions.claiming import Needs
from solocron.patched import check_threads
from solocron.scheduler.core import Core, running_loop
from solocron.scheduler.locks import LockRoom
from solocron.scheduler.starting import refuse_store_per_replica, refuse_unknown_calendars

__all__ = ["Here", "InlineOperations"]

_ENDS = ("finished", "refused", "handed back")


class Here:
    """The caller's thread, or its event loop, as the place where bodies run."""

    def __init__(self, inline: Inline | None, dispatchers: Mapping[str, Dispatcher]) -> None:
        self.inline = inline
        self.dispatchers = dispatchers
        self._observed: list[Observed] = []

    @classmethod
    def on_thread(cls) -> Here:
        """Return the caller's thread; coroutines run there on a loop of their own."""
        inline = Inline()
        functions, coroutines = inline.functions, inline.coroutines
        return cls(inline, {"thread": functions, "loop": coroutines, "process": functions})

    @classmethod
    def on_loop(cls, loop: Any) -> Here:
        """Return an event loop: coroutines are tasks of it, and functions are called on its thread."""
        from solocron.dispatch.eventloop import LoopDispatcher

        return cls(None, dict.fromkeys(("thread", "loop", "process"), LoopDispatcher(loop)))

    @classmethod
    def of_worker(cls, loop: Any) -> Here:
        """Return an event loop for coroutines, and the calling thread for functions, which would block the loop."""
        from solocron.dispatch.eventloop import LoopDispatcher

        inline = Inline()
        return cls(inline, {"thread": inline.functions, "loop": LoopDispatcher(loop), "process": inline.functions})

    def report_to(self, ended: Callable[[Ended], None]) -> None:
        """Report how each body ended, as objects."""
        self._observed = [Observed(one, ended) for one in self.dispatchers.values()]
        self.dispatchers = dict(zip(self.dispatchers, self._observed, strict=True))

    def keep_output(self) -> None:
        """Keep what each body prints with its run. The streams are the process's, so only one may run at a time."""
        from solocron.dispatch.printed import Printed

        self.dispatchers = {kind: Printed(one) for kind, one in self.dispatchers.items()}

    def stop(self) -> None:
        """Interrupt what runs and what is still to come: the caller is gone."""
        for one in self._observed:
            one.stop()

    def close(self) -> None:
        if self.inline is not None:
            self.inline.close()


class InlineOperations:
    """The methods of `Scheduler` that run bodies where the caller is."""

    _core: Core
    _locks: LockRoom

    def run_now(self, job: str | Callable[..., Any], payload: Any = None, *, shard: int | str | None = None) -> Any:
        """Run a job here and now: on the caller's thread, with `aio` on its event loop. Return what it returned.

        The body gets a real run: requested and claimed in one step under a session of its own, with the job's next
        fence, its wrappers and its limits, and recorded like a trigger. `run.once`, `run.step`, `run.guard` and keys
        therefore act as in production, and a run that is active elsewhere refuses it. What the body raises is raised as
        it is. There is no retry: the caller decides. It works with `enabled=False` too.
        """
        return self._run_here(self._core.registry.name_of(job), payload, shard, Here.on_thread())

    def _run_here(self, name: str, payload: Any, shard: int | str | None, here: Here) -> Any:
        core = self._core
        payload = None if payload is None else check_payload(payload, whose=name)
        surroundings.refuse_node(passing=True)
        check_threads(passing=True)
        refuse_store_per_replica(core)
        core.open()
        refuse_unknown_calendars(core)
        ended: list[Ended] = []
        here.report_to(ended.append)
        node = core.make_node(self._locks.make_verbs, ticking=True, here=here)
        ends: list[Event] = []
        for event in _ENDS:
            core.events.on(event, ends.append)
        try:
            node.start(ticking=True)
            self._refuse_function(name, here)
            hold = self._claim_here(node, name, payload, shard)
            if here.inline is not None:
                here.inline.carry_out()
            node.wait_idle()
        finally:
            for event in _ENDS:
                core.events.off(event, ends.append)
            node.drain(core.configuration.grace)
            here.close()
        return _result(hold, ended, [end for end in ends if end.run == hold.run])

    def _refuse_function(self, name: str, here: Here) -> None:
        """Refuse a job whose function is not here, and a coroutine on a thread whose event loop runs."""
        job = self._core.client.get_job(name)
        handler = self._core.registry.handlers.get(job.handler)
        if handler is None:
            raise NotFoundError(
                f"{name} calls the handler {job.handler!r}, which this program does not have, so it was not run; "
                "register the function, or run it in the program that has it."
            )
        on_loop = handler.is_async or job.run_in == "loop"
        if on_loop and here.inline is not None and running_loop() is not None:
            raise InvalidError(
                f"{name} is a coroutine and an event loop runs here, so it was not run; write "
                "`await scheduler.aio.run_now(...)`."
            )

    def _claim_here(self, node: Node, name: str, payload: Any, shard: int | str | None) -> Hold:
        """Claim the run under the node's session."""
        answer = node.run_now(name, payload, shard)
        if isinstance(answer, Hold):
            return answer
        if isinstance(answer, Refusal):
            raise error_of(answer, name, undone="it was not run", shard=shard)
        if isinstance(answer, Needs):
            raise ConflictError(f"{name} was not run: every permit of the limit {answer.limit!r} is taken; try again.")
        raise ConflictError(f"{name} was not run: its definition in the store is that of another application.")


def refuse_loop(core: Core) -> None:
    """Refuse to run coroutine jobs on a thread whose event loop runs: it could not run a second one."""
    if running_loop() is not None and any(handler.needs_loop for handler in core.registry.handlers.values()):
        raise InvalidError(
            "an event loop runs here and there are coroutine jobs, so nothing was run; write "
            "`await scheduler.aio.tick(inline=True)`."
        )


def _result(hold: Hold, ended: list[Ended], ends: list[Event]) -> Any:
    """Return what the body returned, or raise: what it raised, or why its run is not on record as succeeded."""
    last = ends[-1] if ends else None
    if not ended:
        raise ConflictError(f"{hold.run} was claimed and not started: {_why(last)}.")
    error = ended[-1].error
    if error is not None and type(error).__name__ == "CancelledError" and last is not None:
        stopped = TimedOut if last.name == "finished" and last.outcome == Status.TIMED_OUT else Cancelled
        raise stopped(f"{hold.run}: {_why(last)}.") from error
    if error is not None:
        raise error
    if last is None or last.name != "finished":
        raise StaleFence(f"{hold.run}: its function returned, and its end was not recorded: {_why(last)}.")
    if last.outcome != Status.SUCCEEDED:
        raise ConflictError(f"{hold.run}: its function returned, and the run {last.outcome}: {_why(last)}")
    return ended[-1].value


def _why(end: Event | None) -> str:
    if end is None:
        return "its session ended"
    return str(end.facts.get("reason") or end.facts.get("error") or "no reason is known")
