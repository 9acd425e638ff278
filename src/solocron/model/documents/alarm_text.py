"""The sentences of messages: what happened, to how many, which for example, and where the rest can be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from solocron.clock import SECOND
from solocron.duration import format_duration
from solocron.model.documents.alarm_message import Message, OpenAlarm

__all__ = ["LISTED", "about", "cleared", "raised"]

LISTED = 20
"""Alarms that a message has in full. The others are in the store."""
_NAMED = 3
_NOUNS = {"no node": "pool", "tier": "store"}


def about(kind: str, count: int, names: Sequence[str]) -> str:
    """Return what alarms of a kind are about, such as "300 jobs, such as a, b, c"."""
    if count == 1:
        return names[0]
    such_as = ", such as" if count > len(names[:_NAMED]) else ":"
    return f"{count} {_NOUNS.get(kind, 'job')}s{such_as} {', '.join(names[:_NAMED])}"


def raised(kind: str, members: Sequence[OpenAlarm], *, again: bool) -> str:
    """Return the sentence of a message that is raised; `again` if it goes on since an earlier one."""
    first = members[0]
    still = "still " if again else ""
    if len(members) == 1:
        known = "".join(f"; {what}: {value}" for what, value in _known(first))
        return f"{still}{kind}: {first.subject}: {first.detail}{known}"
    return f"{still}{kind}: {about(kind, len(members), [one.subject for one in members])}; `solocron alarms` lists them"


def cleared(kind: str, message: Message) -> str:
    """Return the sentence of a message that is cleared."""
    lasted = format_duration(timedelta(seconds=max(1, round((message.at - message.since) / SECOND))))
    return f"{kind} is over: {about(kind, message.count, message.such_as)}, after {lasted}"


def _known(member: OpenAlarm) -> list[tuple[str, str]]:
    """Return the facts of a job that tell a person whom to ask and what to do."""
    facts = (("owner", member.owner), ("runbook", member.runbook))
    return [(what, value) for what, value in facts if value]
