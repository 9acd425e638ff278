"""Connections: last used first, never one that was interrupted, never one of the parent's."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from solocron.stores.sql.pool import Pool


class Thing:
    """A connection that remembers what was done to it."""

    made: list[Thing]

    def __init__(self) -> None:
        self.fresh = True
        self.stale = False
        self.closed = False
        self.discarded = False

    def is_stale(self) -> bool:
        return self.stale

    def close(self) -> None:
        self.closed = True

    def discard(self) -> None:
        self.closed = self.discarded = True


@pytest.fixture
def made() -> list[Thing]:
    return []


@pytest.fixture
def pool(made: list[Thing]) -> Pool[Thing]:
    def connect() -> Thing:
        made.append(Thing())
        return made[-1]

    return Pool(connect, keep=2)


def test_the_last_one_used_is_used_again(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link() as a, pool.link() as b:
        assert a is not b
    with pool.link() as again:
        assert again is a  # given back last
        assert not again.fresh
    assert len(made) == 2


def test_nobody_ever_waits_for_a_connection(pool: Pool[Thing], made: list[Thing]) -> None:
    """A renewal beside any number of slow claims gets one at once."""
    with pool.link(), pool.link(), pool.link(), pool.link(), pool.link():
        assert len(made) == 5
    assert [thing.closed for thing in made].count(False) == 2


@pytest.mark.parametrize("interrupt", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_interrupted_call_discards_its_connection(
    pool: Pool[Thing], made: list[Thing], interrupt: type[BaseException]
) -> None:
    with pytest.raises(interrupt), pool.link():
        raise interrupt
    assert made[0].discarded
    with pool.link() as other:
        assert other is not made[0]


def test_one_that_died_while_idle_is_not_handed_out(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link() as old:
        pass
    old.stale = True
    with pool.link() as new:
        assert new is not old
    assert old.closed


def test_closing_closes_what_lies_idle_and_the_pool_goes_on(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link() as used:
        pool.close()
        assert not used.closed
    with pool.link() as again:
        assert again is used
    pool.close()
    assert used.closed
    assert not used.discarded
    with pool.link() as fresh:
        assert fresh is not used


def test_a_fork_neither_uses_nor_closes_the_parents_connections(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link() as parents:
        pass
    held = threading.Event()
    pool._mutex.acquire()  # another thread of the parent is just taking one
    held.set()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        pool.forked()
        with pool.link() as own:
            gc.collect()
            os.write(write, b"ok" if own is not parents and not parents.closed else b"no")
        os._exit(0)
    pool._mutex.release()
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        assert answer.read() == b"ok"
