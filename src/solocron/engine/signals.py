"""The wake-ups between the loops of a node, made before the loops: a forgotten wire cannot be silent."""

from __future__ import annotations

from math import inf

from solocron.loop import Signal
from solocron.runtime import Runtime

__all__ = ["ClaimSignal", "KeepSignal", "Signals"]


class ClaimSignal(Signal):
    """Wakes the claimer only for what its plan does not cover: other loops report far more often than that."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.planned = inf
        """Boot time of the claimer's next look."""
        self.starved = True
        """True if something may be due for which this node had no place, or no session."""
        self.backlog = False
        """True if the last claim brought as many as it asked for, and more is due."""
        self.anew = False
        """True if this node may now take jobs that it left to others."""
        self.redefined = False
        """True if definitions were written since the last look."""
        self.alone = True
        """True if no other node lived when the sweeper last looked."""

    def place_free(self) -> None:
        """Report that a body has ended, or that its outcome is recorded."""
        if self.starved:
            self.wake()

    def due(self, at: float | None) -> None:
        """Report that a job is due at a boot time; None if that is unknown."""
        if at is None or at < self.planned:
            self.wake()

    def look_again(self) -> None:
        """Report a change: this node may now take jobs that it left to others."""
        self.anew = True
        self.wake()

    def definitions_written(self) -> None:
        """Report new definitions: this node may now decide jobs that it could not decide before."""
        self.redefined = True
        self.wake()


class KeepSignal(Signal):
    """Wakes the keeper, and says whether it is to renew now."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.renews = False
        """True if the session is to be renewed although no renewal is due."""

    def renew(self) -> None:
        """Ask for a renewal now."""
        self.renews = True
        self.wake()


class Signals:
    """One wake-up for each loop that other loops report to."""

    def __init__(self, runtime: Runtime) -> None:
        self.claim = ClaimSignal(runtime)
        self.finish = Signal(runtime)
        self.sweep = Signal(runtime)
        self.keep = KeepSignal(runtime)
        self.watch = Signal(runtime)

    def note_backlog(self, backlog: bool) -> None:
        """Report whether more is due than this node could claim; if not, outcomes stop waiting for each other."""
        drained = self.claim.backlog and not backlog
        self.claim.backlog = backlog
        if drained:
            self.finish.wake()
