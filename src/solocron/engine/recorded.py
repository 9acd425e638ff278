"""Reports ends of attempts that are on record already: the first record stays, and people are told."""

from __future__ import annotations

from solocron.events import Events
from solocron.stores.contract import Result

__all__ = ["tell_recorded_twice"]


def tell_recorded_twice(events: Events, result: Result) -> None:
    """Emit an event for each record that the log had already; the hold has ended all the same.

    Without that the end would be repeated forever, and its session never swept.
    """
    for first in result.duplicates:
        events.emit(
            "recorded twice", job=first.job, run=first.run, attempt=first.attempt, fence=first.fence,
            outcome=first.status, node=first.node,
        )  # fmt: skip
