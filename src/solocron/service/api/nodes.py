"""`/nodes`: the nodes that live, those that are silent or dead, and those that have ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from solocron.client.run_listing import WantedRuns
from solocron.errors import NotFoundError
from solocron.service.call import ApiCall
from solocron.service.paging import Listing, page_by_name
from solocron.service.shown import shown_run
from solocron.views import NodeView, RunView

__all__ = ["STATES", "NodeAnswer", "node", "nodes"]

STATES = ("live", "silent", "dead", "ended")
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer(NodeView):
    """A node, with what it runs and its last attempts."""

    attempts: tuple[RunView, ...]
    """At most 50: what runs first, then what ended last. Nodes of the same name in other sessions are among them."""


def nodes(call: ApiCall) -> Listing[NodeView]:
    """Return nodes by session; ended ones only if they are asked for."""
    wanted = frozenset(call.given["state"]) or frozenset(STATES[:3])
    found = [
        view for view in call.reads.nodes(ended="ended" in wanted, since=call.given["since"]) if view.state in wanted
    ]
    return page_by_name(found, lambda view: view.session, path=call.path, given=call.given, as_of=call.reads.now())


def node(call: ApiCall) -> NodeAnswer:
    """Return the node of one session, with what it runs and its last attempts."""
    view = call.reads.node(call.names["session"])
    if view is None:
        raise NotFoundError(f"there is no session {call.names['session']!r} on record. Nothing was changed.")
    page = call.reads.runs(WantedRuns(node=view.node), limit=_ATTEMPTS, before=None)
    copied: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(NodeView)}
    return NodeAnswer(**copied, attempts=tuple(map(shown_run, page.runs)))
