"""Histories of a store that goes back, step by step, under the shipped engine: each is what one rule is for.

The explored model (`test_going_back.py`) says how a history goes wrong without its rule. Here the faults strike at the
same steps: right before or after a certain call of a certain node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from solocron import Run, every
from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.model.documents.namespace import NAME, Openness
from solocron.model.documents.session import Life
from solocron.scheduler.hooks import core_of
from solocron.stores.contract import Applied, Due, Named, Which
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.database import Past
from solocron.testing.simulation.fleet import Member

LEASE, BEAT, BARRIER = 15.0, 5.0, 10.0
SLOT = 600.0

Call = Callable[[], Applied]


class History(Cluster):
    """Two nodes, one job, one slot after ten minutes, and a store that can be put back."""

    def __init__(self, *, nodes: int = 2, takes: str = "100ms", **options: Any) -> None:
        @every("10m", name="job", catch_up="all", **options)
        def body(run: Run) -> None:
            self.sleep(takes)

        super().__init__(body, nodes=nodes)
        self.fleet.database.past = Past(SLOT)

    def until(self, seconds: float) -> None:
        """Let time pass until so many seconds after the beginning."""
        self.run(timedelta(seconds=seconds - self.fleet.kernel.now))

    def until_it(self, condition: Callable[[], object]) -> None:
        """Let time pass until something has happened."""
        for _ in range(6_000):
            if condition():
                return
            self.run("20ms")
        pytest.fail("it did not happen within two minutes")

    def until_renewed(self, number: int) -> None:
        """Let time pass until a node has renewed its session: it does so again in 4.25 to 5 s."""
        before = self.renewals(number)
        self.until_it(lambda: self.renewals(number) > before)

    def renewals(self, number: int) -> int:
        return int(self.node(number).lease.beats)

    def node(self, number: int) -> Any:
        node = core_of(self.member(number).scheduler).node
        assert node is not None
        return node

    def session(self, number: int) -> str:
        return str(self.node(number).lease.session)

    def lose(self, seconds: float, *, failover: bool) -> None:
        self.fleet.database.go_back(seconds, failover=failover)

    def lose_since(self, moment: float, *, failover: bool) -> None:
        """Be as it was at a moment of the kernel's time."""
        self.lose(self.fleet.kernel.now - moment, failover=failover)

    def leaves_the_slot(self, number: int) -> None:
        """The next claim of a node is lost on its way: another node is faster."""
        self.fleet.network.script(self.process(number).name, "select claim", after=None)

    @property
    def openness(self) -> Openness:
        known = namespace.read(self.fleet.database.docs[(Kind.NAMESPACE, NAME)][0])
        assert known is not None
        return known.openness

    def ends_well(self) -> None:
        """Every attempt started once, and claims are granted again."""
        counted = Counter((start.run, start.attempt) for start in self.starts)
        twice = [
            f"{start.node} at {start.at:%H:%M:%S}" for start in self.starts if counted[start.run, start.attempt] > 1
        ]
        assert not twice, f"I22: an attempt started twice, on {' and on '.join(twice)}"
        assert self.openness is Openness.OPEN

    def outcome(self) -> tuple[str, str | None]:
        """What the record of the slot says."""
        (run,) = self.runs("job")
        return str(run.status), run.reason


def around(member: Member, matches: Callable[[Which], bool], then: Callable[[Call], Applied]) -> None:
    """Let something happen around the first update of a node that matches; `then` is given the update to make."""
    real = member.store.update
    done: list[bool] = []

    def update(which: Which, change: Any, **more: Any) -> Applied:
        def call() -> Applied:
            return real(which, change, **more)

        if done or not matches(which):
            return call()
        done.append(True)
        return then(call)

    member.store.update = update  # type: ignore[method-assign]


def of(kind: Kind, *names: str) -> Callable[[Which], bool]:
    """Updates of documents by their names, or of all of a kind."""
    return lambda which: isinstance(which, Named) and which.kind is kind and (not names or which.names == names)


def claims(which: Which) -> bool:
    return isinstance(which, Due)


