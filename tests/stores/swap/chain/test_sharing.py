"""A chain makes one commit at a time: threads of a client share it, and no client keeps the others out.

In simulated time, with the threads and the round trips of the simulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.objects import MemoryObjects, SharedObjects
from solocron.stores.swap.chain.state import ChainPace
from solocron.stores.swap.chain.text import ChainCommit
from solocron.stores.swap.chain.yielding import Yielding
from solocron.stores.swap.key_store import ABSENT, Lost, Stale, Swapped
from solocron.stores.swap.layout import NOTIFY
from solocron.testing.simulation.kernel import Kernel, Process, SimEvent, SimTurns

TRIP = 0.01
LEASE = 3.0


class FarObjects(MemoryObjects):
    """Objects that are half a round trip away; `hurt` gets the next creation of a commit."""

    def __init__(self, shared: SharedObjects, kernel: Kernel) -> None:
        super().__init__(shared)
        self._kernel = kernel
        self.hurt: Callable[[Callable[[], bool]], bool] | None = None

    def _travel(self) -> None:
        SimEvent(self._kernel).wait(TRIP / 2 * self._kernel.dice.uniform(0.8, 1.6))

    def create(self, name: str, content: bytes) -> bool:
        self._travel()
        hurt, self.hurt = (self.hurt, None) if "/c/" in name else (None, self.hurt)
        there = super().create
        made = hurt(lambda: there(name, content)) if hurt else there(name, content)
        self._travel()
        return made

    def get(self, name: str) -> bytes | None:
        self._travel()
        found = super().get(name)
        self._travel()
        return found


class Town:
    """Clients of one folder, each a process with any number of threads."""

    def __init__(self) -> None:
        self.kernel = Kernel(7)
        self.shared = SharedObjects(lambda: int(self.kernel.now * SECOND))
        self._names = count(1)

    def client(self) -> tuple[ChainKeys, FarObjects, Process]:
        kernel = self.kernel
        process = Process(kernel, f"client {next(self._names)}")
        objects = FarObjects(self.shared, kernel)
        keys = ChainKeys(
            objects,
            pace=ChainPace(commits=1_000),
            boot=lambda: kernel.now,
            pause=lambda most: SimEvent(kernel).wait(kernel.dice.uniform(most / 2, most)),
            turns=lambda: SimTurns(kernel),
            aside=lambda body: process.spawn(body, "roots"),
        )
        process.spawn(lambda: done(keys, {"made": "1"}), "begin")
        kernel.run(kernel.now + 1)
        return keys, objects, process

    def start(self, process: Process, *bodies: Callable[[], object]) -> None:
        """Start threads one after the other, all of them before the first is back from its first call."""
        for body in bodies:
            process.spawn(lambda body=body: void(body()), "thread")  # type: ignore[misc]
            self.kernel.run(self.kernel.now + TRIP / 100)

    def commits(self) -> list[dict[str, str | None]]:
        names = sorted(name for name in self.shared.objects if "/c/" in name)
        return [dict(ChainCommit.of(self.shared.objects[name]).writes) for name in names]


def void(_: object) -> None:
    """Return nothing, as the body of a thread."""


def done(keys: ChainKeys, writes: dict[str, str | None]) -> None:
    assert isinstance(keys.commit({}, writes), Swapped)


@pytest.fixture
def town() -> Town:
    return Town()


def test_no_client_keeps_the_others_out(town: Town) -> None:
    """Five, each with two threads that always want to commit, and one that renews a lease.

    Without gaps one of them made every commit, and the renewals of the others waited for 3.8 s.
    """
    made, failed, waited = Counter[int](), Counter[str](), list[float]()
    kernel = town.kernel
    clients = [town.client() for _ in range(5)]
    end = kernel.now + 30

    def work(me: int, key: str) -> None:
        while kernel.now < end:
            try:
                done(clients[me][0], {key: str(kernel.now)})
                made[me] += 1
            except (StoreUnavailable, Lost) as error:
                failed[str(error)] += 1

    def renew(me: int) -> None:
        while kernel.now < end:
            began = kernel.now
            done(clients[me][0], {f"session/{me}": str(began)})
            waited.append(kernel.now - began)
            SimEvent(kernel).wait(LEASE / 3)

    for me, (_, _, process) in enumerate(clients):
        town.start(process, *(partial(work, me, f"{me}/{key}") for key in "ab"), partial(renew, me))
    kernel.run(end + 10)
    assert not failed
    fair = sum(made.values()) / 5
    assert [me for me in range(5) if made[me] < fair / 2] == []
    assert len(waited) > 100
    assert max(waited) < LEASE / 3


def test_a_client_alone_makes_few_gaps() -> None:
    alone, gaps = Yielding(), 0
    for _ in range(1_000):
        gaps += alone.gap() > 0
        alone.won(TRIP)
    assert 50 < gaps < 80


def test_a_lost_race_brings_the_gaps_back() -> None:
    one = Yielding()
    for _ in range(100):
        one.won(TRIP)
    one.lost()
    rows = []
    for _ in range(6):
        rows.append(one.gap() > 0)
        one.won(TRIP)
    assert rows == [False, False, True, False, False, False]


def test_a_slow_call_makes_no_long_gap() -> None:
    one = Yielding()
    for _ in range(2):
        one.won(60.0)
    assert 0 < one.gap() < 2


# --- threads of one client


def threads(town: Town, *wanted: Callable[[ChainKeys], object]) -> list[object]:
    """Let the first thread be on its way when the others come; return what each got, or the error it met."""
    keys, _, process = town.client()
    found: list[object] = [None] * len(wanted)

    def run(place: int) -> None:
        try:
            found[place] = wanted[place](keys)
        except (StoreUnavailable, Lost) as error:
            found[place] = error

    town.start(process, *(partial(run, place) for place in range(len(wanted))))
    town.kernel.run(town.kernel.now + 5)
    return found


def test_what_waits_rides_along_in_one_commit(town: Town) -> None:
    wants = [lambda keys, name=name: keys.commit({name: ABSENT}, {name: "1"}) for name in "abcd"]
    found = threads(town, *wants)
    assert [type(one) for one in found] == [Swapped] * 4
    assert town.commits()[1:] == [{"a": "1"}, {"b": "1", "c": "1", "d": "1"}]
    assert found[1:] == [Swapped({name: 3}) for name in "bcd"]


def test_commits_of_one_key_stay_apart(town: Town) -> None:
    """Otherwise both would be told of one mark, and one of them would take the other's value for its own."""
    names = ("a", "k", "k", "c")
    found = threads(town, *(lambda keys, n=name: keys.commit({n: ABSENT}, {n: "1"}) for name in names))
    assert [type(one) for one in found] == [Swapped, Swapped, Stale, Swapped]
    assert [sorted(writes) for writes in town.commits()[1:]] == [["a"], ["c", "k"]]


