"""ZooKeeper keeps every promise of a key store and of the contract, and tells the same story as the memory store."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.zookeeper import ZooStore
from solocron.stores.swap.zookeeper.address import ZooAddress
from solocron.stores.swap.zookeeper.keys import ZooKeys
from solocron.stores.url import parse
from solocron.testing.conformance import KeyStoreConformance, Make, MakeKeys, StoreConformance
from tests.servers import ZooKeeper
from tests.stores import oracle
from tests.stores.swap.breaking import break_text


class TestZooKeys(KeyStoreConformance):
    @pytest.fixture
    def make_keys(self, zookeeper: ZooKeeper) -> MakeKeys:
        url = zookeeper.fresh_url()
        return lambda namespace="default": ZooKeys(ZooAddress.of(parse(url), timeout=5.0), namespace)


class TestZooKeeper(StoreConformance):
    @pytest.fixture
    def make(self, zookeeper: ZooKeeper) -> Make:
        url = zookeeper.fresh_url()
        return lambda namespace="default": ZooStore(parse(url), namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, seed: int) -> None:
        oracle.same_as_memory(make, seed=seed, steps=300)
