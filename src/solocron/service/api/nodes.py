"""`/nodes`: the nodes that live, those that are silent or dead, and those that have ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from solocron.client.run_listing import WantedRuns
from solocron.errors import NotFoundError
from solocron.service.call import ApiCall
from solocron.service.paging import Listing, page_by_name
from solocron.service.shown import shown_run
from solocron.views import HoldView, NodeView, RunView

__all__ = ["STATES", "NodeAnswer", "node", "nodes"]

STATES = ("live", "silent", "dead", "ended")
_ATTEMPTS = 50
_BEFORE = timedelta(days=7)
_EARLIER = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer(NodeView):
    """A node, with what it holds, its last attempts, and the sessions before it on its host."""

    holds: tuple[HoldView, ...]
    """What it holds at present, the latest claim first; at most 50."""
    attempts: tuple[RunView, ...]
    """At most 50: what runs first, then what ended last. Nodes of the same name in other sessions are among them."""
    earlier: tuple[NodeView, ...]
    """Sessions that began before it on the same host and were on record in the week before it, the latest first."""


def nodes(call: ApiCall) -> Listing[NodeView]:
    """Return nodes by session; ended ones only if they are asked for."""
    wanted = frozenset(call.given["state"]) or frozenset(STATES[:3])
    found = [
        view for view in call.reads.nodes(ended="ended" in wanted, since=call.given["since"]) if view.state in wanted
    ]
    return page_by_name(found, lambda view: view.session, path=call.path, given=call.given, as_of=call.reads.now())


def node(call: ApiCall) -> NodeAnswer:
    """Return the node of one session, with what it holds, its last attempts and the sessions before it."""
    view = call.reads.node(call.names["session"])
    if view is None:
        raise NotFoundError(f"there is no session {call.names['session']!r} on record. Nothing was changed.")
    page = call.reads.runs(WantedRuns(node=view.node), limit=_ATTEMPTS, before=None)
    attempts = tuple(map(shown_run, page.runs))
    copied: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(NodeView)}
    return NodeAnswer(
        **copied,
        holds=tuple(one for one in attempts if isinstance(one, HoldView) and one.session == view.session),
        attempts=attempts,
        earlier=_earlier(call, view),
    )


def _earlier(call: ApiCall, view: NodeView) -> tuple[NodeView, ...]:
    """Return the sessions before this one: a process that restarts on its host begins a new one each time."""
    known = call.reads.nodes(ended=True, since=view.started_at - _BEFORE)
    found = [one for one in known if one.host == view.host and one.started_at < view.started_at]
    return tuple(sorted(found, key=lambda one: one.started_at, reverse=True)[:_EARLIER])
