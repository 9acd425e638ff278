"""Limits across jobs: never above, never leaked, whatever dies when; in ten thousand random fleets of the pure machine.

The nodes here follow the rules of `engine.permits`: take before the claim, start only under a permit in hand, give back
after the end, and give back at a beat what no claim uses.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from solocron.clock import SECOND
from solocron.errors import InvalidError
from solocron.jobs.checks import check_limit
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.permit import free, give, limit_of, names_of, orphan, parse, take, turn_of
from solocron.model.documents.run import Origin
from solocron.model.policy import allow
from solocron.model.timetable import EMPTY
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Needs, claim
from solocron.model.transitions.finishing import Outcome, finish, hand_back, take_over
from tests.unit.model.one_job import T0

FLEETS, EVENTS = 10_000, 24


def resolve(_: object) -> object:
    return EMPTY


@dataclass
class Node:
    session: str
    hand: dict[str, int] = field(default_factory=dict)
    """Permits that it knows to be its own, and which taking of each it was."""
    doubt: dict[str, int] = field(default_factory=dict)
    """Those whose claim may or may not stand."""
    bodies: dict[str, Hold] = field(default_factory=dict)
    """What it runs, by permit."""


class Fleet:
    """Two jobs that share a limit, a few nodes, and one dict of documents."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.limit = f"scarce:{self.dice.randint(1, 3)}"
        self.names = names_of(self.limit)
        self.permits: dict[str, SmallDocument | Absent] = {name: Absent(Kind.PERMIT, name) for name in self.names}
        self.jobs = {name: self._job(name) for name in ("one", "two")}
        self.now, self.serial = T0, 0
        self.nodes: list[Node] = []
        self.dead: list[Node] = []
        self.flying: list[tuple[str, str, str]] = []
        """Claims that may land later: job, session, permit."""

    def _job(self, name: str) -> Job:
        definition = Definition(handler="work", schedule=None, limit=self.limit, overlap=allow(9), retries=1)
        waiting_run = tuple(
            WaitingRun(run=f"{name}@{n}", slot=T0, origin=Origin.TRIGGER, ready_at=T0, request=str(n)) for n in range(6)
        )
        return Job(name=name, incarnation=1, definition=definition, cursor=T0, waiting_runs=waiting_run, due_at=T0)

    # --- what happens --------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.now += self.dice.randrange(SECOND)
        what = self.dice.choice((self.join, self.take, self.take, self.claim, self.claim, self.claim, self.end,
                                 self.beat, self.die, self.sweep, self.sweep, self.land))  # fmt: skip
        what()
        self.check()

    def join(self) -> None:
        if len(self.nodes) < 4:
            self.serial += 1
            self.nodes.append(Node(f"s{self.serial}"))

    def take(self) -> None:
        node = self._any()
        name = self.dice.choice(self.names)
        if node is None or name in node.hand or name in node.doubt or name in node.bodies:
            return
        self.serial += 1
        turn = self.serial
        change = take(self.permits[name], session=node.session, node="n", turn=turn, now=self.now)
        if self._put(change) and self.dice.random() < 0.8:  # else its answer is lost: the next beat gives it back
            node.hand[name] = turn

    def claim(self) -> None:
        node = self._any()
        if node is None or not node.hand:
            return
        name, permit = self.dice.choice(list(self.jobs)), self.dice.choice(list(node.hand))
        fate = self.dice.random()
        if fate < 0.2:  # on its way: it may land at any time, or never
            self.flying.append((name, node.session, permit))
            node.doubt[permit] = node.hand.pop(permit)
            return
        hold = self._claim(name, node.session, permit)
        if hold is not None and fate < 0.9:
            node.bodies[permit] = hold
            del node.hand[permit]
        elif hold is not None:
            node.doubt[permit] = node.hand.pop(permit)

    def land(self) -> None:
        if self.flying:
            name, session, permit = self.flying.pop(self.dice.randrange(len(self.flying)))
            if any(node.session == session for node in self.nodes):  # a claim commits only if its session is live
                self._claim(name, session, permit)

    def _claim(self, name: str, session: str, permit: str) -> Hold | None:
        by = Claimant(session=session, node=session, late_for=SECOND, permit=permit)
        change = claim(self.jobs[name], now=self.now, by=by, resolve=resolve)  # type: ignore[arg-type]
        if change is None:
            return None
        assert isinstance(change.doc, Job)
        self.jobs[name] = change.doc
        return change.answer if isinstance(change.answer, Hold) else None

    def end(self) -> None:
        node = self._any()
        if node is None or not node.bodies:
            return
        permit = self.dice.choice(list(node.bodies))
        hold = node.bodies.pop(permit)
        how = self.dice.choice([Outcome.succeeded(), Outcome.failed("no")])
        self._job_change(hold, lambda job: finish(
            job, run=hold.run, fence=hold.fence, outcome=how, now=self.now, resolve=resolve  # type: ignore[arg-type]
        ))  # fmt: skip
        self._give(node, permit)

    def beat(self) -> None:
        """Claims whose reply was lost are adopted if their permit is still ours, else handed back; strays go back."""
        node = self._any()
        if node is None:
            return
        known = {(hold.run, hold.fence) for hold in node.bodies.values()}
        holds = [h for job in self.jobs.values() for h in job.active if h.session == node.session]
        for hold in holds:
            if (hold.run, hold.fence) in known:
                continue
            permit = hold.permit or ""
            if permit in node.doubt and permit not in node.bodies:
                del node.doubt[permit]
                node.bodies[permit] = hold
            else:
                self._job_change(hold, lambda job, hold=hold: hand_back(  # type: ignore[misc]
                    job, run=hold.run, fence=hold.fence, now=self.now, reason="no permit", resolve=resolve
                ))  # fmt: skip
        needed = {hold.permit for hold in holds}
        for permit in [one for one in node.doubt if one not in needed]:
            node.hand[permit] = node.doubt.pop(permit)
            self._give(node, permit)
        for name, doc in self.permits.items():
            mine = isinstance(doc, SmallDocument) and doc.session == node.session
            if mine and name not in node.bodies and name not in node.doubt and name not in node.hand:
                self._give(node, name)

    def die(self) -> None:
        node = self._any()
        if node is not None and self.dice.random() < 0.5:
            self.nodes.remove(node)  # buried: from here on its session is dead
            self.dead.append(node)

    def sweep(self) -> None:
        """One step of a sweep: a job, then a permit, of a dead session; another sweeper may do the next."""
        for node in self.dead:
            for name, job in self.jobs.items():
                change = take_over(job, session=node.session, now=self.now, reason="dead", resolve=resolve)  # type: ignore[arg-type]
                if change is not None:
                    assert isinstance(change.doc, Job)
                    self.jobs[name] = change.doc
                    return
            for doc in self.permits.values():
                if self._put(orphan(doc, session=node.session, now=self.now)) is not None:
                    return

    # --- what must hold ------------------------------------------------------------------------------------------

    def check(self) -> None:
        running = [(permit, node.session) for node in self.nodes for permit in node.bodies]
        assert len(running) <= len(self.names), f"{len(running)} run, {len(self.names)} may"
        for permit, session in running:
            doc = self.permits[permit]
            assert isinstance(doc, SmallDocument), f"{permit} has no holder, and a body runs under it"
            assert doc.session == session, f"a body runs under {permit}, which is not its session's"
        assert len({permit for permit, _ in running}) == len(running), "two bodies under one permit"

    def heal(self) -> None:
        """Every node dies; after the sweep every permit is free."""
        self.dead += self.nodes
        self.nodes = []
        for _ in range(60):
            self.sweep()
        assert all(map(free, self.permits.values())), "a permit leaked"
        assert not any(job.active for job in self.jobs.values())

    # --- small things --------------------------------------------------------------------------------------------

    def _any(self) -> Node | None:
        return self.dice.choice(self.nodes) if self.nodes else None

    def _put(self, change: Change | None) -> bool | None:
        if change is None:
            return None
        assert isinstance(change.doc, SmallDocument)
        self.permits[change.doc.name] = change.doc
        return bool(change.answer)

    def _give(self, node: Node, permit: str) -> None:
        doc = self.permits[permit]
        turn = node.hand.pop(permit, None)
        if isinstance(doc, SmallDocument):
            self._put(give(doc, session=node.session, turn=turn_of(doc) if turn is None else turn, now=self.now))

    def _job_change(self, hold: Hold, change: object) -> None:
        name = hold.run.partition("@")[0]
        made = change(self.jobs[name])  # type: ignore[operator]
        if made is not None:
            self.jobs[name] = made.doc


