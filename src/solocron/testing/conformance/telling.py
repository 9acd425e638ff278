"""Time and notifications: one clock for all clients, and a signal that wakes those that wait."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.session import Life, renew
from solocron.stores.contract import Store
from solocron.testing.conformance import kit
from solocron.testing.conformance.kit import HOUR, Clients, everything, hold, job, note, put, session, write
from solocron.testing.conformance.rivals import Meanwhile, processes, race

__all__ = ["Telling"]


class Telling:
    """Chapter eight."""

    def test_the_clock_counts_microseconds_and_never_goes_back(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        times = [store.clock() for _ in range(50) for store in (a, b)]
        assert times == sorted(times)
        assert all(type(time) is int for time in times)
        assert 2**50 < times[0] < 2**52  # between 2005 and 2112: neither seconds nor nanoseconds

    def test_a_change_is_told_the_time_of_the_store(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("i", due_at=1), job("j", due_at=1))
        told: list[int] = []

        def look(doc: Any, now: int) -> None:
            told.append(now)

        for shift in (SECOND, 365 * 24 * HOUR):
            clients.advance(shift)
            before = b.clock()
            applied = a.update(everything(), look)
            after = b.clock()
            assert all(before <= time <= after for time in (*told, applied.now))
            assert len(told) == 2
            assert all(type(time) is int for time in told)
            told.clear()

    def test_the_time_of_a_renewal_is_the_one_that_the_store_told_meanwhile(self, clients: Clients) -> None:
        """A store may decide by a time that is certainly past.

        Reported as its clock, the next true one would seem to leap.
        """
        a, b = clients.new(), clients.new()
        put(a, session("s", expires_at=a.clock() + HOUR))
        for _ in range(20):
            before = b.clock()
            applied = write(a, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now))
            assert before <= applied.now <= b.clock()

    def test_the_time_that_is_told_is_not_older_than_the_document(self, clients: Clients) -> None:
        """The time is read once the document can no longer change unseen, not before the wait for another's commit."""
        a, b = clients.new(), clients.new()
        put(a, note(Kind.LOCK, "n", {"at": 0}))
        told: list[tuple[int, int]] = []

        def stamp(doc: Any, now: int) -> Change:
            told.append((doc.body["at"], now))
            return Change(replace(doc, body={"at": now}))

        rival = Meanwhile(lambda: write(b, Kind.LOCK, "n", stamp))

        def stamp_late(doc: Any, now: int) -> Change:
            rival.begin()
            return stamp(doc, now)

        write(a, Kind.LOCK, "n", stamp_late)
        rival.join()
        assert [(written, now) for written, now in told if now < written] == []

    def test_shifting_the_clock_lets_time_pass_both_ways(self, clients: Clients) -> None:
        a = clients.new()
        before = a.clock()
        a.shift_clock(24 * HOUR)
        assert 0 <= a.clock() - before - 24 * HOUR < HOUR
        a.shift_clock(-48 * HOUR)
        assert 0 <= a.clock() - before + 24 * HOUR < HOUR
        a.shift_clock(24 * HOUR)

    def test_a_quiet_store_lets_its_clients_wait(self, clients: Clients) -> None:
        a = clients.new()
        _listen(a)
        assert a.wait(0.02) is False

    def test_a_signal_wakes_whoever_waits(self, clients: Clients) -> None:
        a, b, c = (_notifying(clients) for _ in range(3))
        assert race([partial(a.wait, kit.LONG), partial(b.wait, kit.LONG), partial(_signal, c)]) == [True, True, False]

    def test_a_signal_that_came_before_the_wait_is_not_lost(self, clients: Clients) -> None:
        a, b = _notifying(clients), _notifying(clients)
        b.signal()
        assert a.wait(kit.LONG) is True

    def test_a_change_that_others_must_know_wakes_them(self, clients: Clients) -> None:
        a, b = _notifying(clients), _notifying(clients)
        far, soon = a.clock() + 9 * HOUR, a.clock() + HOUR

        def step(what: str, doc: Any, now: int) -> Change:
            match what:
                case "a job that is due sooner":
                    return Change(replace(doc, due_at=soon))
                case "a holder that is asked to stop":
                    return Change(replace(doc, active=(replace(doc.active[0], cancel="please"),)))
                case "a new definition":
                    return Change(replace(doc, definition=job("j", pool="gpu").definition))
                case "a session that dies":
                    return Change(replace(doc, state=Life.DEAD, ended_at=now, reason="test"))
                case _:
                    return Change(None)

        put(b, job("j", due_at=far, active=(hold("r", "s"),)))
        assert a.wait(kit.LONG), "a new job"
        put(b, session("s", expires_at=far))
        assert a.wait(kit.LONG), "a new session"
        for kind, name, what in (
            (Kind.JOB, "j", "a job that is due sooner"),
            (Kind.JOB, "j", "a holder that is asked to stop"),
            (Kind.JOB, "j", "a new definition"),
            (Kind.SESSION, "s", "a session that dies"),
            (Kind.JOB, "j", "a removed job"),
        ):
            _listen(a)
            write(b, kind, name, partial(step, what))
            assert a.wait(kit.LONG), what

    def test_a_signal_reaches_other_processes(self, clients: Clients) -> None:
        a = _notifying(clients)
        if not a.capabilities.shared:
            pytest.skip("this store says that it cannot be shared by processes")
        processes([lambda: _signal(clients.new())])
        assert a.wait(kit.LONG) is True


def _notifying(clients: Clients) -> Store:
    """Return a client that has begun to listen."""
    store = clients.new()
    if not store.capabilities.notifies:
        pytest.skip("this store says that it cannot wake its clients")
    _listen(store)
    return store


def _listen(store: Store) -> None:
    """Consume every notification so far; from now on nothing is missed."""
    for _ in range(100):
        if not store.wait(0):
            return
    raise AssertionError("wait() says that something happened, again and again, while nothing does")


def _signal(store: Store) -> bool:
    store.signal()
    return False
