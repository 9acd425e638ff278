"""Azure Blob Storage, on Azurite, keeps every promise of a key store and of the contract."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.chain.azure import AzureBlobStore
from solocron.stores.swap.chain.azure.address import AzureAddress
from solocron.stores.swap.chain.azure.blobs import AzureBlobs
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.url import parse
from solocron.testing.conformance import KeyStoreConformance, Make, MakeKeys, StoreConformance
from tests.servers import Azurite
from tests.stores import oracle
from tests.stores.swap.breaking import break_text

pytestmark = pytest.mark.long
"""The server is three hundred packages of npm: `make test-azurite`."""


class TestAzureKeys(KeyStoreConformance):
    @pytest.fixture
    def make_keys(self, azurite: Azurite) -> MakeKeys:
        url = azurite.fresh_url()
        return lambda namespace="default": ChainKeys(AzureBlobs(AzureAddress.of(parse(url), timeout=5.0)), namespace)


class TestAzure(StoreConformance):
    @pytest.fixture
    def make(self, azurite: Azurite) -> Make:
        url = azurite.fresh_url()
        return lambda namespace="default": AzureBlobStore(parse(url), namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        break_text(store, kind, name)
        return True

    @pytest.mark.parametrize("seed", [0, 1])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, seed: int) -> None:
        oracle.same_as_memory(make, seed=seed, steps=200)
