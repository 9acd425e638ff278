"""What a node tells of itself, and what became of it, is in its view."""

from __future__ import annotations

from datetime import timedelta

from solocron.clock import SECOND, from_us
from solocron.model.change import Change
from solocron.model.documents.session import RefusedEnd, SelfReport, Session, bury, end
from solocron.views import NodeView, RefusedEndView, to_json

LIVE = Session(
    name="s",
    node="n",
    host="h",
    pid=1,
    lease=15 * SECOND,
    started_at=100 * SECOND,
    expires_at=215 * SECOND,
    report=SelfReport(
        skew=1_400_000,
        late_by=4 * SECOND,
        late_at=150 * SECOND,
        refused=(RefusedEnd(run="j@1", fence=3, at=190 * SECOND, outcome="succeeded"),),
    ),
)


def test_a_live_node_tells_its_clock_its_late_beat_and_what_was_refused() -> None:
    view = NodeView.of(LIVE, now=201 * SECOND)
    assert (view.skew_s, view.late_s, view.late_at) == (1.4, 4.0, from_us(150 * SECOND))
    assert view.refused == (RefusedEndView(run="j@1", fence=3, at=from_us(190 * SECOND), outcome="succeeded"),)
    assert (view.lease, view.last_renewal) == (timedelta(seconds=15), from_us(200 * SECOND))
    assert to_json(view)["lease"] == 15


def test_a_buried_node_says_who_buried_it_and_when_it_was_last_heard_of() -> None:
    view = seen(bury(LIVE, now=220 * SECOND, reason="not renewed in time", seen=0, by="worker-b"))
    assert (view.buried_by, view.last_renewal) == ("worker-b", from_us(200 * SECOND))


def test_a_node_that_closed_its_session_was_buried_by_none() -> None:
    view = seen(end(LIVE, now=205 * SECOND, reason="drained"))
    assert (view.buried_by, view.last_renewal) == (None, from_us(205 * SECOND))


def seen(change: Change | None) -> NodeView:
    assert change is not None
    assert isinstance(change.doc, Session)
    return NodeView.of(change.doc, now=230 * SECOND)
