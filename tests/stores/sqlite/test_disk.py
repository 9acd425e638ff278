"""What a disk can do to a SQLite store: full, failing, read-only, unreadable, garbage. One clear error each."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreError, StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.stores.contract import All, Named, Verdict
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.sql.sqlite.link import SQLiteLink
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import add_hold, everything, get, job, log, note, put, record, verdicts
from solocron.testing.conformance.rivals import processes

ROOT = os.geteuid() == 0
NOBODY = 65534


def made(path: Path) -> SQLiteStore:
    store = make_store(f"sqlite:///{path}")
    assert isinstance(store, SQLiteStore)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = made(tmp_path / "a.db")
    store.open()
    yield store
    store.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user can reach into."""
    found = Path(tempfile.mkdtemp(prefix="solocron-"))
    found.chmod(0o755)
    yield found
    shutil.rmtree(found)


def without_rights(body: Callable[[], Any]) -> Any:
    """Run it in a child without root's rights, for whom a mode means something."""

    def child() -> Any:
        if ROOT:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return body()

    return processes([child])[0]


def refusal(path: Path) -> list[str]:
    """The error's name and text when a store is opened there."""
    store = made(path)
    try:
        store.open()
        put(store, note(Kind.KEY, "n"))
    except StoreError as error:
        return [type(error).__name__, str(error)]
    finally:
        store.close()
    return ["no error", ""]


def claim(doc: Any, now: int) -> Change | None:
    change = add_hold("s")(doc, now)
    return change and Change(change.doc, (record(f"{doc.name}@1"),))


def _fill(store: SQLiteStore) -> None:
    for _ in range(50):  # what the write-ahead log has left
        put(store, note(Kind.STEP, "big", {"x": "y" * 20_000}))


class TestFull:
    def test_a_full_disk_writes_nothing_and_goes_on_by_itself_when_there_is_room(self, store: SQLiteStore) -> None:
        put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(3)))
        with store.pool.link() as link:
            pages = link.pragma("page_count")
            assert link.pragma(f"max_page_count = {pages}") == pages
        big = note(Kind.STEP, "big", {"x": "y" * 200_000})
        with pytest.raises(StoreUnavailable, match="is full; nothing was written") as caught:
            put(store, big)
        assert "Free some space" in str(caught.value)
        assert get(store, Kind.STEP, "big") is None
        put(store, big)  # the connection that met the limit was discarded
        assert get(store, Kind.STEP, "big") == big

    @pytest.mark.skipif(not ROOT, reason="only root can mount a small disk")
    def test_a_really_full_disk(self, folder: Path) -> None:
        small = folder / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(small)], check=True)
        try:
            store = made(small / "a.db")
            put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(3)))
            levels = {check.name: check.level for check in store.checks()}
            assert levels["free disk"] == "FAIL"
            room = shutil.disk_usage(small).free
            (small / "ballast").write_bytes(b"x" * room)
            with pytest.raises(StoreUnavailable, match="full"):
                _fill(store)
            before = store.read(All(Kind.JOB))
            assert len(before) == 3
            (small / "ballast").unlink()
            assert verdicts(store.update(everything(), claim)) == dict.fromkeys(("j0", "j1", "j2"), Verdict.APPLIED)
            store.close()
        finally:
            subprocess.run(["umount", str(small)], check=True)

    def test_a_limit_on_the_size_of_files_is_an_error_and_not_a_half_written_store(self, tmp_path: Path) -> None:
        store = made(tmp_path / "a.db")
        put(store, job("j", due_at=1))
        store.close()
        size = (tmp_path / "a.db").stat().st_size

        def limited() -> list[str]:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            store = made(tmp_path / "a.db")
            try:
                put(store, note(Kind.STEP, "big", {"x": "y" * 4 * size}))
            except StoreError as error:
                return [type(error).__name__, str(error)]
            except AssertionError as error:  # the outcome of a failed commit is unknown, and `put` will not have that
                return ["unknown", str(error)]
            return ["no error", ""]

        kind, text = processes([limited])[0]
        assert kind in ("StoreUnavailable", "unknown"), text
        assert get(store, Kind.STEP, "big") is None
        assert get(store, Kind.JOB, "j") is not None
        store.close()


