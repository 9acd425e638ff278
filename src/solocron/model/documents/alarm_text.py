"""The sentences of messages: what happened, to how many, which for example, and where the rest can be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from solocron.clock import SECOND
from solocron.duration import format_duration
from solocron.model.documents.alarm_message import AlarmMessage, OpenAlarm

__all__ = ["LISTED", "about", "cleared", "in_order", "raised", "some", "whom_to_ask"]

LISTED = 20
"""Alarms that a message has in full. The others are in the store."""
_NAMED = 3
_NOUNS = {"no node": "pool", "tier": "store"}


def about(kind: str, count: int, names: Sequence[str]) -> str:
    """Return what alarms of a kind are about, such as "300 jobs, such as a, b, c"."""
    return some(_NOUNS.get(kind, "job"), count, names)


def some(noun: str, count: int, names: Sequence[str]) -> str:
    """Return a number of things with the names of the first few; of one thing its name."""
    if count == 1:
        return names[0]
    such_as = ", such as" if count > len(names[:_NAMED]) else ":"
    return f"{count} {noun}s{such_as} {', '.join(names[:_NAMED])}"


def in_order(members: Sequence[OpenAlarm], *, again: bool) -> Sequence[OpenAlarm]:
    """Return the alarms of a message in its order: as they are, but in a later message those that joined last first."""
    return sorted(members, key=lambda one: -one.began) if again else members


def raised(kind: str, members: Sequence[OpenAlarm], *, again: bool) -> str:
    """Return the sentence of a message that is raised; `again` if it goes on since an earlier one."""
    first = members[0]
    still = "still " if again else ""
    if len(members) == 1:
        known = whom_to_ask(first.owner, first.runbook)
        return f"{still}{kind}: {first.subject}: {first.detail}{known}"
    owners = sorted({one.owner for one in members if one.owner})
    known = f"; owners: {', '.join(owners)}" if 0 < len(owners) <= _NAMED else ""
    names = [one.subject for one in members]
    return f"{still}{kind}: {about(kind, len(members), names)}{known}; `solocron alarms` lists them"


def cleared(kind: str, message: AlarmMessage) -> str:
    """Return the sentence of a message that is cleared."""
    lasted = format_duration(timedelta(seconds=max(1, round((message.at - message.since) / SECOND))))
    return f"{kind} is over: {about(kind, message.count, message.such_as)}, after {lasted}"


def whom_to_ask(owner: str | None, runbook: str | None) -> str:
    """Return the end of a sentence that says who answers for a job, and where it says what to do."""
    return "".join(f"; {what}: {value}" for what, value in (("owner", owner), ("runbook", runbook)) if value)
