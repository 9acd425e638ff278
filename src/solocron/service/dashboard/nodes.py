"""`/nodes`: is one dead, is its clock right, do all run the same; `/nodes/{session}`: what one of them did."""

from __future__ import annotations

from datetime import datetime

from solocron.client.run_listing import WantedRuns
from solocron.errors import EmptyStore, NotFoundError
from solocron.service.call import ApiCall, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.pages.details import node_page
from solocron.service.pages.lists import nodes_page
from solocron.service.shown import shown_run

__all__ = ["node", "nodes"]

_ROWS = 200
_ATTEMPTS = 50


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
    """Show one node: its lane and its last attempts."""
    look, session = Look.at(call), call.names["session"]
    view = next((one for one in call.reads.nodes(ended=True) if one.session == session), None)
    if view is None:
        raise NotFoundError(f"there is no session {session!r} on record. Nothing was changed.")
    page = call.reads.runs(WantedRuns(node=view.node), limit=_ATTEMPTS, before=None)
    runs = tuple(shown_run(run) for run in page.runs if _is_its(run.claimed_at, view.started_at, view.ended_at))
    return look.screen(node_page(view, runs=runs, reading=look.reading, links=look.links), view, runs)


def _is_its(claimed: datetime | None, began: datetime, ended: datetime | None) -> bool:
    """Return whether an attempt was claimed in this session: a node of the same name may have had others."""
    return claimed is not None and began <= claimed and (ended is None or claimed <= ended)
