"""SQLite keeps every promise of the contract."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.url import make_store
from solocron.testing.conformance import Make, StoreConformance
from tests.stores.oracle import same_as_memory


class TestSQLite(StoreConformance):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return lambda namespace="default": make_store(f"sqlite:///{tmp_path}/solocron.db", namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, SQLiteStore)
        with sqlite3.connect(store.place.path, isolation_level=None) as other:
            other.execute('UPDATE solocron_jobs SET state = \'{"c": 1, "broken\' WHERE name = ?', (name,))
        other.close()
        return True


@pytest.mark.parametrize("seed", [100, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(101, 108))])
def test_a_random_story_goes_as_on_memory(tmp_path: Path, seed: int) -> None:
    same_as_memory(lambda: make_store(f"sqlite:///{tmp_path}/solocron.db"), seed=seed)
