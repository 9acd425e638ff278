"""A process that is a node: its memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from solocron.process import settle_memory


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_is_there_to_stay_is_not_searched_for_garbage() -> None:
    gc.set_threshold(700, 10, 10)
    settle_memory()
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold() == (10_000, 10, 10)


@pytest.mark.parametrize("own", [(0, 10, 10), (50_000, 5, 5)])
def test_thresholds_of_ones_own_stay(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    settle_memory()
    assert gc.get_threshold() == own


def test_garbage_that_comes_later_is_still_found() -> None:
    settle_memory()
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    assert gc.collect() > 0
