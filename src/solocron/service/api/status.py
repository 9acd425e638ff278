"""`/status`, `/me` and `/alarms`: the namespace at a glance, who is asking, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from solocron.service.call import ApiCall
from solocron.service.reads import StatusAnswer
from solocron.service.shown import shown_run
from solocron.views import AlarmsView

__all__ = ["MeAnswer", "alarms", "me", "status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeAnswer:
    """The caller, as the service knows it."""

    name: str
    role: str
    via: str
    until: datetime | None
    """End of the login; None for a bearer token."""
    namespaces: Mapping[str, str]
    """Addresses of the namespaces of this service that the caller may see, by name."""


def status(call: ApiCall) -> StatusAnswer:
    """Return the nodes, what runs, the counts of the last 24 hours, and what needs attention."""
    found = call.reads.status()
    return replace(found, running=tuple(shown_run(run) for run in found.running))


def alarms(call: ApiCall) -> AlarmsView:
    """Return the open alarms or the closed ones, the messages that were raised, and the silences."""
    found = call.reads.alarms()
    return found if call.given["state"] == "open" else replace(found, alarms=tuple(call.reads.closed_alarms()))


def me(call: ApiCall) -> MeAnswer:
    """Return the identity of the caller, and the addresses of the namespaces of this service that it may see."""
    assert call.caller is not None
    identity = call.caller.identity
    return MeAnswer(
        name=identity.name,
        role=str(identity.role),
        via=str(call.caller.via),
        until=call.caller.until,
        namespaces=call.namespaces,
    )
