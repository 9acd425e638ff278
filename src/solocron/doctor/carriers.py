"""Lines about the carriers: what each has, and what no worker picks up."""

from __future__ import annotations

from collections.abc import Iterator

from solocron.doctor.line import listed, ok, seconds, warn
from solocron.doctor.sight import Sight
from solocron.model.documents.offer import Offer
from solocron.stores.contract import Check

__all__ = ["carriers"]


def carriers(sight: Sight) -> Iterator[Check]:
    """Return a line for each carrier that a job names; none where no job has one."""
    jobs: dict[str, list[str]] = {}
    offers: dict[str, list[tuple[str, Offer]]] = {}
    for job in sight.jobs:
        if job.definition.hand_over is not None and not job.removed:
            jobs.setdefault(job.definition.run_in, []).append(job.name)
        for one in job.waiting_runs:
            if one.offer is not None and (one.offered or one.offer.note is not None):
                offers.setdefault(one.offer.carrier, []).append((one.run, one.offer))
    for name in sorted({*jobs, *offers}):
        waiting = sorted(offers.get(name, []), key=lambda item: item[1].since)
        told = f"{name}: {listed(jobs.get(name, [])) or 'no job names it any more'}"
        if waiting:
            told += f"; {len(waiting)} in its queue, the longest for {seconds(sight.now - waiting[0][1].since)}"
        lapsed = [(run, offer) for run, offer in waiting if offer.tries > 1 or offer.note is not None]
        if not lapsed:
            yield ok("carriers", told)
            continue
        run, offer = lapsed[0]
        why = offer.note or f"not picked up although it was published {offer.tries} times"
        remedy = "start workers of that queue, which import this program; if it is only slow, raise pickup="
        yield warn("carriers", f"{told}; {run}: {why}", remedy)
