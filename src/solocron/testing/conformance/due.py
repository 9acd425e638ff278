"""Due: the oldest first, never early, never a foreign one; and when to look again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.stores.contract import All, Due, Verdict
from solocron.testing.conformance.kit import (
    HOUR,
    Clients,
    add_hold,
    everything,
    job,
    names,
    put,
    take,
    write,
)

__all__ = ["DueJobs"]


class DueJobs:
    """Chapter two."""

    def test_due_jobs_come_oldest_first_up_to_the_limit(self, clients: Clients) -> None:
        a = clients.new()
        now = a.clock()
        put(a, *(job(f"j{i}", due_at=now - (i * 7 % 10) * SECOND) for i in range(10)))
        oldest_first = sorted((f"j{i}" for i in range(10)), key=lambda name: -(int(name[1:]) * 7 % 10))
        assert names(a.read(everything(limit=4))) == oldest_first[:4]
        assert take(a, "s", everything(limit=4)) == oldest_first[:4]
        assert take(a, "s", everything(limit=100)) == oldest_first[4:]
        assert take(a, "s", everything()) == []

    def test_only_jobs_of_these_handlers_and_pools_are_due(self, clients: Clients) -> None:
        a = clients.new()
        then = a.clock() - SECOND
        put(a, *(job(f"{h}-{p}", due_at=then, handler=h, pool=p) for h in ("x", "y", "z") for p in ("1", "2", "3")))

        def due(handlers: str, pools: str) -> list[str]:
            which = Due(handlers=frozenset(handlers), pools=frozenset(pools), limit=99)
            return sorted(names(a.read(which)))

        assert due("xy", "13") == ["x-1", "x-3", "y-1", "y-3"]
        assert due("z", "2") == ["z-2"]
        assert due("", "123") == due("xyz", "") == due("q", "123") == []

    def test_excluded_jobs_are_left_out_and_make_room(self, clients: Clients) -> None:
        a = clients.new()
        now = a.clock()
        put(a, *(job(f"j{i}", due_at=now - 9 * SECOND + i) for i in range(5)))
        assert names(a.read(everything(limit=2, exclude={"j0", "j2"}))) == ["j1", "j3"]
        applied = a.update(everything(exclude={f"j{i}" for i in range(5)}), add_hold("s"))
        assert (applied.results, applied.next_due) == ((), None)

    @pytest.mark.invariant("I15: nothing starts early by the store's clock")
    def test_nothing_is_selected_before_it_is_due(self, clients: Clients) -> None:
        """Jobs fall due microseconds apart while the test reads: none is returned before its instant."""
        a = clients.new()
        put(a, *(job(f"{i}", due_at=a.clock() + HOUR) for i in range(1, 201)))
        assert take(a, "s") == []
        early: list[tuple[str, int]] = []

        def set_up(step: int, doc: Any, now: int) -> Change:
            return Change(replace(doc, due_at=now + int(doc.name) * step))

        def look(doc: Any, now: int) -> None:
            if doc.due_at > now:
                early.append((doc.name, doc.due_at - now))

        step = 20
        for _ in range(12):
            began = a.clock()
            a.update(All(Kind.JOB), partial(set_up, step))
            took = a.clock() - began
            applied = a.update(everything(), look)
            assert early == []
            if 0 < len(applied.results) < 200:
                break  # some had fallen due and some had not: the read was in the middle
            step = max(2 * step, took // 100)

    def test_a_job_is_due_again_when_it_says_so(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j", due_at=a.clock() + HOUR))
        assert take(b, "s") == []
        clients.advance(HOUR)
        (result,) = b.update(everything(), lambda doc, now: Change(replace(doc, due_at=now + HOUR))).results
        assert result.verdict is Verdict.APPLIED
        assert names(a.read(everything())) == []
        clients.advance(HOUR)
        assert names(a.read(everything())) == ["j"]

    def test_next_due_is_the_earliest_instant_of_what_was_not_returned(self, clients: Clients) -> None:
        a = clients.new()
        now = a.clock()
        put(a, job("old", due_at=now - 3 * SECOND), job("new", due_at=now - 2 * SECOND))
        put(a, job("soon", due_at=now + HOUR), job("later", due_at=now + 2 * HOUR), job("never"))
        put(a, job("foreign", due_at=now - HOUR, handler="other"), job("pooled", due_at=now - HOUR, pool="other"))
        assert a.update(everything(limit=1), lambda doc, now: None).next_due == now - 2 * SECOND
        assert a.update(everything(limit=1), add_hold("s")).next_due == now - 2 * SECOND
        assert a.update(everything(limit=1), add_hold("s")).next_due == now + HOUR
        assert a.update(everything(exclude={"soon"}), add_hold("s")).next_due == now + 2 * HOUR
        assert a.update(everything(exclude={"soon", "later"}), add_hold("s")).next_due is None

    def test_next_due_knows_handlers_and_pools(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        mine, pool = frozenset({"h", "g"}), frozenset({"default"})

        def next_due(handlers: frozenset[str], pools: frozenset[str]) -> int | None:
            return b.update(Due(handlers=handlers, pools=pools, limit=0), add_hold("s")).next_due

        assert next_due(mine, pool) is None
        now = a.clock()
        put(a, job("never"), job("soon", due_at=now + HOUR), job("other", due_at=now, handler="x"))
        put(a, job("pooled", due_at=now, pool="x"))
        assert next_due(mine, pool) == now + HOUR
        assert next_due(frozenset(), pool) is None
        assert next_due(mine, frozenset()) is None

    def test_a_declined_job_stays_due(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j", due_at=a.clock() - SECOND))
        (result,) = a.update(everything(), lambda doc, now: None).results
        assert result.verdict is Verdict.DECLINED
        assert take(b, "s") == ["j"]

    def test_a_redefined_job_moves_to_its_new_handler_and_pool(self, clients: Clients) -> None:
        a = clients.new()
        then = a.clock() - SECOND
        put(a, job("j", due_at=then))
        moved = job("j", due_at=then, handler="new", pool="gpu")
        write(a, Kind.JOB, "j", lambda doc, now: Change(replace(doc, definition=moved.definition)))
        assert a.read(everything()) == ()
        assert names(a.read(Due(handlers=frozenset({"new"}), pools=frozenset({"gpu"}), limit=9))) == ["j"]