def test_a_check_of_what_another_writes_stays_apart(town: Town) -> None:
    found = threads(
        town,
        lambda keys: keys.commit({}, {"a": "1"}),
        lambda keys: keys.commit({}, {"live": None, "b": "1"}),
        lambda keys: keys.commit({"live": ABSENT}, {"c": "1"}),
    )
    assert [type(one) for one in found] == [Swapped] * 3
    assert [sorted(writes) for writes in town.commits()[1:]] == [["a"], ["b", "live"], ["c"]]


def test_one_that_is_stale_does_not_hold_up_the_others(town: Town) -> None:
    found = threads(
        town,
        lambda keys: keys.commit({}, {"a": "1"}),
        lambda keys: keys.commit({"a": ABSENT}, {"b": "1"}),
        lambda keys: keys.commit({}, {"c": "1"}),
    )
    assert found[1] == Stale(frozenset({"a"}))
    assert town.commits()[1:] == [{"a": "1"}, {"c": "1"}]


def test_what_only_checks_is_answered_with_the_others(town: Town) -> None:
    found = threads(
        town,
        lambda keys: keys.commit({}, {"a": "1"}),
        lambda keys: keys.commit({"x": ABSENT}, {}),
        lambda keys: keys.commit({}, {"c": "1"}),
    )
    assert [type(one) for one in found] == [Swapped] * 3
    assert town.commits()[1:] == [{"a": "1"}, {"c": "1"}]


