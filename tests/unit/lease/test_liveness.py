"""Rule 5: a session is buried by two clocks, in every mode. Each caller has its mode, and one rule serves them."""

from __future__ import annotations

import pytest

from solocron.clock import SECOND
from solocron.engine.namespace_gate import change_namespace
from solocron.lease.liveness import Authority, Liveness, Mode
from solocron.lease.own import OwnLease
from solocron.lease.terms import LeaseTerms
from solocron.model.change import Change, Kind
from solocron.model.documents.namespace import establish
from solocron.model.documents.session import Life, Session, begin, renew
from solocron.runtime import Threads
from solocron.stores.contract import Gate, Named
from solocron.stores.memory import MemoryStore, World
from tests.unit.lease.kit import BootClock

LEASE = 15


class Stage:
    """A store and a process that watches its sessions; each has a clock of its own."""

    def __init__(self, *, observes: bool = False) -> None:
        """`observes`: the process has a lease, and so knows how the store's clock runs."""
        self.clock, self.leapt = BootClock(), 0.0
        runtime = Threads(self.clock)
        self.store = MemoryStore(world=World(clock=lambda: round((self.clock.now + self.leapt) * SECOND)))
        terms = LeaseTerms(node="watcher", host="h", pid=1, lease=float(LEASE), beat=5.0)
        self.lease = OwnLease(runtime, terms, lambda: None)
        self.liveness = Liveness(self.store, runtime, "watcher", self.lease if observes else None)
        self.observe()

    def observe(self) -> None:
        self.lease.observe(self.store.clock(), asked=self.clock.now, replied=self.clock.now)

    def begin(self, name: str = "s", *, node: str = "n", pools: tuple[str, ...] = ("default",)) -> None:
        made = Session(name=name, node=node, host="h", pid=1, pools=pools, lease=LEASE * SECOND)
        self.store.update(Named(Kind.SESSION, (name,)), lambda doc, now: begin(doc, made, now=now))

    def renew(self, name: str = "s") -> None:
        self.store.update(Named(Kind.SESSION, (name,)), lambda doc, now: renew(doc, now=now))

    def session(self, name: str = "s") -> Session:
        (doc,) = self.store.read(Named(Kind.SESSION, (name,)))
        assert isinstance(doc, Session)
        return doc

    def bury(self, mode: Mode, name: str = "s") -> bool:
        return self.liveness.bury_if_over(self.session(name), mode, now=self.store.clock())


@pytest.mark.parametrize("mode", [Mode.WATCH, Mode.REPAIR])
def test_a_session_is_buried_after_a_lease_of_silence_on_both_clocks(mode: Mode) -> None:
    stage = Stage()
    stage.begin()
    assert not stage.bury(mode)
    stage.clock.now += LEASE - 0.1
    assert not stage.bury(mode)
    stage.clock.now += 0.2
    assert stage.bury(mode)
    assert stage.session().state is Life.DEAD
    assert stage.session().buried_by == ("watcher" if mode is Mode.WATCH else "doctor --repair")


@pytest.mark.parametrize("mode", [Mode.WATCH, Mode.REPAIR])
@pytest.mark.parametrize("observes", [True, False])
def test_a_leap_of_the_stores_clock_buries_nobody(mode: Mode, observes: bool) -> None:
    stage = Stage(observes=observes)
    stage.begin()
    assert not stage.bury(mode)
    stage.leapt += 3600
    stage.observe()
    for _ in range(LEASE - 1):
        stage.clock.now += 1
        assert not stage.bury(mode)
    stage.renew()
    stage.clock.now += 2
    assert not stage.bury(mode), "it was renewed: it is watched anew"
    assert stage.session().state is Life.LIVE


@pytest.mark.parametrize("mode", [Mode.WATCH, Mode.REPAIR])
def test_a_session_first_seen_expired_is_watched_for_a_lease(mode: Mode) -> None:
    stage = Stage(observes=True)
    stage.begin()
    stage.clock.now += 10 * LEASE
    assert not stage.bury(mode)
    assert stage.liveness.due("s") == stage.clock.now + LEASE
    stage.clock.now += LEASE
    assert stage.bury(mode)


