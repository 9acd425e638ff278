"""Redis and Valkey keep every promise of the contract, and tell the same story as the memory store."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.redis import RedisStore
from solocron.testing.conformance import Make, StoreConformance
from tests.servers import Redis, Valkey
from tests.stores import oracle


class TestRedis(StoreConformance):
    @pytest.fixture
    def server(self, redis_server: Redis) -> Redis:
        return redis_server

    @pytest.fixture
    def make(self, server: Redis) -> Make:
        url = server.fresh_url()
        return lambda namespace="default": RedisStore(url, namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, RedisStore)
        key = f"{{solocron:{store.namespace}}}:{kind}:{name}"
        store._caller.command("HSET", key, "s", '{"c": 1, "broken')
        return True

    @pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 10))])
    def test_it_tells_the_same_story_as_the_memory_store(self, make: Make, seed: int) -> None:
        oracle.same_as_memory(make, seed=seed, steps=300)


class TestValkey(TestRedis):
    @pytest.fixture
    def server(self, valkey: Valkey) -> Redis:
        return valkey
