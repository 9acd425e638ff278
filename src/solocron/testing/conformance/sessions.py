"""Sessions: a write tied to one happens only while it is live, tested in the commit; and no renewal brings one back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.session import Life, Session, bury, renew, swept
from solocron.stores.contract import ChangeFn, Named, RecentSessions, Store, Verdict
from solocron.stores.contract import HeldBy as Holds
from solocron.testing.conformance.kit import (
    HOUR,
    Clients,
    add_hold,
    everything,
    get,
    job,
    log,
    names,
    note,
    put,
    record,
    session,
    take,
    verdicts,
    write,
)
from solocron.testing.conformance.rivals import Meanwhile, race

__all__ = ["Sessions"]


class Sessions:
    """Chapter five."""

    def test_a_live_session_writes_also_when_it_has_expired(self, clients: Clients) -> None:
        """Expiry only permits a burial; burial is the only death."""
        a = clients.new()
        now = a.clock()
        put(a, session("s", expires_at=now + HOUR), session("late", expires_at=now - HOUR))
        put(a, job("i", due_at=now - SECOND))
        assert take(a, "s", session="s") == ["i"]
        put(a, job("j", due_at=now - SECOND))
        assert take(a, "late", session="late") == ["j"]

    @pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
    def test_a_session_that_is_not_live_writes_nothing(self, clients: Clients) -> None:
        a = clients.new()
        now = a.clock()
        put(
            a,
            session("dead", expires_at=now + HOUR, state=Life.DEAD, ended_at=now),
            session("swept", expires_at=now + HOUR, state=Life.SWEPT, ended_at=now),
            session("other", expires_at=now + HOUR),
        )
        jobs = (job("i", due_at=now - SECOND), job("j", due_at=now - SECOND))
        put(a, *jobs)
        for name in ("dead", "swept", "missing"):
            for which in (everything(), Named(Kind.JOB, ("i", "new", "j"))):
                applied = a.update(which, _claim_or_make(name), session=name)
                assert not applied.alive
                assert Verdict.APPLIED not in verdicts(applied).values()
        assert a.read(Named(Kind.JOB, ("i", "j", "new"))) == jobs
        assert log(a) == ()
        assert a.update(everything(), add_hold("other"), session="other").alive

    def test_no_claim_is_committed_after_the_burial_that_came_in_between(self, clients: Clients) -> None:
        """A sweeper that buries a session and then reads its holds sees every claim that it will ever have."""
        a, b = clients.new(), clients.new()
        put(a, session("s", expires_at=a.clock() - SECOND))
        put(a, *(job(f"j{i}", due_at=a.clock() - SECOND) for i in range(3)))
        rival = Meanwhile(lambda: _bury_and_look(b, "s"))

        def claim(doc: Any, now: int) -> Change | None:
            rival.begin()
            return _claim_or_make("s")(doc, now)

        applied = a.update(everything(), claim, session="s")
        seen = rival.join()
        got = [result.name for result in applied.results if result.verdict is Verdict.APPLIED]
        assert applied.alive or not got
        assert set(got) <= set(seen)
        assert sorted(names(a.read(Holds("s")))) == sorted(seen)
        assert sorted(r.job for r in log(a)) == sorted(seen)

    def test_no_claim_is_committed_after_a_burial_at_the_same_time(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        for i in range(20):
            name = f"s{i}"
            put(a, session(name, expires_at=a.clock() - SECOND))
            put(a, *(job(f"{i}-{j}", due_at=a.clock() - SECOND) for j in range(3)))
            order = 1 if i % 2 else -1  # the last one at the line leaves it first
            claimed, seen = race([partial(_claim, a, name), partial(_bury_and_look, b, name)][::order])[::order]
            assert set(claimed) <= set(seen)
            assert sorted(names(a.read(Holds(name)))) == sorted(seen)
            a.update(everything(), lambda doc, now: Change(None))

    def test_a_renewal_of_a_buried_session_is_refused(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, session("s", expires_at=a.clock() - SECOND))
        rival = Meanwhile(lambda: _bury_and_look(b, "s"))

        def late(doc: Any, now: int) -> Change | None:
            rival.begin()
            return renew(doc, now=now)

        write(a, Kind.SESSION, "s", late)
        rival.join()
        assert get(a, Kind.SESSION, "s").state is Life.DEAD
        assert verdicts(write(a, Kind.SESSION, "s", _renew)) == {"s": Verdict.DECLINED}
        assert get(b, Kind.SESSION, "s").state is Life.DEAD

    @pytest.mark.invariant("I5: no slot is lost")
    def test_a_renewal_never_says_that_a_session_holds_nothing_while_it_does(self, clients: Clients) -> None:
        """A node trusts that reply and reads no further: a claim that it does not know of would never end."""
        a, b = clients.new(), clients.new()
        now = a.clock()
        put(a, session("s", expires_at=now + HOUR), session("other", expires_at=now + HOUR))
        put(a, job("theirs", due_at=now - SECOND))

        def told() -> set[bool | None]:
            """Return the replies of the first renewal, and of those for which the store may use its write cache."""
            return {write(a, Kind.SESSION, "s", _renew).holds for _ in range(3)}

        assert take(b, "other", session="other") == ["theirs"]
        assert told() <= {False, None}
        put(a, job("ours", due_at=now - SECOND))
        assert take(b, "s", session="s") == ["ours"]
        assert told() <= {True, None}
        put(a, job("ours"))
        assert told() <= {False, None}

    def test_a_renewal_never_makes_a_session(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        assert verdicts(write(a, Kind.SESSION, "missing", _renew)) == {"missing": Verdict.DECLINED}
        put(a, session("s", expires_at=a.clock()))
        rival = Meanwhile(lambda: write(b, Kind.SESSION, "s", lambda doc, now: Change(None)))

        def late(doc: Any, now: int) -> Change | None:
            rival.begin()
            return renew(doc, now=now)

        write(a, Kind.SESSION, "s", late)
        rival.join()
        assert a.read(Named(Kind.SESSION, ("s", "missing"))) == ()

    def test_claims_and_renewals_of_one_session_do_not_hinder_each_other(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, session("s", expires_at=a.clock() + HOUR))
        put(a, *(job(f"j{i:02}", due_at=a.clock() - SECOND) for i in range(21)))
        rival = Meanwhile(lambda: verdicts(write(b, Kind.SESSION, "s", _renew)))

        def claim(doc: Any, now: int) -> Change | None:
            rival.begin()
            return add_hold("s")(doc, now)

        applied = a.update(everything(limit=1), claim, session="s")
        assert applied.alive
        ((first, verdict),) = verdicts(applied).items()
        assert verdict is Verdict.APPLIED
        assert rival.join() == {"s": Verdict.APPLIED}

        def renewals() -> list[str]:
            return [verdicts(write(b, Kind.SESSION, "s", _renew))["s"] for _ in range(20)]

        def claims() -> list[str]:
            return [name for _ in range(20) for name in take(a, "s", everything(limit=1), session="s")]

        renewed, claimed = race([renewals, claims])
        assert set(renewed) == {Verdict.APPLIED}
        assert sorted([first, *claimed]) == [f"j{i:02}" for i in range(21)]

    def test_a_session_writes_its_own_documents_under_its_own_condition(self, clients: Clients) -> None:
        """A node's steps, keys and locks are tied to its session like its claims."""
        a = clients.new()
        now = a.clock()
        put(a, session("s", expires_at=now + HOUR))
        for kind in (Kind.LOCK, Kind.KEY, Kind.STEP):
            change = partial(_small_document_of, kind)
            assert write(a, kind, "n", change, session="s").alive
        write(a, Kind.SESSION, "s", lambda doc, now: bury(doc, now=now, reason="test"))
        for kind in (Kind.LOCK, Kind.KEY, Kind.STEP):
            assert not write(a, kind, "later", partial(_small_document_of, kind), session="s").alive
            assert get(a, kind, "later") is None
            assert get(a, kind, "n") is not None

    def test_the_sessions_of_a_span_are_found_without_those_swept_before_it(self, clients: Clients) -> None:
        """A fleet that restarts often keeps thousands of swept sessions: a picture of an hour must not read them."""
        a, b = clients.new(), clients.new()
        put(
            a,
            session("live", expires_at=a.clock() + HOUR),
            session("silent", expires_at=1),
            session("dead", expires_at=1, state=Life.DEAD, ended_at=5),
            session("old", expires_at=1, state=Life.SWEPT, ended_at=49),
            session("new", expires_at=1, state=Life.SWEPT, ended_at=50),
        )
        assert names(b.read(RecentSessions())) == ["dead", "live", "silent"]
        assert names(b.read(RecentSessions(50))) == ["dead", "live", "new", "silent"]
        assert names(b.read(RecentSessions(0))) == ["dead", "live", "new", "old", "silent"]
        applied = b.update(RecentSessions(), lambda doc, now: bury(doc, now=now, reason="test"))
        assert sorted(verdicts(applied)) == ["dead", "live", "silent"]
        write(b, Kind.SESSION, "dead", lambda doc, now: swept(doc, now=now))
        assert names(a.read(RecentSessions(6))) == ["live", "new", "old", "silent"]


def _small_document_of(kind: Kind, doc: Any, now: int) -> Change:
    return Change(note(kind, doc.name, by="s"))


def _renew(doc: Any, now: int) -> Change | None:
    return renew(doc, now=now)


def _claim_or_make(by: str) -> ChangeFn:
    def change(doc: Any, now: int) -> Change | None:
        old = doc if hasattr(doc, "definition") else job(doc.name)
        claimed = add_hold(by)(old, now)
        return claimed and Change(claimed.doc, (record(f"{doc.name}@1", session=by),))

    return change


def _claim(store: Store, by: str) -> list[str]:
    return take(store, by, session=by)


def _bury_and_look(store: Store, name: str) -> list[str]:
    """Do as a sweeper: bury, then return what is held."""

    def dead(doc: Session, now: int) -> Change:
        return Change(replace(doc, state=Life.DEAD, ended_at=now, reason="test"))

    for _ in range(100):
        if Verdict.APPLIED in verdicts(write(store, Kind.SESSION, name, dead)).values():
            return names(store.read(Holds(name)))
    raise AssertionError("the burial never came through")
