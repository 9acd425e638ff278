"""MariaDB keeps every promise of the contract."""

from __future__ import annotations

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.sql.mysql import MySQLStore
from solocron.stores.url import make_store
from solocron.testing.conformance import Make, StoreConformance
from tests.conformance.oracle import same_as_memory
from tests.servers import MariaDB


class TestMariaDB(StoreConformance):
    @pytest.fixture
    def make(self, mariadb: MariaDB) -> Make:
        url = mariadb.fresh_url()
        return lambda namespace="default": make_store(url, namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, MySQLStore)
        with store.pool.link() as link, link.db.cursor() as cursor:
            cursor.execute('UPDATE solocron_jobs SET state = \'{"c": 1, "broken\' WHERE name = %s', (name,))
        return True


@pytest.mark.parametrize("seed", range(100, 102))
def test_a_random_story_goes_as_on_memory(mariadb: MariaDB, seed: int) -> None:
    same_as_memory(lambda: make_store(mariadb.fresh_url()), seed=seed)
