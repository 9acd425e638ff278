"""Every line that `doctor` shows of a SQLite store turns when what it looks at is wrong."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from solocron.clock import SECOND, SystemClock
from solocron.stores.contract import Check, Tier
from solocron.stores.sql.sqlite import SQLiteStore, checks, file
from solocron.stores.url import make_store

LINES = {
    *("file mode", "folder", "file system", "free disk"),
    *("journal mode", "synchronous", "schema", "clock"),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = make_store(f"sqlite:///{tmp_path}/a.db")
    assert isinstance(store, SQLiteStore)
    store.open()
    yield store
    store.close()


def line(store: SQLiteStore, name: str) -> Check:
    (found,) = [check for check in store.checks() if check.name == name]
    assert found.level == "OK" or found.remedy
    return found


def test_a_healthy_store_is_all_right(store: SQLiteStore) -> None:
    found = store.checks()
    assert {check.name for check in found} == LINES
    assert {check.level for check in found} == {"OK"}
    assert store.capabilities.tier is Tier.A


@pytest.mark.parametrize(("mode", "level"), [(0o644, "WARN"), (0o640, "WARN"), (0o666, "FAIL"), (0o660, "FAIL")])
def test_a_file_that_others_may_read_or_write(store: SQLiteStore, mode: int, level: str) -> None:
    store.place.path.chmod(mode)
    assert line(store, "file mode").level == level
    assert "chmod 600" in (line(store, "file mode").remedy or "")


@pytest.mark.parametrize(("mode", "level"), [(0o777, "FAIL"), (0o1777, "WARN")])
def test_a_folder_that_others_may_write_to(store: SQLiteStore, mode: int, level: str) -> None:
    store.place.path.parent.chmod(mode)
    assert line(store, "folder").level == level


@pytest.mark.parametrize(
    ("kind", "level"), [("nfs4", "FAIL"), ("fuse.sshfs", "FAIL"), ("virtiofs", "WARN"), ("fuse.overlayfs", "OK")]
)
def test_a_file_system_that_is_not_local_and_one_of_containers_that_is(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, kind: str, level: str
) -> None:
    for module in (checks, file):
        monkeypatch.setattr(module, "filesystem_of", lambda folder: kind)
    assert line(store, "file system").level == level


@pytest.mark.parametrize(("free", "level"), [(1024, "FAIL"), (20 * 1024**2, "WARN")])
def test_a_disk_that_is_nearly_full(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(free))
    assert line(store, "free disk").level == level


def test_a_journal_mode_that_somebody_changed(store: SQLiteStore) -> None:
    store.close()
    store._opened = True  # a node that runs on
    other = sqlite3.connect(store.place.path, isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")
    other.close()
    assert line(store, "journal mode").level == "FAIL"


def test_a_weaker_synchronous_by_choice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    weak = make_store(f"sqlite:///{tmp_path}/weak.db?synchronous=normal")
    assert isinstance(weak, SQLiteStore)
    weak.open()
    assert line(weak, "synchronous").level == "WARN"
    assert weak.capabilities.tier is Tier.B
    (warned,) = caplog.records
    assert "tier B" in warned.getMessage()
    weak.close()


def test_a_schema_that_is_missing(store: SQLiteStore) -> None:
    with store.pool.link() as link:
        link.script("DELETE FROM solocron_meta WHERE name = 'schema'")
    assert (line(store, "schema").level, line(store, "schema").remedy) == ("FAIL", "solocron migrate")


def test_a_wall_clock_that_is_wrong(store: SQLiteStore) -> None:
    class Behind(SystemClock):
        def wall(self) -> int:
            return super().wall() - 90 * SECOND

    wrong = SQLiteStore(store._url, clock=Behind())
    found = line(wrong, "clock")
    assert found.level == "WARN"
    assert "90.0" in found.detail
    wrong.close()


def test_a_store_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"garbage " * 1000)
    store = make_store(f"sqlite:///{tmp_path}/a.db")
    failed = [check for check in store.checks() if check.name == "store"]
    assert [check.level for check in failed] == ["FAIL"]
    assert "not a SQLite database" in failed[0].detail
    store.close()


def test_a_store_that_is_not_there_says_so(tmp_path: Path) -> None:
    store = make_store(f"sqlite:///{tmp_path}/missing/a.db")
    levels = {check.name: check.level for check in store.checks()}
    assert levels == {"file mode": "FAIL", "folder": "FAIL", "file system": "OK", "free disk": "FAIL"}


def test_looking_does_not_create_a_store(tmp_path: Path) -> None:
    store = make_store(f"sqlite:///{tmp_path}/a.db")
    assert {check.name: check.level for check in store.checks()}["file mode"] == "FAIL"
    assert list(tmp_path.iterdir()) == []