@pytest.mark.invariant("I5: no slot is lost")
@pytest.mark.invariant("I9: no more run at once than may")
@pytest.mark.parametrize("fleets", [1_500, pytest.param(FLEETS, marks=pytest.mark.long)])
def test_never_above_and_never_leaked_in_thousands_of_fleets_with_deaths(fleets: int) -> None:
    ran = full = 0
    for seed in range(fleets):
        fleet = Fleet(seed)
        for _ in range(3):
            fleet.join()
        for _ in range(EVENTS):
            fleet.step()
            bodies = sum(len(node.bodies) for node in fleet.nodes)
            ran += bodies > 0
            full += bodies == len(fleet.names)
        fleet.heal()
    assert ran > 4 * fleets, "hardly anything ran, so nothing was shown"
    assert full > fleets / 2, "the limit was hardly ever reached, so nothing was shown"


def test_a_permit_is_taken_once_and_asking_in_vain_leaves_a_mark() -> None:
    first = take(Absent(Kind.PERMIT, "db:0"), session="a", node="n", turn=1, now=T0)
    assert first is not None
    assert first.answer is True
    assert isinstance(first.doc, SmallDocument)
    again = take(first.doc, session="a", node="n", turn=1, now=T0)
    assert again is not None
    assert again.doc is first.doc
    other = take(first.doc, session="b", node="m", turn=1, now=T0)
    assert other is not None
    assert other.answer is False
    assert isinstance(other.doc, SmallDocument)
    assert other.doc.session == "a"
    marked = take(other.doc, session="b", node="m", turn=2, now=T0 + SECOND)
    assert marked is not None
    assert marked.doc is other.doc
    back = give(other.doc, session="a", turn=1, now=T0 + SECOND)
    assert back is not None
    assert back.answer is True


