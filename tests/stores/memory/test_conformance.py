"""The reference store keeps every promise that it is the reference for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.memory import MemoryStore, World
from solocron.testing.conformance import Make, StoreConformance


class TestMemory(StoreConformance):
    @pytest.fixture
    def make(self) -> Make:
        world = World()
        return lambda namespace="default": MemoryStore(namespace=namespace, world=world)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, MemoryStore)
        docs = store.world.spaces[store.namespace].docs[kind]
        docs[name] = replace(docs[name], row=docs[name].row._replace(state='{"c": 1, "broken'))
        return True
