"""The backfills of a job that still have slots to start."""

from __future__ import annotations

from collections.abc import Iterable

from solocron.service.pages.links import Links
from solocron.service.pages.parts import ActLink, ListEntry
from solocron.service.pages.words import Reading, plural
from solocron.views import BackfillView

__all__ = ["backfill_entries"]


def backfill_entries(
    backfills: Iterable[BackfillView], reading: Reading, links: Links, *, operates: bool
) -> tuple[ListEntry, ...]:
    """Make an entry for each backfill: its range, how far it is, who asked for it, and the act that ends it."""
    return tuple(
        ListEntry(
            title=f"{reading.stamp(one.first)} to {reading.stamp(one.last)}",
            about=f"{one.done} of {plural(one.total, 'slot')} done, {one.running} running",
            words=" ".join(filter(None, [f"by {one.asked_by}" if one.asked_by else "", one.note])),
            icon="again",
            tone="run",
            href=links.runs(job=one.job, origin="backfill"),
            acts=(ActLink(label="Cancel", href=links.run(one.id, "cancel"), dialog=True),)
            if operates and one.id
            else (),
        )
        for one in backfills
    )
