"""The wake-ups between the loops of a node, made before the loops: a wire that is forgotten cannot be silent."""

from __future__ import annotations

from math import inf

from solocron.loop import Signal
from solocron.runtime import Runtime

__all__ = ["ClaimSignal", "Signals"]


class ClaimSignal(Signal):
    """Wakes the claimer, but only for what its plan does not cover: other loops report far more often than that."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.planned = inf
        """Boot time of the claimer's next look."""
        self.starved = True
        """Whether something may be due for which this node had no place, or no session."""
        self.backlog = False
        """Whether the last claim brought as many as it asked for, and more is due."""
        self.anew = False
        """Whether what this node left to others may be its own now."""
        self.redefined = False
        """Whether definitions were written since the last look."""
        self.alone = True
        """Whether no other node lived when the sweeper last looked."""

    def place_free(self) -> None:
        """A body has ended, or its outcome is recorded."""
        if self.starved:
            self.wake()

    def due(self, at: float | None) -> None:
        """A job is due at a boot time; None where that is not known."""
        if at is None or at < self.planned:
            self.wake()

    def look_again(self) -> None:
        """Something changed: what this node left to others may be its own now."""
        self.anew = True
        self.wake()

    def definitions_written(self) -> None:
        """What this node could not decide it may be able to decide now."""
        self.redefined = True
        self.wake()


class Signals:
    """One wake-up for each loop that another loop has news for."""

    def __init__(self, runtime: Runtime) -> None:
        self.claim = ClaimSignal(runtime)
        self.finish = Signal(runtime)
        self.sweep = Signal(runtime)
        self.keep = Signal(runtime)
        self.watch = Signal(runtime)

    def note_backlog(self, backlog: bool) -> None:
        """Note whether more is due than this node could claim; outcomes stop waiting for each other once it is not."""
        drained = self.claim.backlog and not backlog
        self.claim.backlog = backlog
        if drained:
            self.finish.wake()
