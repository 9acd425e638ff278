"""PostgreSQL keeps every promise of the contract."""

from __future__ import annotations

import psycopg
import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.url import make_store
from solocron.testing.conformance import Make, StoreConformance
from tests.servers import Postgres


class TestPostgres(StoreConformance):
    @pytest.fixture
    def make(self, postgres: Postgres) -> Make:
        url = postgres.fresh_url()
        return lambda namespace="default": make_store(url, namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, PostgresStore)
        with psycopg.connect(store._url.secret.reveal()) as other:
            other.execute('UPDATE solocron_jobs SET state = \'{"c": 1, "broken\' WHERE name = %s', (name,))
        return True
