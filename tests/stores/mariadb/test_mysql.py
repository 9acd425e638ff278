"""A real MySQL keeps every promise too: an optional target, named by SOLOCRON_TEST_MYSQL=mysql://user:password@host/db.

MySQL cannot be had from the package sources that the other servers come from, so it is not part of every test run.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.sql.mysql import MySQLStore
from solocron.stores.sql.statements import TABLES
from solocron.stores.url import make_store
from solocron.testing.conformance import Make, StoreConformance
from tests.stores.oracle import same_as_memory

SERVER = os.environ.get("SOLOCRON_TEST_MYSQL", "")
if not SERVER:
    pytest.skip("SOLOCRON_TEST_MYSQL names no MySQL server", allow_module_level=True)
numbers = itertools.count(1)


@pytest.fixture
def url() -> Iterator[str]:
    """Tables of the test's own, dropped after it."""
    prefix = f"test_{os.getpid()}_{next(numbers)}_"
    yield f"{SERVER}?prefix={prefix}"
    store = make_store(SERVER)
    assert isinstance(store, MySQLStore)
    with store.pool.link() as link:
        assert not link.is_mariadb, "this is MariaDB, which has tests of its own"
        link.execute(f"DROP TABLE IF EXISTS {', '.join(f'{prefix}{name}' for name in TABLES)}")
    store.pool.close()


class TestMySQL(StoreConformance):
    @pytest.fixture
    def make(self, url: str) -> Make:
        return lambda namespace="default": make_store(url, namespace=namespace)

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        assert isinstance(store, MySQLStore)
        with store.pool.link() as link, link.db.cursor() as cursor:
            cursor.execute(f"UPDATE {store.prefix}jobs SET state = %s WHERE name = %s", ('{"broken', name))
        return True


def test_a_random_story_goes_as_on_memory(url: str) -> None:
    same_as_memory(lambda: make_store(url), seed=100)


def test_every_line_of_doctor_is_all_right(url: str) -> None:
    store = make_store(url)
    store.open()
    assert {check.level for check in store.checks()} == {"OK"}
    store.close()
