"""Four processes that want to write without end: none gets less than half its share."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solocron.model.change import Change, Kind
from solocron.stores.contract import Named
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import note, put
from solocron.testing.conformance.rivals import processes


def shares(path: Path, seconds: float) -> list[int]:
    """How often each of four processes has written its own document."""
    first = make_store(f"sqlite:///{path}")
    put(first, *(note(Kind.KEY, f"n{i}", {"count": 0}) for i in range(4)))
    first.close()

    def add(doc: Any, now: int) -> Change:
        return Change(replace(doc, body={"count": doc.body["count"] + 1}))

    def write(number: int) -> int:
        store = make_store(f"sqlite:///{path}")
        store.open()
        end = time.monotonic() + seconds
        count = 0
        while time.monotonic() < end:
            store.update(Named(Kind.KEY, (f"n{number}",)), add)
            count += 1
        store.close()
        return count

    return processes([lambda number=number: write(number) for number in range(4)])


def test_four_writers_in_a_tight_loop_share_alike(tmp_path: Path) -> None:
    counts = shares(tmp_path / "a.db", 2.0)
    assert min(counts) >= sum(counts) / 4 / 2, counts


@pytest.mark.long
@pytest.mark.alone
def test_four_writers_share_alike_for_ten_seconds(tmp_path: Path) -> None:
    counts = shares(tmp_path / "a.db", 10.0)
    assert min(counts) >= sum(counts) / 4 / 2, counts
    assert sum(counts) > 1000
