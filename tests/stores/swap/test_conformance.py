"""The swap family keeps every promise of the contract on the memory key store, whatever the limits of the server."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.key_store import KeyLimits
from solocron.stores.swap.layout import document_key
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.stores.swap.store import SwapStore
from solocron.testing.conformance import Make, StoreConformance
from tests.stores import oracle
from tests.stores.swap.breaking import break_text


class TestSwap(StoreConformance):
    limits: KeyLimits | None = None
    tells = True

    @pytest.fixture
    def make(self) -> Make:
        shared = SharedKeys()

        def client(namespace: str = "default") -> Store:
            keys = MemoryKeys(shared, namespace, limits=self.limits, tells=self.tells)
            return SwapStore(keys, namespace=namespace)

        return client

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    @pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 10))])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, seed: int) -> None:
        oracle.same_as_memory(make, seed=seed, steps=300)


class TestASmallServer(TestSwap):
    """One that takes few keys at once, and neither names what is stale nor looks: portions, parcels, questions."""

    limits = KeyLimits(keys=17, bytes=400_000, value=300_000)
    tells = False

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        """Break the whole value, header included."""
        assert isinstance(store, SwapStore)
        store._keys.commit({}, {document_key(kind, name): "no document at all"})
        return True
