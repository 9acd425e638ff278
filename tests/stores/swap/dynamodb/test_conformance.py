"""DynamoDB keeps every promise of a key store and of the contract, and tells the same story as the memory store."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.dynamodb import DynamoStore
from solocron.stores.swap.dynamodb.address import DynamoAddress
from solocron.stores.swap.dynamodb.keys import DynamoKeys
from solocron.stores.url import parse
from solocron.testing.conformance import KeyStoreConformance, Make, MakeKeys, StoreConformance
from tests.servers import DynamoDB
from tests.stores import oracle
from tests.stores.swap.breaking import break_text


@pytest.mark.long
class TestDynamoKeys(KeyStoreConformance):
    """Half a minute; the suite of the store, below, goes through the same calls in every run of the tests."""

    @pytest.fixture
    def make_keys(self, dynamodb: DynamoDB) -> MakeKeys:
        url = dynamodb.fresh_url()
        return lambda namespace="default": DynamoKeys(DynamoAddress.of(parse(url), timeout=5.0), namespace)


class TestDynamoDB(StoreConformance):
    @pytest.fixture
    def make(self, dynamodb: DynamoDB) -> Make:
        url = dynamodb.fresh_url()
        return lambda namespace="default": DynamoStore(parse(url), namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    @pytest.mark.parametrize("steps", [50, pytest.param(600, marks=pytest.mark.long)])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, steps: int) -> None:
        oracle.same_as_memory(make, seed=0, steps=steps)