class Failing:
    """A connection whose next statement of a kind fails as a disk would."""

    def __init__(self, real: sqlite3.Connection, on: str, code: int, name: str) -> None:
        self._real, self._on, self._code, self._name = real, on, code, name

    def execute(self, sql: str, *args: Any) -> Any:
        if sql.startswith(self._on):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode, error.sqlite_errorname = self._code, self._name
            raise error
        return self._real.execute(sql, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class TestFailing:
    @pytest.mark.invariant("I7: nothing starts without an acknowledged claim")
    def test_a_commit_whose_sync_failed_is_unknown_and_its_connection_is_discarded(
        self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND), job("k"))
        used: list[SQLiteLink] = []
        with store.pool.link() as link:
            code = sqlite3.SQLITE_IOERR_FSYNC
            monkeypatch.setattr(link, "_db", Failing(link._db, "COMMIT", code, "SQLITE_IOERR_FSYNC"))
            used.append(link)
        applied = store.update(everything(), claim)
        assert verdicts(applied) == {"j": Verdict.UNKNOWN}
        assert "while committing" in (applied.results[0].error or "")
        with store.pool.link() as link:
            assert link is not used[0]

    def test_an_error_before_the_commit_is_certain(self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with store.pool.link() as link:
            code = sqlite3.SQLITE_IOERR_READ
            monkeypatch.setattr(link, "_db", Failing(link._db, "BEGIN", code, "SQLITE_IOERR_READ"))
        with pytest.raises(StoreUnavailable, match=r"failed \(SQLITE_IOERR_READ\); nothing was written"):
            store.update(everything(), claim)
        assert log(store) == ()
        assert verdicts(store.update(everything(), claim)) == {"j": Verdict.APPLIED}

    def test_what_was_written_before_the_disk_failed_is_reported(
        self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A record that SQLite refuses makes the batch be repeated one by one; the disk fails after the first two."""
        put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(4)))
        real, calls = SQLiteStore.commit, []

        def commit(self: SQLiteStore, *args: Any) -> Any:
            calls.append(1)
            if len(calls) == 4:
                raise StoreUnavailable("the disk failed")
            return real(self, *args)

        monkeypatch.setattr(SQLiteStore, "commit", commit)
        refused = lambda doc, now: Change(doc, (record(f"{doc.name}@1", slot=2**70 if doc.name == "j3" else 1),))  # noqa: E731
        found = verdicts(store.update(everything(), refused))
        assert found == {"j0": "applied", "j1": "applied", "j2": "contended", "j3": "contended"}


class TestForbidden:
    def test_a_file_that_may_not_be_written_is_refused(self, folder: Path) -> None:
        made(folder / "a.db").open()
        (folder / "a.db").chmod(0o444)
        folder.chmod(0o555)
        kind, text = without_rights(lambda: refusal(folder / "a.db"))
        assert kind == "StoreRefused"
        assert "cannot be opened for writing" in text
        assert "nothing was written" in text

    def test_an_unreadable_file_is_refused(self, folder: Path) -> None:
        made(folder / "a.db").open()
        (folder / "a.db").chmod(0)
        kind, text = without_rights(lambda: refusal(folder / "a.db"))
        assert kind == "StoreRefused"
        assert "Check the owner and the mode" in text

    def test_a_folder_that_may_not_be_written_is_refused(self, folder: Path) -> None:
        folder.chmod(0o555)
        kind, text = without_rights(lambda: refusal(folder / "new.db"))
        assert kind == "StoreRefused"
        assert str(folder) in text

    @pytest.mark.skipif(not ROOT, reason="only root can mount a disk read-only")
    def test_a_disk_that_turns_read_only_under_a_running_store(self, folder: Path) -> None:
        disk = folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(disk)], check=True)
        try:
            store = made(disk / "a.db")
            put(store, job("j"))
            store.close()
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            assert refusal(disk / "a.db")[0] == "StoreRefused"
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            put(store, job("k"))
            assert [doc.name for doc in store.read(All(Kind.JOB))] == ["j", "k"]
            store.close()
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def test_a_file_that_is_no_database_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        garbage = b"this is not a database " * 500
        (tmp_path / "a.db").write_bytes(garbage)
        kind, text = refusal(tmp_path / "a.db")
        assert kind == "StoreRefused"
        assert "is not a SQLite database" in text
        assert (tmp_path / "a.db").read_bytes() == garbage

    def test_a_database_that_somebody_keeps_locked_is_unavailable(self, tmp_path: Path) -> None:
        store = SQLiteStore(made(tmp_path / "a.db")._url)
        store._lease = SECOND  # gives up after the least time there is
        put(store, job("j"))
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match=r"locked by another process .*\. If it lasts, look for"):
            store.update(Named(Kind.JOB, ("j",)), lambda doc, now: Change(replace(doc, fence=1)))
        other.execute("ROLLBACK")
        other.close()
        put(store, job("j", fence=1))
        assert get(store, Kind.JOB, "j").fence == 1
        store.close()