def test_a_node_whose_session_was_lost_has_the_time_to_come_back() -> None:
    """Without the barrier the other node, which knows nothing of it, opens at once and makes its attempt again."""
    history = History(nodes=1)
    history.until(SLOT - 20)
    before = history.fleet.kernel.now
    history.start(1)
    history.until(SLOT - 1)
    history.leaves_the_slot(0)
    history.until(SLOT + 0.5)
    assert [start.node for start in history.starts] == [history.process(1).name]
    history.until_renewed(1)
    history.fleet.network.script(history.process(1).name, "select session", after=3.0)
    history.lose_since(before, failover=True)
    history.run("60s")
    history.ends_well()
    assert history.outcome() == ("succeeded", None)


def test_nobody_is_buried_by_a_node_that_has_not_seen_that_the_store_went_back() -> None:
    """The dead node's session would not be missed by the check: nothing would be written off."""
    history = History()
    history.until(SLOT - 1)
    history.leaves_the_slot(0)
    history.until_it(lambda: history.starts)
    claimed = history.fleet.kernel.now - 0.5
    lost = history.session(1)
    history.kill(1)

    def failover(bury: Call) -> Applied:
        history.lose_since(claimed, failover=True)
        return bury()

    around(history.member(0), of(Kind.SESSION, lost), failover)
    history.run("90s")
    history.ends_well()
    assert history.outcome() == ("lost", "the store went back")


def test_an_answer_that_comes_after_the_check_starts_nothing() -> None:
    """The claim is not in the store any more, and its node has told what it remembers without it."""
    history = History()
    history.until(SLOT - 1)
    history.leaves_the_slot(0)
    node = history.node(1)

    def failover(claim: Call) -> Applied:
        answer, epoch = claim(), node.gate.epoch
        history.lose(0.5, failover=True)
        while node.gate.epoch == epoch:
            history.sleep("100ms")
        return answer

    around(history.member(1), claims, failover)
    history.run("60s")
    history.ends_well()
    assert history.outcome() == ("succeeded", None)


def test_a_node_that_was_frozen_learns_from_its_dead_session_that_the_store_went_back() -> None:
    """Restarted nodes remember nothing, and the epoch is the same: nothing else tells that its claim was lost."""
    history = History(nodes=1)
    history.start(1, pools=("elsewhere",))
    history.until(SLOT - 0.5)
    before = history.fleet.kernel.now
    history.until_it(lambda: history.runs("job") and history.outcome() == ("succeeded", None))
    lost = history.session(0)
    history.until_renewed(0)
    history.kill(1)
    history.freeze(0)
    history.lose_since(before, failover=False)
    history.start(1, pools=("elsewhere",))
    history.until_it(lambda: lost not in [session.name for session in history.sessions(Life.LIVE)])
    assert history.openness is Openness.OPEN
    assert not history.runs("job"), "its claim is lost"
    history.thaw(0)
    history.run("60s")
    history.ends_well()
    assert history.outcome() == ("succeeded", None)


def test_a_doubt_outlives_the_check_in_which_it_came_up() -> None:
    """A node is buried that may have started anything; then another server takes over, with everything."""
    history = History()
    history.until(SLOT - 1)
    history.leaves_the_slot(0)
    history.until_it(lambda: history.starts)
    claimed = history.fleet.kernel.now - 0.5
    lost = history.session(1)
    history.kill(1)
    history.lose_since(claimed, failover=True)

    def switch(bury: Call) -> Applied:
        answer = bury()
        assert history.openness is Openness.CHECKING
        assert lost not in [session.name for session in history.sessions(Life.LIVE)]
        history.lose(0, failover=True)
        return answer

    around(history.member(0), of(Kind.SESSION, lost), switch)
    history.run("90s")
    history.ends_well()
    assert history.outcome() == ("lost", "the store went back")


