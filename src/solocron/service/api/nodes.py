"""`/nodes`: the nodes that live, those that are silent or dead, and those that have ended."""

from __future__ import annotations

from solocron.errors import NotFoundError
from solocron.service.call import ApiCall
from solocron.service.paging import Listing, page_by_name
from solocron.views import NodeView

__all__ = ["STATES", "node", "nodes"]

STATES = ("live", "silent", "dead", "ended")


def nodes(call: ApiCall) -> Listing[NodeView]:
    """Return nodes by session; ended ones only if they are asked for."""
    wanted = frozenset(call.given["state"]) or frozenset(STATES[:3])
    found = [
        view for view in call.reads.nodes(ended="ended" in wanted, since=call.given["since"]) if view.state in wanted
    ]
    return page_by_name(found, lambda view: view.session, path=call.path, given=call.given, as_of=call.reads.now())


def node(call: ApiCall) -> NodeView:
    """Return the node of one session."""
    for view in call.reads.nodes(ended=True):
        if view.session == call.names["session"]:
            return view
    raise NotFoundError(f"there is no session {call.names['session']!r} on record. Nothing was changed.")
