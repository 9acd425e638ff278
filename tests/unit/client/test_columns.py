"""Columns of a span: their sums are those of the records, and closed ones are counted once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.client.columns import Columns, size_of
from solocron.clock import SECOND
from solocron.model.documents.run import Status
from solocron.stores.contract import Store
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import counts_of, job, put, record

HOUR = 3_600 * SECOND
NOW = 20_000 * 24 * HOUR + 17 * 61 * SECOND


def filled(name: str) -> Store:
    store = make_store(f"memory://{name}")
    records = tuple(
        record(
            f"j@{n}",
            at=NOW - n * 37 * SECOND,
            attempt=0 if n % 11 == 0 else 1,
            node=None if n % 11 == 0 else "ab"[n % 2],
            status=Status.SKIPPED if n % 11 == 0 else Status.FAILED if n % 5 == 0 else Status.SUCCEEDED,
        )
        for n in range(1_000)
    )
    put(store, job("j"), records=records)
    return store


def total(columns: Columns, start: int, end: int, now: int, *, by_node: bool) -> int:
    return sum(
        count
        for _, _, nodes in columns.counts(start, end, now, by_node=by_node)
        for counts in nodes.values()
        for count in counts.values()
    )


STORE, KEPT = filled("columns"), Columns(filled("columns-kept"))


@given(
    back=st.integers(SECOND, 10 * HOUR),
    gap=st.integers(0, 30 * 60 * SECOND),
    later=st.integers(0, 2 * HOUR),
)
def test_the_columns_have_every_record_of_their_span(back: int, gap: int, later: int) -> None:
    """Also those of a reader that has looked at other spans before."""
    start, end, now = NOW - gap - back, NOW - gap, NOW + later
    first = start // size_of(back) * size_of(back)
    expected = sum(counts_of(STORE, first, end).values())
    for columns in (KEPT, Columns(STORE)):
        assert total(columns, start, end, now, by_node=False) == expected
    by_node = sum(
        sum(counts.values())
        for at in range(first, end, HOUR)
        for (_, node), counts in STORE.density(at, min(at + HOUR, end), HOUR).items()
        if node is not None
    )
    assert total(KEPT, start, end, now, by_node=True) == by_node


def test_columns_follow_each_other_and_end_with_the_span() -> None:
    found = list(Columns(STORE).counts(NOW - 6 * HOUR, NOW, NOW, by_node=False))
    assert found[-1][1] == NOW
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    assert 50 < len(found) <= 91


@pytest.mark.parametrize("by_node", [False, True])
@pytest.mark.parametrize("hours", [1, 6])
def test_a_closed_column_is_counted_once(hours: int, by_node: bool) -> None:
    store = filled(f"once-{hours}-{by_node}")
    columns = Columns(store)
    looked: list[int] = []
    density, tally = store.density, store.tally_by_time

    def spans(since: int, until: int, bucket: int, **more: str) -> None:
        looked.append(until - since)

    store.density = lambda *given: (spans(*given), density(*given))[1]  # type: ignore[method-assign,func-returns-value]
    store.tally_by_time = lambda *given: (spans(*given), tally(*given))[1]  # type: ignore[method-assign,func-returns-value]
    first = total(columns, NOW - hours * HOUR, NOW, NOW, by_node=by_node)
    assert sum(looked) >= hours * HOUR
    looked.clear()
    assert total(columns, NOW - hours * HOUR, NOW, NOW, by_node=by_node) == first
    assert 0 < sum(looked) <= 120 * SECOND
    looked.clear()
    total(columns, NOW - hours * HOUR + 30 * SECOND, NOW + 30 * SECOND, NOW + 30 * SECOND, by_node=by_node)
    assert sum(looked) <= 240 * SECOND, "a span that moves on has most of its columns in common"


@pytest.mark.parametrize("by_node", [False, True])
@pytest.mark.parametrize("seconds", [60, 90, 600, 3_600])
def test_the_open_columns_are_counted_in_one_statement(seconds: int, by_node: bool) -> None:
    """A young fleet is drawn by the second: each of its columns is open."""
    store = filled(f"open-{seconds}-{by_node}")
    columns, asked = Columns(store), list[str]()
    density, tally = store.density, store.tally_by_time
    total(columns, NOW - seconds * SECOND, NOW, NOW, by_node=by_node)  # what is closed is known from now on
    store.density = lambda *given: (asked.append("density"), density(*given))[1]  # type: ignore[method-assign,func-returns-value]
    store.tally_by_time = lambda *given: (asked.append("tally"), tally(*given))[1]  # type: ignore[method-assign,func-returns-value]
    total(columns, NOW - seconds * SECOND, NOW, NOW, by_node=by_node)
    assert len(asked) == 1