def test_a_late_message_about_an_earlier_taking_gives_nothing_away() -> None:
    first = take(Absent(Kind.PERMIT, "db:0"), session="a", node="n", turn=1, now=T0)
    assert first is not None
    assert isinstance(first.doc, SmallDocument)
    back = give(first.doc, session="a", turn=1, now=T0)
    assert back is not None
    assert isinstance(back.doc, SmallDocument)
    second = take(back.doc, session="a", node="n", turn=2, now=T0)
    assert second is not None
    assert isinstance(second.doc, SmallDocument)
    assert give(second.doc, session="a", turn=1, now=T0) is None
    assert give(second.doc, session="b", turn=2, now=T0) is None


def test_names_and_bounds() -> None:
    assert parse("db-heavy:2") == ("db-heavy", 2)
    assert names_of("db-heavy:2") == ("db-heavy:0", "db-heavy:1")
    assert limit_of("db-heavy:1") == "db-heavy"
    assert check_limit("db-heavy:02") == "db-heavy:2"
    assert check_limit(None) is None


@pytest.mark.parametrize("bad", ["db", "db:", ":2", "db:0", "db:257", "db:-1", "a b:1", "x" * 65 + ":1", 2, ("db", 2)])
def test_what_cannot_be_a_limit_is_refused(bad: object) -> None:
    with pytest.raises(InvalidError, match=r"limit=.*Nothing was registered"):
        check_limit(bad)


def test_a_claim_without_a_permit_says_which_one_it_needs() -> None:
    job = Fleet(1).jobs["one"]
    by = Claimant(session="s", node="n", late_for=SECOND)
    change = claim(job, now=T0, by=by, resolve=resolve)  # type: ignore[arg-type]
    assert change is not None
    assert change.doc is job
    assert change.answer == Needs(limit=job.definition.limit)
