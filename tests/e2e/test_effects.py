"""A node frozen in the middle of a run, taken over, and resumed: what its late write does, with and without a guard."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from solocron import Lock
from solocron.testing.fleet import wait_until
from tests.e2e.conftest import MakeFleet

LEASE = 1.0


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
@pytest.mark.parametrize(
    ("care", "paid", "refused"), [(None, [2, 1], None), ("guard", [2], "LeaseLost"), ("target", [2], "StaleFence")]
)
def test_the_late_write_of_a_frozen_node_is_refused_by_a_guard_and_doubles_the_effect_without_one(
    make_fleet: MakeFleet, tmp_path: Path, care: str | None, paid: list[int], refused: str | None
) -> None:
    fleet = make_fleet("tests.e2e.jobs.effects", lease=LEASE, env={"EFFECTS_FOLDER": str(tmp_path)})
    victim = fleet.start(1)[0]
    run = fleet.scheduler.trigger("pay", payload=care)
    wait_until(lambda: fleet.ledger.open("pay"), within=20, what="the first attempt")
    fleet.freeze(victim)
    fleet.start(1)
    view = fleet.scheduler.wait(run, "30s")
    assert (view.status, view.attempt) == ("succeeded", 2)
    (tmp_path / "go").touch()
    victim.thaw()
    wait_until(lambda: not fleet.ledger.open("pay"), within=20, what="the end of the frozen body")
    assert victim.wait_event("refused")["run"] == run, "its finish is refused in any case"
    with closing(sqlite3.connect(tmp_path / "books.db")) as books:
        assert [row[0] for row in books.execute("SELECT attempt FROM paid ORDER BY rowid")] == paid
    told = tmp_path / "refused.1"
    assert (told.read_text() if told.exists() else None) == refused
    assert [attempt.status for attempt in fleet.scheduler.open().attempts(run)] == ["lost", "succeeded"]
    fleet.stop()


def hold(url: str, ready: object, name: str) -> None:
    """In a process of its own: take the lock and never let go."""
    lock = Lock(url, name, keep_alive=True, lease="600ms")
    held = lock.acquire(wait="30s")
    assert held is not None
    ready.set()  # type: ignore[attr-defined]
    threading.Event().wait()


def count(url: str, path: str, times: int) -> None:
    """In a process of its own: read, then write, a counter that only the lock protects."""
    lock = Lock(url, "counter", at_most="1m", wait="60s")
    for _ in range(times):
        with lock:
            seen = int(Path(path).read_text())
            Path(path).write_text(str(seen + 1))
    lock.close()


@pytest.mark.may_leak(reason="multiprocessing keeps its resource tracker for the next child")
def test_two_processes_count_right_under_a_lock(tmp_path: Path) -> None:
    url, counter = f"sqlite:///{tmp_path / 'locks.db'}", tmp_path / "counter"
    counter.write_text("0")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=count, args=(url, str(counter), 20)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert counter.read_text() == "40"
    for worker in workers:
        worker.close()


@pytest.mark.may_leak(reason="multiprocessing keeps its resource tracker for the next child")
def test_a_lock_tied_to_a_process_is_free_when_the_process_was_killed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'locks.db'}"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=hold, args=(url, ready, "door"), daemon=True)
    holder.start()
    assert ready.wait(30)
    lock = Lock(url, "door", keep_alive=True, lease="600ms")
    assert lock.acquire() is None
    holder.kill()
    holder.join(30)
    held = lock.acquire(wait="30s")
    assert held is not None
    assert held.release() is True
    lock.close()
    holder.close()
