"""Put an act on record before it is done: who asked for it, from where, and what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from solocron.client.audit import Audited
from solocron.model.documents.audit import Act
from solocron.service.call import ApiCall
from solocron.service.identity import Via
from solocron.service.shown import redacted

__all__ = ["audited"]


@contextmanager
def audited(call: ApiCall, act: str, subject: str, *, before: Any = None, note: str | None = None) -> Iterator[Audited]:
    """Write the entry of an act, run the body, and add how it ended. What cannot be put on record is not done."""
    assert call.caller is not None
    identity = call.caller.identity
    asked = Act(
        act=act,
        subject=subject,
        via="dashboard" if call.is_form or call.caller.via is Via.COOKIE else "api",
        who=identity.name,
        role=str(identity.role),
        address=call.head.address,
        note=note,
        request=call.head.id,
        before=redacted(before),
    )
    with call.writes.audited(asked) as under_way:
        yield under_way