def test_a_namespace_opens_only_on_the_server_on_which_it_was_checked() -> None:
    """A second failover takes what was written off, and leaves the doubt, right before the opening."""
    history = History()
    history.until(SLOT - 1)
    history.leaves_the_slot(0)
    history.until_it(lambda: history.starts)
    claimed = history.fleet.kernel.now - 0.5
    lost = history.session(1)
    history.kill(1)
    history.lose_since(claimed, failover=True)
    buried: list[float] = []

    def note(bury: Call) -> Applied:
        answer = bury()
        buried.append(history.fleet.kernel.now)
        return answer

    def failover(open_again: Call) -> Applied:
        assert history.outcome() == ("lost", "the store went back")
        history.lose_since(buried[0] + 0.001, failover=True)
        assert not history.runs("job"), "it is not written off any more"
        return open_again()

    around(history.member(0), of(Kind.SESSION, lost), note)
    around(history.member(0), lambda which: bool(buried) and of(Kind.NAMESPACE)(which), failover)
    history.run("90s")
    history.ends_well()
    assert history.outcome() == ("lost", "the store went back")


def test_a_node_that_puts_back_what_is_lost_again_before_it_marks_its_session_notices() -> None:
    """It is frozen between the two; meanwhile the store goes back to the beginning of the check."""
    history = History(nodes=1)
    history.until(SLOT)
    history.until_it(lambda: history.runs("job") and history.outcome() == ("succeeded", None))
    history.lose(1, failover=True)
    began: list[float] = []

    def note(renew: Call) -> Applied:
        began.append(history.fleet.kernel.now)
        return renew()

    def freeze(mark: Call) -> Applied:
        history.freeze(0)
        history.sleep("1ms")
        return mark()

    renews = of(Kind.SESSION, history.session(0))
    around(history.member(0), lambda which: bool(began and history.runs("job")) and renews(which), freeze)
    around(history.member(0), lambda which: history.openness is Openness.CHECKING and renews(which), note)
    history.until_it(lambda: history.process(0).frozen)
    history.run("7s")
    history.lose_since(began[0], failover=False)
    assert history.openness is Openness.CHECKING
    assert not history.runs("job"), "it is lost again"
    history.thaw(0)
    history.run("90s")
    history.ends_well()
    assert history.outcome() == ("succeeded", None)


class Door:
    """A lock that nodes want, and who is inside."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.inside: list[int] = []
        self.most = 0

    def wanted_by(self, number: int, *, seconds: float) -> None:
        """Wait for the lock on a node, and keep it for a while."""
        lock = self._history.member(number).scheduler.lock("door", keep_alive=True, wait="60s")

        def hold() -> None:
            held = None
            while held is None:
                try:
                    held = lock.acquire()
                except StoreUnavailable:  # it is being checked
                    self._history.sleep("1s")
            self.inside.append(number)
            self.most = max(self.most, len(self.inside))
            self._history.sleep(timedelta(seconds=seconds))
            self.inside.remove(number)
            held.release()

        self._history.process(number).spawn(hold, "hold the door")


def test_a_lock_that_is_lost_with_its_queue_is_put_back_as_its_holder_has_it() -> None:
    """A node that waits has written the document last, with the other's grant in it, and checks first.

    It took that grant for one of an earlier session of its own, and freed the lock under its holder.
    """
    history = History()
    door = Door(history)
    history.until(SLOT - 60)
    before = history.fleet.kernel.now
    door.wanted_by(0, seconds=40)
    history.run("1s")
    door.wanted_by(1, seconds=1)
    history.run("1s")
    assert door.inside == [0]
    history.until_renewed(0)
    history.fleet.network.script(history.process(0).name, "select session", after=3.0)
    history.lose_since(before, failover=True)
    history.run("30s")
    assert door.inside == [0]
    history.run("30s")
    assert (door.inside, door.most) == ([], 1)


def test_a_permit_is_put_back_although_the_first_try_is_in_vain() -> None:
    """The store asks for another try; without one, another job would get the permit of a run that goes on."""
    history = History(nodes=1, takes="60s", limit="heavy:1")
    history.until(SLOT + 0.5)
    assert [start.job for start in history.starts] == ["job"]

    def in_vain(put_back: Call) -> Applied:
        with patch.object(history.fleet.network, "serialization_fails", lambda: True):
            return put_back()

    around(history.member(0), of(Kind.PERMIT), in_vain)
    history.lose(1, failover=True)
    history.run("8s")
    assert history.openness is Openness.CHECKING
    held = [doc.session for (kind, _), (doc, _) in history.fleet.database.docs.items() if kind is Kind.PERMIT]
    assert held == [history.session(0)]
