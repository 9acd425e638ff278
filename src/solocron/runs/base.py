"""Base of `Run` and `AsyncRun`: facts, the right to continue, progress, keys."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from solocron.errors import ConflictError, InvalidError

if TYPE_CHECKING:  # a module that declares jobs imports `Run` for its annotations, and none of these
    from datetime import datetime

    from solocron.dispatch.contract import Stop
    from solocron.effects.once import Once
    from solocron.effects.transaction import OnceInTransaction
    from solocron.effects.verbs import RunVerbs
    from solocron.model.documents.run import Shards, Status

__all__ = ["BaseRun", "Previous"]


@dataclass(frozen=True, slots=True)
class Previous:
    """End of the job's last run."""

    run: str
    slot: datetime
    attempt: int
    status: Status
    finished_at: datetime
    error: str | None


class BaseRun:
    """One attempt, as the function that carries it out sees it.

    Facts, `check`, `progress`, `track` and `log` never touch the store; `once`, `step`, `guard`, `claim_items` and
    `sleep` do. All but the facts raise `RunStopped` when the body must stop, which `except Exception` lets pass.
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
        effects: Callable[[BaseRun], RunVerbs] | None = None,
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
        self._make_effects = effects
        self._effects: RunVerbs | None = None

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.id} slot={self.slot.isoformat()} attempt={self.attempt} fence={self.fence}>"
        )

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines carry the run's facts."""
        return logging.LoggerAdapter(logging.getLogger(f"solocron.run.{self.job}"), self.facts)

    @property
    def facts(self) -> dict[str, Any]:
        """Facts by which a line of a log can be found: job, run, attempt, fence and node."""
        return {"job": self.job, "run": self.id, "attempt": self.attempt, "fence": self.fence, "node": self.node}

    @property
    def headers(self) -> dict[str, str]:
        """Headers for an HTTP target: the idempotency key, which many services honour, and the fence, for your own."""
        return {"Idempotency-Key": self.key, "Solocron-Fence": str(self.fence)}

    # --- the right to go on ----------------------------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """True if the body should stop: its lease is lost, its time is over, or a stop was requested."""
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

    def _check_lease(self) -> None:
        """Raise `LeaseLost` if the lease is gone; a body that was only asked to stop may still write what it did."""
        stop = self._stopped()
        if stop is not None and stop.kind == "lost":
            self.check()

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Report how far the body is; shown live, written with the node's next renewal. Raises like `check`."""
        self.check()
        self._report(
            {
                "done": _number(done, "done"),
                "total": None if total is None else _number(total, "total"),
                "note": None if note is None else str(note),
            }
        )

    # --- effects that happen once ----------------------------------------------------------------------------------

    def once(self, key: str, *, connection: Any = None, **options: Any) -> Once | OnceInTransaction:
        """`with run.once(key) as claim: if claim: ...`: true for one caller only, forever (or `keep="90d"`).

        In a coroutine `async with`. `wait=` waits for a live holder; without it, `KeyBusy` is raised. If an earlier
        attempt died in the middle, `check=` asks the outside world, or `on_uncertain="repeat" | "skip"` decides, or
        `UncertainOutcome` is raised. With `connection`, the key is part of your own transaction there.
        """
        return self._verbs().once(key, connection=connection, **options)

    def _unfinished(self) -> str | None:
        """Say which step the body made and never called, so that its work was not done; None if there is none."""
        name = None if self._effects is None else self._effects.uncalled_step()
        if name is None:
            return None
        return (
            f"step {name!r} was made and never called, so its function was not run. "
            f"Write `run.step({name!r}).call(function, ...)`, and `await` it in a coroutine."
        )

    def _verbs(self) -> RunVerbs:
        if self._effects is None:
            if self._make_effects is None:
                raise ConflictError(f"{self.id} is not carried out by a node, so nothing can be written for it.")
            self._effects = self._make_effects(self)
        return self._effects


def _number(value: Any, what: str) -> float:
    """Return a number that JSON can carry. Anything else is an error of the body, raised here, and not of the node."""
    try:
        number = value if isinstance(value, int) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidError(
            f"progress({what}=...) wants a number, not {type(value).__name__}; nothing was reported."
        ) from None
    if not isfinite(number):
        raise InvalidError(f"progress({what}={number}) is not a number that can be shown; nothing was reported.")
    return number
