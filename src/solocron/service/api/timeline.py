"""`/timeline`: what the nodes did in a span, in lanes."""

from __future__ import annotations

from datetime import timedelta

from solocron.service.call import ApiCall
from solocron.views import TimelineView

__all__ = ["timeline"]

_SPAN = timedelta(hours=1)
_AHEAD = timedelta(minutes=12)


def timeline(call: ApiCall) -> TimelineView:
    """Return a span in lanes: attempts, takeovers with both fences, refused results, and the slots to come."""
    given = call.given
    start, end = given["from"], given["to"]
    if start is None or end is None:
        now = call.reads.now().replace(second=0, microsecond=0)  # two requests within a minute are about the same span
        end = now + _AHEAD if end is None else end
        start = min(now, end) - _SPAN if start is None else start
    return call.reads.timeline(start, end, lanes=given["lanes"], limit=given["limit"])
