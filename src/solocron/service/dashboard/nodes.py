"""`/nodes`: is one dead, is its clock right, do all run the same; `/nodes/{session}`: what one of them did."""

from __future__ import annotations

from datetime import datetime

from solocron.errors import EmptyStore
from solocron.service.api.nodes import node as whole_node
from solocron.service.call import ApiCall, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.pages.details import node_page
from solocron.service.pages.lists import nodes_page

__all__ = ["node", "nodes"]

_ROWS = 200


def nodes(call: ApiCall) -> ShownPage:
    """Show the nodes."""
    look, ended = Look.at(call), call.given["state"] == "ended"
    try:
        glance, found = call.board.glance_if_counted(), call.reads.nodes(ended=ended)
        unserved = {} if glance is None else glance.status.unserved
    except EmptyStore:
        unserved, found = {}, []
    page = nodes_page(
        found[:_ROWS],
        unserved=unserved,
        ended=ended,
        left_out=len(found) - _ROWS,
        reading=look.reading,
        links=look.links,
    )
    return look.screen(page, found[:_ROWS], unserved, topics="nodes")


def node(call: ApiCall) -> ShownPage:
    """Show one node: its lane, what it holds, its last attempts, and the sessions before it."""
    look, view = Look.at(call), whole_node(call)
    runs = tuple(run for run in view.attempts if _is_its(run.claimed_at, view.started_at, view.ended_at))
    page = node_page(view, holds=view.holds, runs=runs, earlier=view.earlier, reading=look.reading, links=look.links)
    return look.screen(page, view)


def _is_its(claimed: datetime | None, began: datetime, ended: datetime | None) -> bool:
    """Return whether an attempt was claimed in this session: a node of the same name may have had others."""
    return claimed is not None and began <= claimed and (ended is None or claimed <= ended)
