"""Processes that die or freeze in the middle of a write: nothing is half written, no other process stops for long."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from solocron.stores.contract import All, HeldBy, Named
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.sql.sqlite.link import SQLiteLink
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import add_hold, everything, get, job, log, put, record, take, verdicts

JOBS = 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = make_store(f"sqlite:///{tmp_path}/a.db")
    assert isinstance(store, SQLiteStore)
    store.open()
    yield store
    store.close()


@contextmanager
def child_of(body: Callable[[Callable[[], None]], None]) -> Iterator[int]:
    """A process that runs the body, which says when it is where the test wants it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            body(lambda: os.write(write, b"x"))  # type: ignore[arg-type, return-value]
        finally:
            os._exit(0)
    os.close(write)
    try:
        assert os.read(read, 1) == b"x"
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(read)


def claim(doc: Any, now: int) -> Change | None:
    change = add_hold("s")(doc, now)
    return change and Change(change.doc, (), "mine")


def finish(doc: Any, now: int) -> Change:
    done = record(f"{doc.name}@1", status=Status.SUCCEEDED)
    return Change(job(doc.name), (done,))


def stuck_in(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, verb: str, ready: Callable[[], None]) -> None:
    """Stop forever just before this verb of the connection."""

    def stop(self: SQLiteLink, *args: Any) -> None:
        ready()
        while True:
            signal.pause()

    monkeypatch.setattr(SQLiteLink, verb, stop)


@pytest.mark.parametrize("verb", ["begin", "commit"])
def test_a_writer_killed_before_its_commit_has_written_nothing(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(3)))

    def body(ready: Callable[[], None]) -> None:
        stuck_in(store, monkeypatch, verb, ready)
        store.update(everything(), claim)

    with child_of(body) as pid:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert log(store) == ()
        assert store.read(HeldBy("s")) == ()
        assert take(store, "t") == ["j0", "j1", "j2"]


def test_a_writer_frozen_inside_its_transaction_stops_writers_but_not_readers(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one place where a freeze hurts: it is kept as short as SQLite allows, and fails closed."""
    put(store, job("j", due_at=store.clock() - SECOND))
    store.close()
    store._lease = SECOND  # gives up after the least time there is

    def body(ready: Callable[[], None]) -> None:
        stuck_in(store, monkeypatch, "commit", ready)
        store.update(everything(), claim)

    with child_of(body) as pid:
        os.kill(pid, signal.SIGSTOP)
        assert get(store, Kind.JOB, "j").active == ()
        with pytest.raises(StoreUnavailable, match="locked by another process"):
            take(store, "t")
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert take(store, "t") == ["j"]


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_kill_9_at_any_moment_leaves_documents_and_log_in_step(store: SQLiteStore, tmp_path: Path) -> None:
    """A worker claims and finishes without end; each of several is killed at another moment."""
    names = tuple(f"j{i:02}" for i in range(JOBS))

    put(store, *(job(name) for name in names))

    def end(doc: Any, now: int) -> Change:
        return Change(replace(doc, active=()), (record(f"{doc.name}@{doc.fence}"),))

    def work(ready: Callable[[], None]) -> None:
        for turn in range(10**6):
            if turn == 1:
                ready()
            for name in names:
                store.update(Named(Kind.JOB, (name,)), add_hold("s"))
                store.update(Named(Kind.JOB, (name,)), end)

    for _ in range(5):
        before = len(log(store, limit=10**6))
        with child_of(work):
            for _ in range(20):  # some more work of unknown length before the end
                log(store)
        assert len(log(store, limit=10**6)) > before
        docs = [doc for doc in store.read(All(Kind.JOB)) if isinstance(doc, Job)]
        ended = {doc.name: len(log(store, job=doc.name, limit=10**6)) for doc in docs}
        assert ended == {doc.name: doc.fence - len(doc.active) for doc in docs}, "each claim has ended, or is held"
        assert {doc.name for doc in store.read(HeldBy("s"))} == {doc.name for doc in docs if doc.active}
    with sqlite3.connect(tmp_path / "a.db") as other:
        assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    other.close()


def test_a_finish_that_was_committed_before_the_kill_is_found(store: SQLiteStore) -> None:
    put(store, job("j", due_at=store.clock() - SECOND))

    def body(ready: Callable[[], None]) -> None:
        store.update(everything(), claim)
        store.update(Named(Kind.JOB, ("j",)), finish)
        ready()
        while True:
            signal.pause()

    with child_of(body) as pid:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert [found.status for found in log(store)] == [Status.SUCCEEDED]
        assert verdicts(store.update(HeldBy("s"), finish)) == {}
