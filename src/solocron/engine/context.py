"""What a body gets to see of its run: plain facts, a way to notice that it must stop, progress, durable verbs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from solocron.clock import from_us
from solocron.dispatch.contract import Stop
from solocron.engine.durable import Attempt, MakeVerbs, OnceBlock, Verbs
from solocron.errors import ConflictError, InvalidError
from solocron.model.documents.run import Shards, Status, key_of
from solocron.schedules.zone import load_zone

if TYPE_CHECKING:
    from solocron.engine.execution import Execution

__all__ = ["AsyncRun", "Previous", "Run", "make_run"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Previous:
    """How the job's last run ended."""

    run: str
    slot: datetime
    attempt: int
    status: Status
    finished_at: datetime
    error: str | None


class Run:
    """One attempt, in the hands of the function that carries it out.

    Facts, `check`, `progress`, `track` and `log` never touch the store; `once`, `step`, `guard`, `claim_items` and
    `sleep` do, and raise `LeaseLost` once the lease is gone.
    """

    def __init__(
        self,
        *,
        id: str,
        job: str,
        slot: datetime,
        attempt: int,
        fence: int,
        key: str,
        node: str,
        deadline: datetime | None,
        payload: Any,
        previous: Previous | None,
        stopped: Callable[[], Stop | None],
        report: Callable[[dict[str, Any]], None],
        shard: int | str | None = None,
        shards: Shards | None = None,
    ) -> None:
        self.id = id
        self.job = job
        self.slot = slot
        self.attempt = attempt
        self.fence = fence
        self.key = key
        self.node = node
        self.deadline = deadline
        self.payload = payload
        self.previous = previous
        self.shard = shard
        self.shards = shards
        self._stopped = stopped
        self._report = report
        self._bound: Verbs | None = None
        self._node: tuple[MakeVerbs, str, str] | None = None
        """What the node that carries it out makes its verbs from: how, its session, and the scope of its fence."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.id} slot={self.slot.isoformat()} attempt={self.attempt} fence={self.fence}>"
        )

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines carry the run's facts."""
        facts = {"job": self.job, "run": self.id, "attempt": self.attempt, "fence": self.fence, "node": self.node}
        return logging.LoggerAdapter(logging.getLogger(f"solocron.run.{self.job}"), facts)

    @property
    def cancelled(self) -> bool:
        """Whether the body should stop: its lease is lost, its time is over, or someone asked."""
        return self._stopped() is not None

    def check(self) -> None:
        """Raise `LeaseLost`, `TimedOut` or `Cancelled` if the body must stop; `except Exception` lets them pass."""
        stop = self._stopped()
        if stop is None:
            return
        what = "stop now, the outcome is recorded by the node."
        if stop.kind == "lost":
            what = "whatever this attempt writes from here on is refused. Another node may already run it: stop now."
        raise stop.error(f"{self.id}: {stop.reason}; {what}")

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far the body is; shown live, written with the node's next beat. Raises like `check`."""
        self.check()
        self._report(
            {
                "done": _number(done, "done"),
                "total": None if total is None else _number(total, "total"),
                "note": None if note is None else str(note),
            }
        )

    def track(self, items: Iterable[T]) -> Iterator[T]:
        """Go through items, with progress, stopping where the run must stop."""
        total = len(items) if isinstance(items, Sized) else None
        done = 0
        self.progress(done, total)
        for done, item in enumerate(items, 1):
            self.check()
            yield item
            self.progress(done, total)

    # --- effects that happen once --------------------------------------------------------------------------------

    @property
    def headers(self) -> dict[str, str]:
        """For an HTTP target: the idempotency key, which many services honour, and the fence, for one of your own."""
        return {"Idempotency-Key": self.key, "Solocron-Fence": str(self.fence)}

    def once(self, key: str, *, connection: Any = None, **options: Any) -> OnceBlock:
        """`with run.once(key) as claim: if claim: ...`: true for one caller only, forever (or `keep="90d"`).

        `wait=` waits for a live holder, else `KeyBusy`. Where an earlier attempt died in the middle, `check=` asks the
        outside world, `on_uncertain="repeat" | "skip"` decides, else `UncertainOutcome`. With `connection`, the key is
        part of your own transaction there.
        """
        return self._verbs().once(key, connection=connection, **options)

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Carry the function out once per run; a later attempt gets its saved result (small JSON).

        `retries=`, `timeout=` and `backoff=` are the step's own; other keywords go to the function.
        """
        return self._verbs().step(name, function, *args, **options)

    def sleep(self, duration: timedelta | int | float | str, *, name: str | None = None) -> Any:
        """Wait; after a crash the next attempt waits only for what is left."""
        self._verbs().sleep(duration, name=name)

    def guard(self, connection: Any) -> Any:
        """Inside your open transaction: raise `StaleFence` if that database has seen a higher fence of this job."""
        self._verbs().guard(connection)

    def claim_items(self, connection: Any, name: str, ids: Iterable[T]) -> Any:
        """Inside your open transaction: return those of these items that no run has claimed under this name before."""
        return self._verbs().claim_items(connection, name, ids)

    def _verbs(self) -> Verbs:
        if self._bound is None:
            if self._node is None:
                raise ConflictError(f"{self.id} is not carried out by a node, so nothing can be written for it.")
            make, session, scope = self._node
            self._bound = make(
                Attempt(
                    run=self.id,
                    node=self.node,
                    session=session,
                    fence=self.fence,
                    scope=scope,
                    check=self.check,
                    lease=self._lease,
                )
            )
        return self._bound

    def _lease(self) -> None:
        stop = self._stopped()
        if stop is not None and stop.kind == "lost":
            self.check()

    def _bind(self, make: MakeVerbs, *, session: str, scope: str) -> None:
        """Give it its verbs, made when first used; done by the node that runs it."""
        self._node = make, session, scope


def _number(value: Any, what: str) -> float:
    """A number as JSON knows it; anything else is the body's own error, here and now, and never the node's."""
    try:
        number = value if isinstance(value, int) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidError(
            f"progress({what}=...) wants a number, not {type(value).__name__}; nothing was noted."
        ) from None
    if not isfinite(number):
        raise InvalidError(f"progress({what}={number}) is not a number that can be shown; nothing was noted.")
    return number


class AsyncRun(Run):
    """The same in the hands of a coroutine: what does I/O is awaited; `track` takes both kinds of iterables."""

    async def step(self, name: str, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        return await self._verbs().step_async(name, function, *args, **options)

    async def sleep(self, duration: timedelta | int | float | str, *, name: str | None = None) -> None:
        await self._verbs().sleep_async(duration, name=name)

    async def guard(self, connection: Any) -> None:
        await self._verbs().guard_async(connection)

    async def claim_items(self, connection: Any, name: str, ids: Iterable[T]) -> list[T]:
        found: list[T] = await self._verbs().claim_items_async(connection, name, ids)
        return found

    async def track(self, items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:  # type: ignore[override]
        total = len(items) if isinstance(items, Sized) else None
        done = 0
        self.progress(done, total)
        if isinstance(items, AsyncIterable):
            async for item in items:
                self.check()
                yield item
                done += 1
                self.progress(done, total)
        else:
            for item in items:
                self.check()
                yield item
                done += 1
                self.progress(done, total)


def make_run(execution: Execution, verbs: MakeVerbs | None) -> Run:
    """Build the run that an execution gives to its function."""
    job, hold, zone = execution.job, execution.running.hold, execution.zone
    last = job.last
    run = (AsyncRun if execution.handler.is_async else Run)(
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
    )
    if verbs is not None:
        run._bind(verbs, session=execution.running.session, scope=execution.scope)
    return run


@lru_cache(maxsize=256)  # jobs that fall due together share their slot
def _moment(us: int, zone: str) -> datetime:
    return from_us(us).astimezone(load_zone(zone).info)
