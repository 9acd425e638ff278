"""The fates of slots as the pictures need them, from the views of slots and of runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, tzinfo

from solocron.service.pages.slots import SlotFate
from solocron.views import RunView, SlotView

__all__ = ["comes_twice", "fates_of_runs", "fates_of_slots"]


def fates_of_slots(slots: Iterable[SlotView], *, lost: Collection[str], zone: tzinfo) -> tuple[SlotFate, ...]:
    """Return fates, oldest first; `lost` are the runs of which an attempt was lost."""
    return tuple(
        SlotFate(
            slot=one.slot,
            status=one.status,
            reason=one.reason,
            run=one.run,
            attempts=one.attempts,
            taken_over=one.run in lost,
            origin=one.origin or "schedule",
            fold=comes_twice(one.slot, zone),
            late_s=one.late_s,
            took_s=one.took_s,
            node=one.node,
        )
        for one in slots
    )


def fates_of_runs(runs: Sequence[RunView]) -> tuple[SlotFate, ...]:
    """Return the fates of the slots in a listing of runs, oldest first: the newest run of each slot counts."""
    lost = {run.run for run in runs if run.status == "lost"}
    newest: dict[datetime, RunView] = {}
    for run in runs:
        newest.setdefault(run.slot, run)
    fates = []
    for run in sorted(newest.values(), key=lambda one: one.slot):
        fate = SlotFate(
            slot=run.slot,
            status=run.status,
            reason=run.reason,
            run=run.run if run.attempt else None,
            attempts=run.attempt,
            taken_over=run.run in lost,
            origin=run.origin,
        )
        fates += [fate] * min(run.count, 30)
    return tuple(fates)


def comes_twice(at: datetime, zone: tzinfo) -> bool:
    """Return whether the clocks of the zone show the time of an instant twice on that day."""
    local = at.astimezone(zone)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
