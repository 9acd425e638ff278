"""Nodes that ended long ago are neither shown nor read, unless they are asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from solocron import InvalidError
from solocron.client import Client
from solocron.clock import SECOND, from_us
from solocron.model.change import Kind
from solocron.model.documents.session import Life
from solocron.stores.contract import All
from solocron.stores.memory import MemoryStore
from solocron.testing.conformance.kit import put, session


@pytest.fixture
def client() -> Client:
    store = MemoryStore()
    put(
        store,
        session("live", expires_at=store.clock() + 60 * SECOND),
        session("old", expires_at=1, state=Life.SWEPT, ended_at=10 * SECOND),
        session("new", expires_at=1, state=Life.SWEPT, ended_at=20 * SECOND),
    )
    return Client(store)


def test_nodes_of_a_span(client: Client) -> None:
    assert [node.session for node in client.nodes()] == ["live"]
    assert [node.session for node in client.nodes(since=from_us(15 * SECOND))] == ["live", "new"]
    assert [node.session for node in client.nodes(ended=True)] == ["live", "new", "old"]
    with pytest.raises(InvalidError, match="no time zone"):
        client.nodes(since=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


def test_listings_do_not_read_every_session_that_is_kept(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = client.store.read, list[Any]()
    monkeypatch.setattr(client.store, "read", lambda which: seen.append(which) or read(which))
    client.nodes()
    client.jobs()
    assert seen
    assert not [which for which in seen if isinstance(which, All) and which.kind is Kind.SESSION]
