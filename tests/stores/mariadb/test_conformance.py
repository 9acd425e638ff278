"""MariaDB keeps every promise of the contract."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.sql.mysql import MySQLStore
from solocron.stores.sql.statements import TABLES
from solocron.stores.url import make_store
from solocron.testing.conformance import Make, StoreConformance
from tests.servers import MariaDB
from tests.stores.oracle import same_as_memory

numbers = itertools.count(1)


class TestMariaDB(StoreConformance):
    @pytest.fixture
    def make(self, mariadb: MariaDB) -> Iterator[Make]:
        # Tables of its own, dropped again: a hundred databases would take the server a minute to put to bed.
        prefix = f"world{next(numbers)}_"
        yield lambda namespace="default": make_store(f"{mariadb.url}?prefix={prefix}", namespace=namespace)
        store = make_store(mariadb.url)
        assert isinstance(store, MySQLStore)
        with store.pool.link() as link:
            tables = ", ".join(f"{prefix}{name}" for name in TABLES)
            link.execute(f"DROP TABLE IF EXISTS {tables}")
        store.pool.close()

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, MySQLStore)
        with store.pool.link() as link, link.db.cursor() as cursor:
            cursor.execute(f"UPDATE {store.prefix}jobs SET state = %s WHERE name = %s", ('{"broken', name))
        return True


@pytest.mark.parametrize("seed", [100, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(101, 108))])
def test_a_random_story_goes_as_on_memory(mariadb: MariaDB, seed: int) -> None:
    same_as_memory(lambda: make_store(mariadb.fresh_url()), seed=seed)
