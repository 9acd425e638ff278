"""After a lost race clients take turns; before one, a due job goes to the first that asks."""

from __future__ import annotations

from typing import Any

from solocron.clock import MILLISECOND, SECOND
from solocron.model.change import Kind
from solocron.stores.contract import Due
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.stores.swap.store import SwapStore
from solocron.stores.swap.turns import ClaimTurns
from solocron.testing.conformance.kit import add_hold, everything, job, put, session, take

LIVE = ("s", "t", "u")
JOBS = [(1_000 * SECOND, f"j{i:02}") for i in range(60)]


def test_the_sessions_share_out_what_is_due() -> None:
    now = 1_000 * SECOND + 1
    shares = [{name for _, name in ClaimTurns(lambda: 0.0).split(JOBS, one, LIVE, now)[0]} for one in LIVE]
    assert sum(map(len, shares)) == len(JOBS)
    assert set.union(*shares) == {name for _, name in JOBS}
    assert all(10 < len(share) < 30 for share in shares)


def test_what_is_left_to_others_comes_a_moment_later() -> None:
    now = 1_000 * SECOND + 1
    turns = ClaimTurns(lambda: 0.0)
    ours, left = turns.split(JOBS, "s", LIVE, now)
    assert {ready for ready, _ in left} == {1_000 * SECOND + 100 * MILLISECOND}
    tried, still_left = turns.split(JOBS, "s", LIVE, now + 100 * MILLISECOND)
    assert still_left == []
    assert tried[: len(ours)] == ours
    assert len(tried) == len(JOBS)


def test_a_lost_race_is_forgotten() -> None:
    boot = 0.0
    turns = ClaimTurns(lambda: boot)
    assert not turns.are_taken
    turns.lost_race()
    assert turns.are_taken
    boot = 11.0
    assert not turns.are_taken


def test_a_client_that_lost_a_race_leaves_others_theirs_for_a_moment() -> None:
    shared = SharedKeys()
    a, b = (SwapStore(MemoryKeys(shared)) for _ in range(2))
    a.open()
    put(a, *(session(name, expires_at=a.clock() + 3_600 * SECOND) for name in LIVE))
    then = a.clock() - SECOND
    put(a, job("first", due_at=then))

    def lose(doc: Any, now: int) -> Any:
        take(b, "t", session="t")
        return add_hold("s")(doc, now)

    assert a.update(everything(), lose, session="s").results == ()
    soon = a.clock() + SECOND
    put(a, *(job(f"j{i}", due_at=soon) for i in range(12)))
    a.shift_clock(SECOND + 50 * MILLISECOND)
    some = everything(limit=12)
    first = a.update(some, add_hold("s"), session="s")
    assert 0 < len(first.results) < 12
    assert first.next_due == soon + 100 * MILLISECOND
    a.shift_clock(100 * MILLISECOND)
    rest = a.update(some, add_hold("s"), session="s")
    assert len(first.results) + len(rest.results) == 12


def test_before_a_race_was_lost_everything_goes_to_the_first() -> None:
    shared = SharedKeys()
    a = SwapStore(MemoryKeys(shared))
    a.open()
    put(a, *(session(name, expires_at=a.clock() + 3_600 * SECOND) for name in LIVE))
    put(a, *(job(f"j{i}", due_at=a.clock()) for i in range(12)))
    assert len(take(a, "s", Due(handlers=frozenset("h"), pools=frozenset({"default"}), limit=12), session="s")) == 12
    assert a.read(everything()) == ()
    assert a.names(Kind.JOB)
