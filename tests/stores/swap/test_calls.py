"""What the usual writes cost: a renewal and an end are one call, a claim is three."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.namespace import Namespace
from solocron.model.documents.session import renew
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.stores.swap.store import SwapStore
from solocron.testing.conformance.kit import job, put, record, session, take, write


@pytest.fixture
def store() -> SwapStore:
    store = SwapStore(MemoryKeys(SharedKeys()))
    put(store, session("s", expires_at=store.clock() + 3_600 * SECOND))
    put(store, Namespace(count=1, token="t", identity=store.identity()).note())
    put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(5)))
    return store


def sent(store: SwapStore, act: Callable[[], object]) -> dict[str, int]:
    before = Counter(store.statements)
    act()
    return dict(store.statements - before)


def test_a_renewal_is_one_call_and_tells_holds_and_gate(store: SwapStore) -> None:
    """Else a node would read both after every renewal."""
    write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now))
    told = []
    cost = sent(store, lambda: told.append(write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now))))
    assert cost == {"commit": 1}
    assert told[0].holds is False
    assert told[0].gate == (f"open 1.t {store.identity()} -", store.identity())


def test_a_claim_is_three_calls_and_its_end_one(store: SwapStore) -> None:
    assert sent(store, lambda: take(store, "s", session="s")) == {"fetch": 2, "commit": 1}

    def end() -> None:
        change = lambda doc, now: Change(replace(doc, active=()), (record(f"{doc.name}@1", at=now),))  # noqa: E731
        write(store, Kind.JOB, "j0", change)

    assert sent(store, end) == {"commit": 1}
