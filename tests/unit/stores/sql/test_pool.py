"""Connections: last used first, never one that was interrupted, never one of the parent's."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable

import pytest

from solocron.stores.sql.pool import Pool
from solocron.stores.stock import Stock
from solocron.testing.conformance.kit import patience


class Thing:
    """A connection that remembers what was done to it."""

    made: list[Thing]

    def __init__(self) -> None:
        self.fresh = True
        self.stale = False
        self.unsightly = False
        self.closed = False
        self.discarded = False
        self.lent_to: object = None

    def lend(self, count: Callable[[str], None]) -> None:
        self.lent_to = count

    def back(self) -> None:
        self.lent_to = None

    def is_stale(self) -> bool:
        if self.unsightly:
            raise ValueError("filedescriptor out of range in select()")
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

    return pool_of(connect, Stock(keep=2))


def pool_of(connect: Callable[[], Thing], stock: Stock[Thing]) -> Pool[Thing]:
    return Pool(connect, stock=stock, lent=lambda link: None)


def test_the_last_one_used_is_used_again(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link() as a, pool.link() as b:
        assert a is not b
    with pool.link() as again:
        assert again is a  # given back last
        assert not again.fresh
    assert len(made) == 2


def test_what_has_lain_idle_is_closed_down_to_the_last_one_used(
    pool: Pool[Thing], made: list[Thing], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pool.link() as last, pool.link() as first:
        pass
    assert not first.closed
    monkeypatch.setattr("solocron.stores.stock.IDLE_FOR", -1.0)  # as if a minute had passed
    with pool.link() as used:
        assert used is last
    assert first.closed
    assert not first.discarded
    assert not last.closed


def test_a_renewal_has_a_connection_that_no_other_call_takes(
    pool: Pool[Thing], made: list[Thing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solocron.stores.stock.IDLE_FOR", -1.0)
    with pool.link(renews=True) as own:
        pass
    with pool.link() as other, pool.link() as another:
        assert own not in (other, another)
        with pool.link(renews=True) as again:
            assert again is own
    assert not own.closed
    pool.close()
    assert own.closed


def test_a_renewal_does_not_wait_for_its_own_connection_either(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link(renews=True) as one, pool.link(renews=True) as other:
        assert one is not other
    with pool.link() as left:
        assert left is one  # the second was given back first, and is kept for renewals
    with pool.link(renews=True) as own:
        assert own is other


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


def test_one_that_cannot_be_looked_at_is_replaced(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link() as old:
        pass
    old.unsightly = True
    with pool.link() as new:
        assert new is not old
    assert old.discarded


def test_closing_closes_what_lies_idle_and_what_comes_back_and_the_pool_goes_on(
    pool: Pool[Thing], made: list[Thing]
) -> None:
    with pool.link() as used:
        with pool.link() as idle:
            pass
        pool.close()
        assert idle.closed
        assert not used.closed
    assert used.closed
    assert not used.discarded
    with pool.link() as fresh:
        assert fresh not in (idle, used)
    with pool.link() as again:
        assert again is fresh


def in_a_fork(body: Callable[[], bool]) -> bool:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"1" if body() else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        return answer.read() == b"1"


def test_a_fork_neither_uses_nor_closes_the_parents_connections(pool: Pool[Thing], made: list[Thing]) -> None:
    with pool.link() as parents:
        pass

    def child() -> bool:
        with pool.link() as own:
            gc.collect()
            return own is not parents and not parents.closed

    with pool._mutex, pool._stock._mutex:  # another thread of the parent is just taking one
        assert in_a_fork(child)


def test_a_call_in_which_the_process_was_forked_leaves_its_connection_to_the_parent(
    pool: Pool[Thing], made: list[Thing]
) -> None:
    with pool.link() as parents:

        def child() -> bool:
            pool._give_back(parents, -1, renews=False)
            with pool.link() as own:
                return own is not parents and not parents.closed

        assert in_a_fork(child)


def test_a_call_that_fails_in_a_fork_of_its_own_leaves_its_connection_to_the_parent(
    pool: Pool[Thing], made: list[Thing]
) -> None:
    read, write = os.pipe()
    try:
        with pool.link() as parents:
            child = os.fork()
            if child == 0:
                raise KeyError
    except KeyError:  # only the child comes here: it has left the call by an error
        os.write(write, b"0" if parents.closed else b"1")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        assert answer.read() == b"1"


def test_a_pause_lets_calls_end_and_closes_what_lies_idle(pool: Pool[Thing], made: list[Thing]) -> None:
    inside, end = threading.Event(), threading.Event()

    def call() -> None:
        with pool.link():
            inside.set()
            end.wait(30)
            with pool.link():  # a call that is inside may go on, or it would never end
                pass

    thread = threading.Thread(target=call)
    thread.start()
    inside.wait(30)
    pausing = threading.Thread(target=lambda: pool.pause(30))
    pausing.start()
    for _ in patience():
        if pool._paused:
            break
    late = threading.Thread(target=call)
    late.start()
    assert not any(thing.closed for thing in made)
    end.set()
    pausing.join()
    thread.join()
    assert made
    assert all(thing.closed for thing in made)
    before = len(made)
    pool.resume()
    late.join()
    assert len(made) > before


def test_a_pause_does_not_wait_for_whoever_asks_for_it(pool: Pool[Thing]) -> None:
    with pool.link() as used:
        pool.pause(30)
        assert not used.closed
        pool.resume()


def test_a_pause_gives_up_on_a_call_that_does_not_end(pool: Pool[Thing]) -> None:
    inside, end = threading.Event(), threading.Event()

    def call() -> None:
        with pool.link():
            inside.set()
            end.wait(30)

    thread = threading.Thread(target=call)
    thread.start()
    inside.wait(30)
    pool.pause(0.01)
    pool.resume()
    end.set()
    thread.join()
