"""Which of the attempts of a page had a result that the store refused."""

from __future__ import annotations

from collections.abc import Sequence

from solocron.service.call import ApiCall
from solocron.service.pages.fleet import RefusedResult, refused_by
from solocron.views import RunView

__all__ = ["refused_of"]


def refused_of(call: ApiCall, runs: Sequence[RunView]) -> tuple[RefusedResult, ...]:
    """Return the results of lost attempts that came after the takeover: nodes have them on record, runs do not."""
    lost = {run.run: run.claimed_at for run in runs if run.status == "lost" and run.claimed_at is not None}
    if not lost:
        return ()
    nodes = call.reads.nodes(ended=True, since=min(lost.values()))
    return tuple(one for one in refused_by(nodes) if one.run in lost)
