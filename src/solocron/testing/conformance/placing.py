"""Shards, permits and parts that are bound to a node, with the real state machine: what a store must keep for them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from solocron.clock import SECOND
from solocron.model.change import Kind
from solocron.model.documents import permit
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold
from solocron.model.documents.session import Session, bury
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, Needs, claim
from solocron.model.transitions.commands import trigger
from solocron.model.transitions.finishing import Outcome, take_over
from solocron.model.transitions.registration import Proposal, define
from solocron.stores.contract import All, HeldBy, Named, Result
from solocron.testing.conformance.kit import Clients, bury_expired, get, log
from solocron.testing.conformance.life import LEASE, MINE, ScriptedNode, resolve

__all__ = ["Placing"]


class Placing:
    """Chapter eleven."""

    def test_shards_are_claimed_finished_and_taken_over_each_by_itself(self, clients: Clients) -> None:
        a, b = ScriptedNode(clients.new(), "a"), ScriptedNode(clients.new(), "b")
        _defined(a, shards=("eu", "us", "apac"), retries=1)
        (one,), (two,), (three,) = a.claim(), b.claim(), a.claim()
        assert [hold.shard for hold in (one, two, three)] == ["eu", "us", "apac"]
        assert len({hold.run for hold in (one, two, three)}) == 3
        assert a.claim() == b.claim() == []
        assert get(b.store, Kind.JOB, "j").active == (one, two, three)
        assert b.finish(two, Outcome.succeeded("2")).answer == "accepted"
        clients.advance(LEASE)
        b.renew()
        assert b.sweep() == ["a"]
        again = [hold for _ in range(2) for hold in b.claim()]
        assert sorted((hold.run, hold.shard, hold.attempt) for hold in again) == sorted(
            (hold.run, hold.shard, 2) for hold in (one, three)
        )
        for hold in again:
            b.finish(hold, Outcome.succeeded())
        keys = sorted(record.key.rpartition("#")[2] for record in log(a.store) if record.status == "succeeded")
        assert keys == ["apac", "eu", "us"]

    def test_a_permit_has_one_holder_and_goes_with_its_session(self, clients: Clients) -> None:
        a, b = ScriptedNode(clients.new(), "a"), ScriptedNode(clients.new(), "b")
        _defined(a, limit="db:1")
        (needs,) = _claim(a)
        assert needs == Needs(limit="db:1")
        assert _take(a).answer is True
        assert _take(b).answer is False
        assert [doc.name for doc in b.store.read(HeldBy("a", Kind.PERMIT))] == ["db:0"]
        (hold,) = _claim(a, permit="db:0")
        assert isinstance(hold, Hold)
        assert get(b.store, Kind.JOB, "j").active[0].permit == "db:0"
        clients.advance(LEASE)
        b.renew()
        b.update(All(Kind.SESSION), bury_expired)
        b.update(HeldBy("a"), partial(take_over, session="a", reason="its node died", resolve=resolve))
        b.update(HeldBy("a", Kind.PERMIT), partial(permit.orphan, session="a"))
        assert b.store.read(HeldBy("a", Kind.PERMIT)) == ()
        assert _take(b).answer is True
        assert a.store.holders() == frozenset({"b"})

    def test_a_permit_is_not_taken_by_a_dead_session(self, clients: Clients) -> None:
        a = ScriptedNode(clients.new(), "a")
        a.write("a", partial(bury, reason="dead"), Kind.SESSION)
        take = partial(permit.take, session="a", node="a", turn=1)
        applied = a.update(Named(Kind.PERMIT, ("db:0",)), take, session="a")
        assert not applied.alive
        assert a.store.read(All(Kind.PERMIT)) == ()

    def test_a_part_is_for_its_node_alone(self, clients: Clients) -> None:
        a, b, c = (ScriptedNode(clients.new(), name) for name in "abc")
        _defined(a, nodes=2)
        assert _claim(a) == [Needs(sessions=True)]
        (mine,) = _claim(a, live=True)
        assert isinstance(mine, Hold)
        assert mine.only == "a"
        (waiting,) = get(b.store, Kind.JOB, "j").waiting_runs
        other, third = (b, c) if waiting.only == "b" else (c, b)
        (later,) = _claim(third, live=True)
        assert isinstance(later, Later)
        (theirs,) = _claim(other, live=True)
        assert isinstance(theirs, Hold)
        assert theirs.only == other.name
        assert set(theirs.among) == {"a", other.name}


def _defined(node: ScriptedNode, **policies: object) -> None:
    """Define a job without a schedule, and trigger it once."""
    definition = Definition(handler="h", schedule=None, **policies)  # type: ignore[arg-type]
    node.ask(define, proposal=Proposal(definition=definition, source=None), late_for=0)
    node.ask(trigger, request="r1", payload=None, at=None)


def _take(node: ScriptedNode) -> Result:
    take = partial(permit.take, session=node.name, node=node.name, turn=1)
    (result,) = node.update(Named(Kind.PERMIT, ("db:0",)), take, session=node.name).results
    return result


def _claim(node: ScriptedNode, *, live: bool = False, permit: str | None = None) -> list[object]:
    """Claim with what the job needs."""
    found = tuple(doc for doc in node.store.read(All(Kind.SESSION)) if isinstance(doc, Session)) if live else None
    able = None if found is None else tuple(replace(session, handlers=None) for session in found)
    by = Claimant(session=node.name, node=node.name, late_for=25 * SECOND, sessions=able, permit=permit)
    applied = node.update(MINE, partial(claim, by=by, resolve=resolve), session=node.name)
    return [result.answer for result in applied.results if result.answer]
