"""Which nodes lost attempts of a page, and which of these had a result that the store refused."""

from __future__ import annotations

from collections.abc import Sequence

from solocron.service.call import ApiCall
from solocron.service.pages.fleet import RefusedResult, refused_by
from solocron.views import NodeView, RunView

__all__ = ["losers_of", "refused_of"]


def losers_of(call: ApiCall, runs: Sequence[RunView]) -> tuple[NodeView, ...]:
    """Return the nodes since the oldest lost attempt: they have last renewals and refused results on record."""
    lost = [run.claimed_at for run in runs if run.status == "lost" and run.claimed_at is not None]
    return tuple(call.reads.nodes(ended=True, since=min(lost))) if lost else ()


def refused_of(nodes: Sequence[NodeView], runs: Sequence[RunView]) -> tuple[RefusedResult, ...]:
    """Return the results of lost attempts that came after the takeover."""
    lost = {run.run for run in runs if run.status == "lost"}
    return tuple(one for one in refused_by(nodes) if one.run in lost)