def test_a_clock_that_ran_evenly_tells_how_much_is_left_and_a_repair_does_not_ask_it() -> None:
    for mode, left in ((Mode.WATCH, 5), (Mode.REPAIR, LEASE)):
        stage = Stage(observes=True)
        stage.begin()
        stage.clock.now += LEASE - 5
        assert not stage.bury(mode)
        assert stage.liveness.due("s") == pytest.approx(stage.clock.now + left)


@pytest.mark.parametrize("left", [0, 5])
def test_what_was_seen_before_a_time_out_of_touch_does_not_count(left: int) -> None:
    """The store may have gone back meanwhile: the session as it shows it had renewals since, which are lost."""
    stage = Stage(observes=True)
    stage.lease.begin("own", stage.clock.now)
    stage.begin()
    assert not stage.bury(Mode.WATCH)
    stage.lease.trouble()
    stage.clock.now += LEASE - left
    stage.observe()
    stage.lease.begin("own again", stage.clock.now)
    assert not stage.bury(Mode.WATCH), "perhaps it was renewed until a moment ago"
    assert stage.liveness.due("s") == pytest.approx(stage.clock.now + LEASE)
    stage.clock.now += LEASE
    assert stage.bury(Mode.WATCH)


def test_both_clocks_are_needed() -> None:
    """The silence has passed on this machine's clock, and the store's clock is behind: no session is buried yet."""
    stage = Stage()
    stage.begin()
    assert not stage.bury(Mode.WATCH)
    stage.leapt -= 2
    stage.clock.now += LEASE
    assert not stage.bury(Mode.WATCH)
    assert not stage.liveness.bury_if_over(stage.session(), Mode.WATCH), "the commit compares as well"
    stage.clock.now += 2
    assert stage.bury(Mode.WATCH)


def test_a_renewal_between_the_look_and_the_burial_counts() -> None:
    stage = Stage()
    stage.begin()
    seen = stage.session()
    stage.liveness.watch(seen, Mode.WATCH)
    stage.clock.now += LEASE
    stage.renew()
    assert not stage.liveness.bury_if_over(seen, Mode.WATCH)
    assert stage.session().state is Life.LIVE


def test_a_tick_buries_by_the_stores_clock_where_nobody_watches() -> None:
    stage = Stage()
    stage.begin()
    stage.begin("holds a lock", pools=())
    assert not stage.bury(Mode.TICK)
    stage.clock.now += LEASE
    assert stage.bury(Mode.TICK)


def test_a_tick_leaves_burying_to_a_node_that_watches() -> None:
    stage = Stage()
    stage.begin()
    stage.clock.now += LEASE
    stage.begin("other")
    assert not stage.bury(Mode.TICK)
    stage.clock.now += LEASE
    assert stage.bury(Mode.TICK), "the other one is expired as well"


def test_a_node_of_this_process_watches_although_a_leap_has_expired_it() -> None:
    stage = Stage()
    stage.begin()
    stage.begin("own", node="watcher")
    stage.leapt += 3600
    assert not stage.bury(Mode.TICK)
    under = Authority("own", lambda: Gate(0, ()), lambda session, now: True, lambda: None)
    watched = stage.liveness.watch(stage.session(), Mode.TICK)
    assert stage.liveness._is_over(stage.session(), Mode.TICK, watched, stage.store.clock(), under), (
        "a tick's own session does not watch"
    )


@pytest.mark.parametrize("pools", [("default",), ()])
def test_a_process_that_looks_once_does_not_bury_its_own_session_after_a_leap(pools: tuple[str, ...]) -> None:
    """Two runs of one node that want one lock, of which the second does not wait; also a program without a node."""
    stage = Stage()
    stage.begin(node="watcher", pools=pools)
    stage.leapt += 3600
    assert not stage.bury(Mode.TICK)
    stage.clock.now += LEASE
    assert stage.bury(Mode.TICK), "an earlier session of this process is not kept for good"


