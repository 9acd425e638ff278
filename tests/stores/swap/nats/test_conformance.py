"""NATS keeps every promise of a key store and of the contract, and tells the same story as the memory store."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.nats import NatsStore
from solocron.stores.swap.nats.address import NatsAddress
from solocron.stores.swap.nats.keys import NatsKeys
from solocron.stores.url import parse
from solocron.testing.conformance import KeyStoreConformance, Make, MakeKeys, StoreConformance
from tests.servers import Nats
from tests.stores import oracle
from tests.stores.swap.breaking import break_text


class TestNatsKeys(KeyStoreConformance):
    @pytest.fixture
    def make_keys(self, nats: Nats) -> MakeKeys:
        url = nats.fresh_url()
        return lambda namespace="default": NatsKeys(NatsAddress.of(parse(url), timeout=5.0), namespace)


class TestNats(StoreConformance):
    @pytest.fixture
    def make(self, nats: Nats) -> Make:
        url = nats.fresh_url()
        return lambda namespace="default": NatsStore(parse(url), namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, seed: int) -> None:
        oracle.same_as_memory(make, seed=seed, steps=300)
