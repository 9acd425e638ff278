"""Alarms that are over can be looked up; causes that passed before they became alarms are none."""

from __future__ import annotations

from solocron.client import Client
from solocron.clock import SECOND, from_us
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.alarm import Cause, close, open_
from solocron.stores.memory import MemoryStore
from solocron.testing.conformance.kit import put


def raised(cause: Cause, *, until: int | None) -> SmallDocument:
    doc = document(open_(Absent(Kind.ALARM, cause.name), cause, seen=10 * SECOND, now=10 * SECOND))
    return doc if until is None else document(close(doc, seen=until, now=until))


def document(change: Change | None) -> SmallDocument:
    assert change is not None
    assert isinstance(change.doc, SmallDocument)
    return change.doc


def test_closed_alarms_come_last_first_with_their_ends() -> None:
    store = MemoryStore()
    put(
        store,
        raised(Cause(kind="late", subject="first", detail="due"), until=20 * SECOND),
        raised(Cause(kind="late", subject="second", detail="due"), until=30 * SECOND),
        raised(Cause(kind="late", subject="open", detail="due"), until=None),
        raised(Cause(kind="no node", subject="passed", detail="none", patience=60 * SECOND), until=20 * SECOND),
    )
    found = Client(store).closed_alarms()
    assert [one.subject for one in found] == ["second", "first"]
    assert (found[0].state, found[0].since, found[0].until) == ("closed", from_us(10 * SECOND), from_us(30 * SECOND))
    assert not found[0].counts