def test_a_burial_that_the_store_declined_does_not_shorten_the_silence() -> None:
    """A process that asked once, and then waits, must not take the first try for the time that it has watched."""
    stage = Stage()
    stage.begin()
    assert not stage.liveness.bury_if_over(stage.session(), Mode.TICK, now=stage.store.clock() + 3600 * SECOND)
    assert stage.session().state is Life.LIVE, "the commit compares with the store's own clock"
    stage.leapt += 3600
    stage.clock.now += 1
    assert not stage.bury(Mode.WATCH)


def test_a_namespace_that_does_not_allow_it_buries_nobody() -> None:
    stage = Stage(observes=True)
    stage.begin()
    under = Authority("own", lambda: Gate(0, ()), lambda session, now: False, lambda: None)
    stage.liveness.watch(stage.session(), Mode.WATCH)
    stage.clock.now += LEASE
    stage.lease.begin("own", stage.clock.now)
    assert not stage.liveness.bury_if_over(stage.session(), Mode.WATCH, under=under)
    assert stage.session().state is Life.LIVE
    due = stage.liveness.due("s")
    assert due is not None
    assert due > stage.clock.now, "it is not asked again at once"


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_a_burial_rests_on_a_renewal_that_was_sent_after_the_other_lease_had_ended() -> None:
    """The store may have lost every commit since the burier's own last renewal, later ones of the other included."""
    stage = Stage(observes=True)
    namespace = change_namespace(
        stage.store, lambda doc, at: establish(doc, identity=stage.store.identity(), token="t")
    )
    assert namespace is not None
    asked: list[float] = []
    under = Authority(
        "own",
        gate=lambda: Gate(0, (f"open {namespace.epoch}",)),
        allows=lambda session, now: True,
        renew=lambda: asked.append(stage.clock.now),
    )
    stage.begin()
    stage.begin("own", node="watcher")
    stage.lease.begin("own", stage.clock.now)
    stage.liveness.watch(stage.session(), Mode.WATCH)
    stage.clock.now += LEASE - 5
    assert stage.lease.renewed("own", stage.clock.now)
    stage.clock.now += 5.1
    assert not stage.liveness.bury_if_over(stage.session(), Mode.WATCH, under=under)
    assert stage.session().state is Life.LIVE
    assert asked == [stage.clock.now]
    assert stage.lease.renewed("own", stage.clock.now)
    stage.clock.now += 0.1
    assert stage.liveness.bury_if_over(stage.session(), Mode.WATCH, under=under)
    assert stage.session().state is Life.DEAD


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_a_session_that_went_back_is_watched_for_a_whole_lease() -> None:
    """What it shows as left is the rest of a renewal that others have followed."""
    stage = Stage(observes=True)
    stage.begin()
    old = stage.session()
    for _ in range(2):
        stage.clock.now += 5
        stage.renew()
        stage.observe()
        assert not stage.bury(Mode.WATCH)
    stage.store.update(Named(Kind.SESSION, ("s",)), lambda doc, now: Change(old))
    assert not stage.bury(Mode.WATCH)
    stage.clock.now += 5.1
    assert not stage.bury(Mode.WATCH), "expired by the store's clock alone"
    stage.clock.now += LEASE
    assert stage.bury(Mode.WATCH)


def test_a_session_that_is_gone_or_dead_is_dead() -> None:
    stage = Stage()
    assert stage.liveness.is_dead("nobody", Mode.WATCH, now=stage.store.clock())
    stage.begin()
    assert not stage.liveness.is_dead("s", Mode.WATCH, now=stage.store.clock())
    stage.clock.now += LEASE
    assert stage.liveness.is_dead("s", Mode.WATCH, now=stage.store.clock())
    assert stage.liveness.is_dead("s", Mode.WATCH, now=stage.store.clock())
    assert stage.liveness.due("s") is None
