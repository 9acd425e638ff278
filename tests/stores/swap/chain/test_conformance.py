"""The commit chain keeps every promise on objects in memory, also where roots are frequent and listings lag."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.objects import MemoryObjects, SharedObjects
from solocron.stores.swap.chain.state import PACE, ChainPace
from solocron.stores.swap.store import SwapStore
from solocron.testing.conformance import KeyStoreConformance, Make, MakeKeys, StoreConformance
from tests.stores import oracle
from tests.stores.swap.breaking import break_text

HASTY = ChainPace(commits=3, kept=0.0, trusted=-1.0)
"""Every third commit makes a root, what it releases is deleted at once, and every reply is doubted."""


class TestChainKeys(KeyStoreConformance):
    pace = PACE
    behind = 0

    @pytest.fixture
    def make_keys(self) -> MakeKeys:
        shared = SharedObjects()
        return lambda namespace="default": ChainKeys(
            MemoryObjects(shared, behind=self.behind), namespace, pace=self.pace
        )


class TestHastyChainKeys(TestChainKeys):
    pace = HASTY
    behind = 5


class TestChain(StoreConformance):
    @pytest.fixture
    def make(self) -> Make:
        shared = SharedObjects()
        return lambda namespace="default": SwapStore(
            ChainKeys(MemoryObjects(shared, behind=3), namespace, pace=HASTY), namespace=namespace
        )

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10))])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, seed: int) -> None:
        oracle.same_as_memory(make, seed=seed, steps=100)
