"""`POST /api/v1/tick`: one pass of the scheduler, for a platform that wakes it from outside."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from solocron.errors import ConflictError
from solocron.model.documents.run import BAD
from solocron.views import RunView

__all__ = ["TickAnswer", "TickOnce", "TickResult", "TickedRun", "Ticking"]

log = logging.getLogger("solocron.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class TickedRun:
    """A run that the pass has carried out."""

    run: str
    job: str
    slot: datetime
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TickAnswer:
    """The report of a pass. A run that failed does not fail the pass: its retries are the scheduler's business."""

    busy: bool
    """True if another pass is under way in this process; this request did nothing."""
    runs: tuple[TickedRun, ...] = ()
    failed: int = 0
    handed_over: int = 0
    """Runs whose messages are in the queues of their carriers."""
    next: datetime | None = None
    """When something is due next, for a caller that can come exactly then; None if nothing is."""
    took_s: float | None = None
    """None if the caller did not want to wait, or had nothing to wait for."""


@dataclass(frozen=True, slots=True)
class TickResult:
    """The runs of a pass, and when something is due next."""

    runs: Sequence[RunView] = ()
    next: datetime | None = None
    handed_over: int = 0


TickOnce = Callable[[], TickResult]


class Ticking:
    """Lets one pass at a time run in this process. Two at once are safe, and the second finds nothing to do."""

    def __init__(self, tick: TickOnce, *, runs_node: Callable[[], bool]) -> None:
        self._tick = tick
        self._runs_node = runs_node
        self._turn = threading.Lock()

    def run(self, *, wait: bool) -> TickAnswer:
        """Do a pass; without `wait` return while it goes on."""
        if not self._turn.acquire(blocking=False):
            return TickAnswer(busy=True)
        try:
            if self._runs_node():
                raise ConflictError("a node runs in this process, which does what a tick would. Nothing was done.")
        except BaseException:
            self._turn.release()
            raise
        if wait:
            return self._pass()
        threading.Thread(target=self._pass_alone, name="solocron-tick").start()
        return TickAnswer(busy=False)

    def _pass_alone(self) -> None:
        try:
            self._pass()
        except Exception:  # there is no caller any more that could be told
            log.exception("a tick failed")

    def _pass(self) -> TickAnswer:
        try:
            begun = time.monotonic()
            done = self._tick()
            return TickAnswer(
                busy=False,
                runs=tuple(
                    TickedRun(run=view.run, job=view.job, slot=view.slot, status=str(view.status)) for view in done.runs
                ),
                failed=sum(view.status in BAD for view in done.runs),
                handed_over=done.handed_over,
                next=done.next,
                took_s=round(time.monotonic() - begun, 3),
            )
        finally:
            self._turn.release()