def test_a_reply_that_is_lost_is_lost_for_all_of_them(town: Town) -> None:
    keys, objects, process = town.client()
    found = list[object]()

    def want(name: str) -> None:
        try:
            found.append(keys.commit({}, {name: "1"}))
        except Lost as error:
            found.append(error)

    def lose(create: Callable[[], bool]) -> bool:
        create()
        town.shared.objects.clear()  # neither is it to be seen afterwards
        objects.hurt = lose
        raise Lost("no reply")

    objects.hurt = lose
    town.start(process, *(partial(want, name) for name in "abc"))
    town.kernel.run(town.kernel.now + 30)
    assert [type(one) for one in found] == [Lost] * 3


def test_a_thread_that_is_interrupted_leaves_the_others_an_unknown_outcome(town: Town) -> None:
    keys, objects, process = town.client()
    found = list[object]()

    def want(name: str) -> None:
        try:
            found.append(keys.commit({}, {name: "1"}))
        except (Lost, KeyboardInterrupt) as error:
            found.append(error)

    def first(create: Callable[[], bool]) -> bool:
        objects.hurt = interrupted
        return create()

    def interrupted(create: Callable[[], bool]) -> bool:
        create()
        raise KeyboardInterrupt

    objects.hurt = first
    town.start(process, *(partial(want, name) for name in "abc"))
    town.kernel.run(town.kernel.now + 5)
    assert [type(one) for one in found] == [Swapped, KeyboardInterrupt, Lost]


def test_a_thread_that_is_interrupted_while_it_waits_takes_its_commit_back(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ChainKeys(MemoryObjects())
    done(keys, {"a": "1"})

    class Interrupted:
        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(keys._commits, "_turns", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            keys.commit({}, {"b": "1"})
    done(keys, {"c": "1"})
    assert keys.fetch(["a", "b", "c"]).items.keys() == {"a", "c"}


def test_the_turn_of_a_stopped_thread_goes_to_the_next_one(town: Town) -> None:
    process, turns, had = Process(town.kernel, "p"), SimTurns(town.kernel), list[str]()

    def take(name: str) -> None:
        try:
            if turns.acquire():
                had.append(name)
                SimEvent(town.kernel).wait(1.0)
                turns.release()
        except KeyboardInterrupt:
            had.append(f"{name} is stopped")

    town.start(process, partial(take, "a"))
    stopped = process.spawn(partial(take, "b"), "b")
    town.kernel.run(town.kernel.now + TRIP)
    town.start(process, partial(take, "c"))
    process.throw(stopped, KeyboardInterrupt())
    town.kernel.run(town.kernel.now + 5)
    assert had == ["a", "b is stopped", "c"]


def test_a_commit_in_hand_is_not_sent_by_its_own_thread_too(town: Town) -> None:
    """Its thread waits longer than for a turn while another one sends it: twice would be a second commit."""
    keys, objects, process = town.client()

    def first(create: Callable[[], bool]) -> bool:
        objects.hurt = slow
        return create()

    def slow(create: Callable[[], bool]) -> bool:
        SimEvent(town.kernel).wait(5.0)
        return create()

    objects.hurt = first
    town.start(process, *(partial(done, keys, {name: "1"}) for name in "abc"))
    town.kernel.run(town.kernel.now + 20)
    assert town.commits()[1:] == [{"a": "1"}, {"b": "1", "c": "1"}]


def test_a_thread_whose_turn_does_not_come_goes_alone(town: Town) -> None:
    keys, objects, process = town.client()

    def stuck(create: Callable[[], bool]) -> bool:
        SimEvent(town.kernel).wait(5.0)
        return create()

    objects.hurt = stuck
    ended = list[str]()
    town.start(process, *(lambda name=name: (done(keys, {name: "1"}), ended.append(name)) for name in "ab"))
    town.kernel.run(town.kernel.now + 20)
    assert ended == ["b", "a"]
    assert town.commits()[1:] == [{"b": "1"}, {"a": "1"}]


def test_notifications_that_ride_along_reach_every_client(town: Town) -> None:
    """One that is meant for all clients is not replaced by one that its own client leaves out."""
    wants = [
        lambda keys: keys.commit({}, {"a": "1"}),
        lambda keys: keys.commit({}, {NOTIFY: "- signal"}),
        lambda keys: keys.commit({}, {"b": "1", NOTIFY: "me 1"}),
    ]
    threads(town, *wants)
    assert town.commits()[-1] == {"b": "1", NOTIFY: "- signal"}
