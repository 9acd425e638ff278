"""`/events`: what has changed, as server-sent events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solocron.service.call import ApiCall, EventText
from solocron.service.live import TOPIC, Subscription, polled, read_topic
from solocron.service.parameters import Parameter
from solocron.service.request import RequestHead

__all__ = ["TOPICS", "events", "subscription"]

_DEFAULT = ("runs", "nodes", "alarms")


def _read_topics(given: str) -> tuple[str, ...]:
    return tuple(read_topic(one) for one in given.split(","))


TOPICS = Parameter(
    name="topics",
    read=_read_topics,
    schema={"type": "array", "items": {"type": "string", "pattern": f"^({TOPIC.pattern})(,({TOPIC.pattern}))*$"}},
    summary=f"what to hear of, with commas between: runs, nodes, alarms, jobs, audit, accounting, job:NAME "
    f"(default: {', '.join(_DEFAULT)})",
    default=(),
    listed=True,
)


def events(call: ApiCall) -> EventText:
    """Return a stream of events `hello`, `changed`, `gap` and `bye`: what has changed, by topic."""
    call.watcher.look()
    return EventText(polled(call.watcher, subscription(call.given, call.head)))


def subscription(given: Mapping[str, Any], head: RequestHead) -> Subscription:
    """Return what a request wants to hear of."""
    topics = [topic for some in given["topics"] for topic in some]
    return Subscription.of(topics or _DEFAULT, head.header("last-event-id"))
