"""A change that appends more records than a commit can hold: packed with its document, unpacked by any client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from solocron.errors import StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Status
from solocron.stores.contract import Named, Verdict
from solocron.stores.swap import parcels, transaction
from solocron.stores.swap.key_store import KeyLimits, Span, Swapped
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.stores.swap.parcels import PARCELS
from solocron.stores.swap.store import SwapStore
from solocron.testing.conformance.kit import counts_of, get, job, log, put, record, write

LIMITS = KeyLimits(keys=40, bytes=1_000_000, value=500_000)
MANY = tuple(record(f"j@{i:03}", at=100 + i) for i in range(90))


@pytest.fixture
def shared() -> SharedKeys:
    return SharedKeys()


def client(shared: SharedKeys) -> SwapStore:
    store = SwapStore(MemoryKeys(shared, limits=LIMITS))
    store.open()
    return store


@pytest.fixture
def died(shared: SharedKeys) -> SwapStore:
    return dies_before_unpacking(shared)


def dies_before_unpacking(shared: SharedKeys) -> SwapStore:
    """Return a client that died after its commit, before it had unpacked anything."""
    store = client(shared)
    put(store, job("j"))
    with patch.object(transaction, "unpack_all", _dies):
        (result,) = write(store, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=1), MANY)).results
    assert result.verdict is Verdict.APPLIED
    assert len(packed(store)) == 7
    return store


def _dies(*_: Any) -> None:
    raise StoreUnavailable("dead")


def packed(store: SwapStore) -> list[Any]:
    return list(store._keys.fetch((), [Span.below(PARCELS)]).pages[0])


def test_the_writer_unpacks_at_once(shared: SharedKeys) -> None:
    store = client(shared)
    put(store, job("j"), records=MANY)
    assert packed(store) == []
    assert log(client(shared)) == MANY[::-1]


def test_readers_see_what_is_still_packed(shared: SharedKeys, died: SwapStore) -> None:
    reader = client(shared)
    assert log(reader) == MANY[::-1]
    assert log(reader, job="j", since=120, until=123) == MANY[22:19:-1]
    assert log(reader, run="j@005") == (MANY[5],)
    assert counts_of(reader) == {"succeeded": 90}
    assert counts_of(reader, job="j") == {"succeeded": 90}
    assert len(packed(reader)) == 7


def test_a_record_in_both_places_is_read_once(shared: SharedKeys, died: SwapStore) -> None:
    parcels.unpack(died._calls, packed(died)[:3])
    reader = client(shared)
    assert log(reader) == MANY[::-1]
    assert counts_of(reader) == {"succeeded": 90}


def test_the_next_writer_of_the_document_unpacks_first(shared: SharedKeys, died: SwapStore) -> None:
    """Else a second record of an attempt would go unnoticed."""
    second = replace(MANY[3], status=Status.LOST)
    (result,) = write(client(shared), Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=2), (second,))).results
    assert (result.verdict, result.duplicates) == (Verdict.APPLIED, (MANY[3],))
    assert packed(died) == []
    assert log(died) == MANY[::-1]


def test_pruning_unpacks_and_removes(shared: SharedKeys, died: SwapStore) -> None:
    assert client(shared).prune(before=110, limit=1_000) == 10
    assert packed(died) == []
    assert log(died) == MANY[:9:-1]


def test_a_frozen_client_unpacks_nothing_again(shared: SharedKeys, died: SwapStore) -> None:
    """What was unpacked and pruned meanwhile does not come back."""
    frozen = packed(died)
    other = client(shared)
    other.prune(before=1_000, limit=1_000)
    assert log(other) == ()
    parcels.unpack(died._calls, frozen)
    assert log(other) == ()


def test_records_that_are_there_already_are_told_and_left_out(shared: SharedKeys) -> None:
    store = client(shared)
    first = replace(MANY[50], status=Status.LOST)
    put(store, job("k"), records=(first, MANY[60]))
    put(store, job("j"))
    (result,) = write(store, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=1), MANY)).results
    assert result.duplicates == (first,)
    assert log(store, run=MANY[50].run) == (first,)
    assert len(log(store)) == 90


def test_a_document_that_no_commit_can_hold_is_set_aside_alone(shared: SharedKeys) -> None:
    store = client(shared)
    put(store, job("i"), job("j"))
    large = "x" * LIMITS.bytes
    applied = store.update(
        Named(Kind.JOB, ("i", "j")), lambda doc, now: Change(job(doc.name, payload=large if doc.name == "i" else "y"))
    )
    assert [result.verdict for result in applied.results] == [Verdict.BLOCKED, Verdict.APPLIED]
    assert "bytes" in (applied.results[0].error or "")
    assert get(store, Kind.JOB, "i") == job("i")


def test_a_long_fixed_text_is_not_written_with_every_claim(shared: SharedKeys) -> None:
    store = client(shared)
    put(store, job("j", payload="x" * 60_000))
    written: list[int] = []
    real = store._keys.commit

    def counting(checks: Any, writes: Any, **more: Any) -> Any:
        written.append(sum(len(value or "") for value in writes.values()))
        return real(checks, writes, **more)

    store._keys.commit = counting  # type: ignore[method-assign]
    for _ in range(3):
        write(store, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=doc.fence + 1)))
    assert max(written) < 2_000
    assert get(client(shared), Kind.JOB, "j").definition.payload == "x" * 60_000
    write(store, Kind.JOB, "j", lambda doc, now: Change(job("j", payload="short")))
    assert isinstance(store._keys.commit({}, {}), Swapped)
    assert store._keys.fetch(["f/job/j"]).items == {}
