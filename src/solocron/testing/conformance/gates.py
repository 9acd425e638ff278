"""Gates: a claim is committed only on the server, in the epoch and under the renewal that its node has checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.namespace import (
    NAME,
    Namespace,
    Openness,
    begin_check,
    establish,
    open_again,
    pause,
    read,
)
from solocron.model.documents.scoped_pause import NO_PAUSES, Reach, Scope, ScopedPause
from solocron.model.documents.session import Life, begin, end, renew
from solocron.stores.contract import Gate, Named, Store, Verdict
from solocron.testing.conformance.kit import (
    HOUR,
    Clients,
    add_hold,
    everything,
    get,
    job,
    log,
    put,
    session,
    take,
    write,
)

__all__ = ["Gates"]

A, B = "a", "b"
"""Random parts of epochs."""
ALL_JOBS = Scope(Reach.ALL)


class Gates:
    """Chapter twelve."""

    def test_every_client_sees_one_identity(self, clients: Clients) -> None:
        a, b, other = clients.new(), clients.new(), clients.new("other")
        assert a.identity() == b.identity() == other.identity() == a.identity()
        assert 0 < len(a.identity()) <= 80
        assert " " not in a.identity()

    def test_an_open_gate_lets_a_claim_through(self, clients: Clients) -> None:
        a = clients.new()
        gate = _prepared(a)
        assert take(a, "s", session="s", gate=gate) == ["i", "j"]

    @pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
    def test_a_shut_gate_lets_no_claim_through(self, clients: Clients) -> None:
        """Another epoch, another server, a check under way, a session older than acknowledged: each shuts it."""
        a = clients.new()
        open_gate = _prepared(a)
        shut = {
            "epoch": Gate(0, ("open 2.x",)),
            "beats": Gate(1, open_gate.words),
            "no word": Gate(0, ()),
            "prefix": Gate(0, ("open", "open 1")),
        }
        for why, gate in shut.items():
            _refused(a, gate, why)
        server = _namespace(a, identity="another")
        _refused(a, open_gate, "another server")
        _namespace(a, openness=Openness.CHECKING)
        _refused(a, open_gate, "a check")
        assert take(a, "s", session="s", gate=Gate(0, ("open 1.t", "checking 1.t"))) == ["i", "j"]
        assert server.identity == "another"

    @pytest.mark.invariant("I27: what a pause covers does not start while it stands")
    def test_a_pause_that_the_claim_has_not_considered_shuts_the_gate(self, clients: Clients) -> None:
        """A write that does not depend on the pauses passes: a lock, a permit, the burial of a session."""
        a = clients.new()
        gate = _prepared(a)
        unpaused, indifferent = replace(gate, pauses=NO_PAUSES), gate
        known = _namespace(a, pauses=(ScopedPause(scope=ALL_JOBS, at=1),))
        _refused(a, unpaused, "a pause stands")
        _refused(a, replace(gate, pauses=known.mark[:-1]), "the beginning of a mark")
        assert take(a, "s", session="s", gate=replace(gate, pauses=known.mark)) == ["i", "j"]
        put(a, job("k", due_at=a.clock() - SECOND))
        assert take(a, "s", session="s", gate=indifferent) == ["k"]
        put(a, job("l", due_at=a.clock() - SECOND))
        _namespace(a)
        _refused(a, replace(gate, pauses=known.mark), "the pause is not there any more", jobs=("l",))
        assert take(a, "s", session="s", gate=unpaused) == ["l"]

    def test_a_pause_in_between_stops_the_claim(self, clients: Clients) -> None:
        """The pauses are compared in the commit, not with the selection."""
        a, b = clients.new(), clients.new()
        gate = replace(_prepared(a), pauses=NO_PAUSES)
        begun: list[str] = []

        def claim(doc: Any, now: int) -> Change | None:
            if not begun:
                begun.append(doc.name)
                wanted = ScopedPause(scope=ALL_JOBS, at=0)
                write(
                    b, Kind.NAMESPACE, NAME,
                    lambda doc, now: pause(doc, wanted=wanted, identity=b.identity(), token=B, now=now),
                )  # fmt: skip
            return add_hold("s")(doc, now)

        assert a.update(everything(), claim, session="s", gate=gate).shut
        assert begun
        assert [get(a, Kind.JOB, name).active for name in ("i", "j")] == [(), ()]

    def test_without_a_namespace_the_gate_is_shut(self, clients: Clients) -> None:
        a = clients.new()
        gate = _prepared(a)
        write(a, Kind.NAMESPACE, NAME, lambda doc, now: Change(None))
        _refused(a, gate, "no namespace")

    def test_a_gate_that_shuts_in_between_stops_the_claim(self, clients: Clients) -> None:
        """The test of the gate belongs to the commit, not to the selection."""
        a, b = clients.new(), clients.new()
        gate = _prepared(a)
        begun: list[str] = []

        def claim(doc: Any, now: int) -> Change | None:
            if not begun:
                begun.append(doc.name)
                _shut(b)  # a claim locks no row that this would have to wait for
            return add_hold("s")(doc, now)

        applied = a.update(everything(), claim, session="s", gate=gate)
        assert begun
        assert applied.shut
        assert [get(a, Kind.JOB, name).active for name in ("i", "j")] == [(), ()]

    def test_a_dead_session_is_told_from_a_shut_gate(self, clients: Clients) -> None:
        a = clients.new()
        gate = _prepared(a)
        applied = a.update(everything(), add_hold("gone"), session="gone", gate=gate)
        assert not applied.alive
        assert not applied.shut

    def test_a_renewal_counts_for_the_gate(self, clients: Clients) -> None:
        a = clients.new()
        gate = _prepared(a)
        for _ in range(3):
            assert _renewed(a) is Verdict.APPLIED
        assert take(a, "s", session="s", gate=replace(gate, beats=3)) == ["i", "j"]
        put(a, job("k", due_at=a.clock() - SECOND))
        _refused(a, replace(gate, beats=4), "beats", jobs=("k",))

    @pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
    def test_the_gate_also_tests_the_writes_of_what_it_looks_at(self, clients: Clients) -> None:
        """The session itself, which is marked, and the namespace's document itself, which is opened."""
        a = clients.new()
        _prepared(a)
        _namespace(a, openness=Openness.CHECKING)
        assert _renewed(a) is Verdict.APPLIED
        writes = {
            (Kind.SESSION, "s"): lambda doc, now: renew(doc, now=now, epoch="1.t"),
            (Kind.NAMESPACE, NAME): lambda doc, now: open_again(doc, epoch="1.t", now=now, barrier=0, doubt=False),
        }
        for (kind, name), change in writes.items():
            before = get(a, kind, name)
            for gate in (Gate(3, ("checking 1.t", "open 1.t")), Gate(1, ("checking 2.x", "open 2.x"))):
                assert a.update(Named(kind, (name,)), change, session="s", gate=gate).shut
                assert get(a, kind, name) == before
            passed = a.update(Named(kind, (name,)), change, session="s", gate=Gate(1, ("checking 1.t", "open 1.t")))
            assert passed.results[0].verdict is Verdict.APPLIED
        assert get(a, Kind.SESSION, "s").epoch == "1.t"
        assert get(a, Kind.NAMESPACE, NAME).body["openness"] == Openness.OPEN

    def test_a_session_ends_itself_under_its_own_gate_once(self, clients: Clients) -> None:
        """It lives until that commit."""
        a = clients.new()
        gate = _prepared(a)
        ended = a.update(
            Named(Kind.SESSION, ("s",)), lambda doc, at: end(doc, now=at, reason="bye"), session="s", gate=gate
        )
        assert ended.alive
        assert ended.results[0].verdict is Verdict.APPLIED
        assert get(a, Kind.SESSION, "s").state is Life.DEAD
        assert not a.update(everything(), add_hold("s"), session="s", gate=gate).alive

    def test_a_renewal_tells_the_gate_that_stands(self, clients: Clients) -> None:
        """None if the store did not read it: then the node reads it itself."""
        a, b = clients.new(), clients.new()
        _prepared(a)
        paused = (ScopedPause(scope=ALL_JOBS, at=1),)
        for openness, pauses in ((Openness.OPEN, ()), (Openness.CHECKING, ()), (Openness.OPEN, paused)):
            known = _namespace(b, openness=openness, pauses=pauses)
            for _ in range(2):
                told = write(a, Kind.SESSION, "s", _renew).gate
                assert told in (None, (known.gate, a.identity()))

    def test_the_namespace_is_kept_as_it_was_written(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        known = replace(_known(a), pauses=(ScopedPause(scope=ALL_JOBS, at=1, note="é"),), extra={"more": {"x": 1}})
        put(a, known.note())
        found = get(b, Kind.NAMESPACE, NAME)
        assert found.body.get("more") == {"x": 1}
        assert read(found) == known
        assert found.body["gate"] == f"open 1.t {a.identity()} {known.mark}"

    def test_of_many_that_find_no_namespace_one_makes_it(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        made = write(a, Kind.NAMESPACE, NAME, lambda doc, now: establish(doc, identity=a.identity(), token=A))
        again = write(b, Kind.NAMESPACE, NAME, lambda doc, now: establish(doc, identity=b.identity(), token=B))
        assert made.results[0].answer == again.results[0].answer
        assert get(a, Kind.NAMESPACE, NAME).body["token"] == A


def _known(store: Store, **more: Any) -> Namespace:
    return replace(Namespace(count=1, token="t", identity=store.identity()), **more)  # noqa: S106 - no password


def _namespace(store: Store, **more: Any) -> Namespace:
    """Write the namespace's document in this state."""
    known = _known(store, **more)
    put(store, known.note())
    return known


def _prepared(store: Store) -> Gate:
    """Make an open namespace, a session and two due jobs; return the gate of the session's node."""
    _namespace(store)
    now = store.clock()
    described = session("s", expires_at=now + HOUR)
    write(store, Kind.SESSION, "s", lambda doc, at: begin(doc, described, now=at))
    put(store, job("i", due_at=now - SECOND), job("j", due_at=now - SECOND))
    return Gate(0, ("open 1.t",))


def _refused(store: Store, gate: Gate, why: str, jobs: tuple[str, ...] = ("i", "j")) -> None:
    for which in (everything(), Named(Kind.JOB, jobs)):
        applied = store.update(which, add_hold("s"), session="s", gate=gate)
        assert applied.shut, why
        assert applied.alive, why
        assert not [result for result in applied.results if result.verdict is Verdict.APPLIED], why
    assert not any(get(store, Kind.JOB, name).active for name in jobs), why
    assert not [record for record in log(store) if record.job in jobs], why


def _shut(store: Store) -> None:
    write(
        store, Kind.NAMESPACE, NAME,
        lambda doc, now: begin_check(doc, identity=store.identity(), known=1, checked="", token=B, now=now),
    )  # fmt: skip


def _renew(doc: Any, now: int) -> Change | None:
    return renew(doc, now=now)


def _renewed(store: Store) -> Verdict:
    return write(store, Kind.SESSION, "s", _renew).results[0].verdict
