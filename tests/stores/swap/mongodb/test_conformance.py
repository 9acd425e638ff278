"""MongoDB keeps every promise of a key store and of the contract, and tells the same story as the memory store."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.mongodb import MongoStore
from solocron.stores.swap.mongodb.address import MongoAddress
from solocron.stores.swap.mongodb.keys import MongoKeys
from solocron.stores.url import parse
from solocron.testing.conformance import KeyStoreConformance, Make, MakeKeys, StoreConformance
from tests.servers import MongoDB
from tests.stores import oracle
from tests.stores.swap.breaking import break_text

pytestmark = pytest.mark.long
"""The server comes with Wine: `make test-mongodb`."""


class TestMongoKeys(KeyStoreConformance):
    @pytest.fixture
    def make_keys(self, mongodb: MongoDB) -> MakeKeys:
        url = mongodb.fresh_url()
        return lambda namespace="default": MongoKeys(MongoAddress.of(parse(url), timeout=5.0), namespace)


class TestMongoDB(StoreConformance):
    @pytest.fixture
    def make(self, mongodb: MongoDB) -> Make:
        url = mongodb.fresh_url()
        return lambda namespace="default": MongoStore(parse(url), namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    @pytest.mark.parametrize("seed", [0, 1])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, seed: int) -> None:
        oracle.same_as_memory(make, seed=seed, steps=300)
