"""The oracle agrees with itself, comes by everything that can happen to a run, and hears a store that differs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from solocron.model.documents.run import ENDED, Record, Status
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Space
from tests.stores.oracle import same_as_memory
from tests.stores.wrong_stores import documents, log, races, selections


@pytest.mark.parametrize("seed", range(4))
def test_two_memory_stores_hear_the_same_story(seed: int) -> None:
    same_as_memory(MemoryStore, seed=seed, steps=200)


def test_the_stories_come_by_every_status() -> None:
    seen: set[Status] = set()

    class Listening(MemoryStore):
        def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
            seen.update(record.status for record in records)
            return super()._append(space, records)

    for seed in range(10, 13):
        same_as_memory(Listening, seed=seed, steps=200)
    # Queues of a thousand are too long for a story: the machine's own tests drop runs.
    assert seen == ENDED - {Status.DROPPED}


@pytest.mark.parametrize(
    "wrong",
    [
        documents.InsertsOnly,
        documents.FoldsNames,
        documents.KnowsOnlyThreeBytes,
        log.ForgetsLastRecords,
        log.KeepsNoFirst,
        races.IgnoresSessions,
        selections.ForgetsHoldersOnUpdate,
        selections.IgnoresPools,
    ],
)
def test_a_store_that_differs_is_heard(wrong: Callable[[], MemoryStore]) -> None:
    with pytest.raises(AssertionError, match="the last of the story"):
        same_as_memory(wrong, seed=1, steps=300)
