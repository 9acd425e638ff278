"""Runs that a pass gave to carriers: over for the command, and not in its list of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solocron.cli import output

if TYPE_CHECKING:
    from solocron.events import Event
    from solocron.scheduler import Scheduler

__all__ = ["HandedOver"]


class HandedOver:
    """Notes what the nodes of a scheduler hand over, and what no carrier took."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.runs: dict[str, str] = {}
        """By run, in words."""
        scheduler.events.on("handed over", self._accepted)
        scheduler.events.on("hand-over failed", self._failed)

    def _accepted(self, event: Event) -> None:
        if not event.overtaken:
            self.runs[event.run] = f"was handed over to {event.carrier}"

    def _failed(self, event: Event) -> None:
        self.runs[event.run] = f"waits to be handed over once more: {event.reason}"

    def tell(self) -> None:
        """Write a note about each."""
        for run, what in self.runs.items():
            output.note(f"{run} {what}")
