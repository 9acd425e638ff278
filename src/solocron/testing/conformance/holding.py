"""The other selections: holders, sessions to be swept, everything in pages."""

from __future__ import annotations

from dataclasses import replace

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.job import WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin
from solocron.stores.contract import All, HeldBy, HeldByAny, Verdict
from solocron.stores.documents import QUEUES
from solocron.testing.conformance.kit import (
    HOUR,
    Clients,
    hold,
    job,
    names,
    note,
    put,
    session,
    take,
    verdicts,
    write,
)

__all__ = ["Holding"]


class Holding:
    """Chapter three."""

    def test_held_by_finds_every_job_that_names_the_session(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, *(job(f"j{i}", active=(hold("r", f"s{i % 2}"),)) for i in range(6)), job("free"))
        put(a, job("both", active=(hold("r1", "s0"), hold("r2", "s1", fence=2), hold("r3", "s0", fence=3))))
        assert sorted(names(b.read(HeldBy("s0")))) == ["both", "j0", "j2", "j4"]
        assert sorted(names(b.read(HeldBy("s1")))) == ["both", "j1", "j3", "j5"]
        assert b.read(HeldBy("other")) == ()

    def test_held_by_follows_claims_ends_and_deletions(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, *(job(name, due_at=a.clock() - SECOND) for name in ("ended", "deleted", "handed on", "kept")))
        assert len(take(a, "s")) == 4
        assert len(b.read(HeldBy("s"))) == 4
        write(a, Kind.JOB, "ended", lambda doc, now: Change(replace(doc, active=())))
        write(a, Kind.JOB, "deleted", lambda doc, now: Change(None))
        write(a, Kind.JOB, "handed on", lambda doc, now: Change(replace(doc, active=(hold("r", "t", fence=9),))))
        # A write that leaves the hold alone must not lose it.
        write(a, Kind.JOB, "kept", lambda doc, now: Change(replace(doc, failures=doc.failures + 1)))
        assert names(b.read(HeldBy("s"))) == ["kept"]
        assert names(b.read(HeldBy("t"))) == ["handed on"]

    def test_an_update_of_what_is_held_reaches_all_of_it(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, *(job(f"j{i:02}", active=(hold("r", "s"),)) for i in range(30)), job("j99", active=(hold("r", "t"),)))
        applied = b.update(HeldBy("s"), lambda doc, now: Change(replace(doc, active=(), failures=1)))
        assert sorted(verdicts(applied).items()) == [(f"j{i:02}", Verdict.APPLIED) for i in range(30)]
        assert a.read(HeldBy("s")) == ()
        assert names(a.read(HeldBy("t"))) == ["j99"]

    def test_plain_documents_are_held_too(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        for kind in (Kind.LOCK, Kind.KEY, Kind.STEP, Kind.CALENDAR):
            put(a, note(kind, "x", by="s"), note(kind, "y", by="t"), note(kind, "z"))
            assert names(b.read(HeldBy("s", kind))) == ["x"]
            write(a, kind, "x", lambda doc, now: Change(replace(doc, session="t")))
            assert b.read(HeldBy("s", kind)) == ()
            assert sorted(names(b.read(HeldBy("t", kind)))) == ["x", "y"]
            write(a, kind, "x", lambda doc, now: Change(replace(doc, session=None)))
            write(a, kind, "y", lambda doc, now: Change(None))
            assert b.read(HeldBy("t", kind)) == ()
        assert b.read(HeldBy("s")) == ()

    def test_holders_names_every_session_that_holds_anything(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        assert a.holders() == frozenset()
        put(a, job("j", active=(hold("r", "s"), hold("q", "t", fence=2))), note(Kind.LOCK, "l", by="u"))
        put(a, session("idle", expires_at=a.clock() + HOUR))
        assert b.holders() == {"s", "t", "u"}
        write(a, Kind.JOB, "j", lambda doc, now: Change(replace(doc, active=doc.active[:1])))
        write(a, Kind.LOCK, "l", lambda doc, now: Change(None))
        assert b.holders() == {"s"}

    def test_held_is_everything_that_any_session_holds(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        both = job("both", active=(hold("both@1", "s"), hold("both@2", "t", fence=2)))
        put(a, job("b", active=(hold("b@1", "t"),)), both, job("free"))
        put(a, note(Kind.LOCK, "l", by="s"), note(Kind.LOCK, "free"))
        assert names(b.read(HeldByAny())) == ["b", "both"]
        assert names(b.read(HeldByAny(Kind.LOCK))) == ["l"]
        assert b.read(HeldByAny(Kind.KEY)) == ()
        applied = b.update(HeldByAny(), lambda doc, now: Change(replace(doc, active=doc.active[1:])))
        assert verdicts(applied) == {"b": Verdict.APPLIED, "both": Verdict.APPLIED}
        assert names(a.read(HeldByAny())) == ["both"]

    def test_a_run_in_a_queue_is_found_with_what_is_held(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        offer = Offer(carrier="queue", since=1, until=a.clock() + HOUR)
        waiting = WaitingRun(run="carried@1", slot=1, origin=Origin.SCHEDULE, ready_at=1, offer=offer)
        carried = job("carried", waiting_runs=(waiting,))
        put(a, replace(carried, definition=replace(carried.definition, run_in="queue", hand_over={})), job("free"))
        assert names(b.read(HeldByAny())) == ["carried"]
        assert (b.holders(), names(b.read(HeldBy(QUEUES)))) == (frozenset({QUEUES}), ["carried"])
        write(a, Kind.JOB, "carried", lambda doc, now: Change(replace(doc, waiting_runs=())))
        assert (b.read(HeldByAny()), b.holders()) == ((), frozenset())

    def test_names_come_in_pages_without_their_documents(self, clients: Clients) -> None:
        a = clients.new()
        every = sorted(["a", "B", "b#1", "é", "東"])
        put(a, *(job(name) for name in every), note(Kind.LOCK, "other"))
        assert a.names(Kind.JOB) == tuple(every)
        assert a.names(Kind.JOB, after=every[1], limit=2) == tuple(every[2:4])
        assert a.names(Kind.LOCK) == ("other",)
        assert a.names(Kind.STEP) == ()

    def test_all_of_a_kind_comes_in_pages_in_the_order_of_names(self, clients: Clients) -> None:
        a = clients.new()
        every = sorted(["a", "B", "b", "b#1", "b#10", "b#2", "c.d", "é", "z", "東"])
        put(a, *(job(name) for name in reversed(every)), note(Kind.LOCK, "other"))
        assert names(a.read(All(Kind.JOB))) == every
        pages = [[""]]
        while pages[-1] and len(pages) < 9:
            pages.append(names(a.read(All(Kind.JOB, after=pages[-1][-1], limit=3))))
        assert pages[1:] == [every[:3], every[3:6], every[6:9], every[9:], []]
        assert names(a.read(All(Kind.LOCK))) == ["other"]
        assert a.read(All(Kind.STEP)) == ()

    def test_an_update_of_a_page_touches_that_page_alone(self, clients: Clients) -> None:
        a = clients.new()
        put(a, *(job(f"j{i}") for i in range(5)))
        applied = a.update(All(Kind.JOB, after="j0", limit=2), lambda doc, now: Change(replace(doc, fence=1)))
        assert verdicts(applied) == {"j1": Verdict.APPLIED, "j2": Verdict.APPLIED}
        assert [doc.fence for doc in a.read(All(Kind.JOB))] == [0, 1, 1, 0, 0]  # type: ignore[union-attr]
