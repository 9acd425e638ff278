"""The queue of writers: first come, first served; the dead and the frozen do not hold it up."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from solocron.stores.sql.sqlite.turns import PATIENCE, Turns
from solocron.testing.conformance.kit import patience


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue"


@contextmanager
def another_process(path: Path) -> Iterator[int]:
    """A process that has the turn and keeps it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        Turns(path).__enter__()
        os.write(write, b"x")
        while True:
            signal.pause()
    os.read(read, 1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(read)
        os.close(write)


def test_writers_go_in_the_order_in_which_they_came(path: Path) -> None:
    first = Turns(path)
    went: list[int] = []
    threads = []
    first.__enter__()
    for number in range(4):
        place = Turns(path)

        def write(place: Turns = place, number: int = number) -> None:
            with place:
                went.append(number)
            place.close()

        before = first._numbers()[0]
        threads.append(threading.Thread(target=write))
        threads[-1].start()
        for _ in patience():
            if first._numbers()[0] > before:
                break
    assert went == []
    first.leave()
    for thread in threads:
        thread.join()
    assert went == [0, 1, 2, 3]
    first.close()


def test_whoever_has_just_had_a_turn_lines_up_behind_those_who_wait(path: Path) -> None:
    greedy, patient = Turns(path), Turns(path)
    greedy.__enter__()
    had: list[str] = []

    def wait() -> None:
        with patient:
            had.append("patient")

    thread = threading.Thread(target=wait)
    thread.start()
    for _ in patience():
        if greedy._numbers()[0] > (greedy._ticket or 0) + 1:
            break
    greedy.leave()
    with greedy:
        had.append("greedy")
    thread.join()
    assert had == ["patient", "greedy"]
    greedy.close()
    patient.close()


def test_one_queue_does_not_wait_for_the_other(path: Path) -> None:
    deciding, writing = Turns(path, queue=1), Turns(path)
    others = Turns(path, queue=1), Turns(path)

    def free() -> list[bool]:
        return [turns._is_free(turns._numbers()[1]) for turns in others]

    with deciding:
        assert free() == [False, True]
        with writing:
            assert free() == [False, False]
        assert free() == [False, True]
    assert free() == [True, True]
    for turns in (deciding, writing, *others):
        turns.close()


def test_a_turn_inside_a_turn_is_the_same_turn(path: Path) -> None:
    turns = Turns(path)
    with turns, turns:
        assert turns.taken
    assert not turns.taken
    turns.close()


def test_a_turn_that_is_not_taken_passes_on(path: Path) -> None:
    with another_process(path) as frozen:
        os.kill(frozen, signal.SIGSTOP)
        turns = Turns(path)
        before = time.monotonic()
        with turns:
            passed = time.monotonic() - before
        assert passed >= PATIENCE
        with turns:  # the frozen one is behind us now: it delays no process a second time
            pass
        assert turns._numbers()[1] > 0
        turns.close()


def test_whoever_dies_in_its_turn_delays_nobody(path: Path) -> None:
    with another_process(path) as pid:
        turns = Turns(path)
        assert not turns._is_free(turns._numbers()[1])
        os.kill(pid, signal.SIGKILL)
        for _ in patience():
            if turns._is_free(turns._numbers()[1]):
                break
        with turns:
            assert turns.taken
        turns.close()


def test_a_closed_place_is_free(path: Path) -> None:
    gone, turns = Turns(path), Turns(path)
    gone.__enter__()
    gone.close()
    gone.close()
    with turns:
        assert turns.taken
    turns.close()


def test_the_file_is_ours_alone(path: Path) -> None:
    Turns(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    path.symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Turns(path)
