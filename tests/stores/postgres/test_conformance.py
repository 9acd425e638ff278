"""PostgreSQL keeps every promise of the contract."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.url import make_store
from solocron.testing.conformance import Make, StoreConformance
from tests.servers import Postgres
from tests.stores.oracle import same_as_memory

numbers = itertools.count(1)


class TestPostgres(StoreConformance):
    @pytest.fixture
    def make(self, postgres: Postgres) -> Iterator[Make]:
        # A schema of its own, dropped again: a hundred databases would take the server half a minute to put to bed.
        schema = f"world_{next(numbers)}"
        yield lambda namespace="default": make_store(f"{postgres.url}?schema={schema}", namespace=namespace)
        with psycopg.connect(postgres.url) as connection:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, PostgresStore)
        with store.pool.link() as link:
            where = f'"{store.schema_name}".solocron_jobs'
            link.db.execute(f"UPDATE {where} SET state = %s WHERE name = %s", ('{"broken', name))
        return True


@pytest.mark.parametrize("seed", [100, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(101, 108))])
def test_a_random_story_goes_as_on_memory(postgres: Postgres, seed: int) -> None:
    same_as_memory(lambda: make_store(postgres.fresh_url()), seed=seed)
