"""A client that sleeps, loses replies or sees an old listing neither loses a commit nor makes one twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.roots import Roots
from solocron.stores.swap.chain.state import ChainPace
from solocron.stores.swap.chain.text import ChainCommit
from solocron.stores.swap.key_store import ABSENT, EXISTS, Lost, Span, Stale, Swapped
from solocron.stores.swap.layout import NOTIFY
from solocron.stores.swap.memory import KeyWorld
from tests.stores.swap.chain.world import PACE, ChainWorld, HurtObjects, go_on, write


@pytest.fixture
def world() -> ChainWorld:
    return ChainWorld()


def values(keys: ChainKeys) -> dict[str, str]:
    (page,) = keys.fetch((), [Span("", "\U0010ffff")]).pages
    return {item.key: item.value for item in page}


def asleep(world: ChainWorld) -> tuple[ChainKeys, HurtObjects, ChainKeys]:
    """A client that saw commit 3 and slept while another one went on, until the next number was deleted."""
    sleeper, objects = world.client()
    other, _ = world.client()
    write(sleeper, 3, "mine")
    go_on(world, other)
    assert "d/default/c/0000000000000004" not in world.shared.objects
    return sleeper, objects, other


# --- numbers that are deleted


def test_a_sleeper_commits_at_the_head_and_not_under_a_deleted_number(world: ChainWorld) -> None:
    sleeper, _, other = asleep(world)
    assert isinstance(sleeper.commit({"mine": EXISTS}, {"late": "1"}), Swapped)
    assert values(other)["late"] == "1"
    assert "d/default/c/0000000000000004" not in world.shared.objects


def test_a_sleeper_reads_what_happened_meanwhile(world: ChainWorld) -> None:
    sleeper, _, other = asleep(world)
    assert values(sleeper) == values(other)


def test_a_sleepers_old_mark_is_stale(world: ChainWorld) -> None:
    sleeper, _, other = asleep(world)
    write(other, 1, "mine")
    assert isinstance(sleeper.commit({"mine": 3}, {"mine": "late"}), Stale)


def test_a_client_frozen_in_the_middle_of_a_creation_does_not_believe_its_success(world: ChainWorld) -> None:
    """The creation arrives after its number was deleted, and succeeds: no other client will ever see it."""
    sleeper, objects = world.client()
    other, _ = world.client()
    write(sleeper, 3)

    def late(name: str, create: Callable[[], object]) -> object:
        go_on(world, other)
        assert create() is True
        return True

    objects.on, objects.hurt = "create d/default/c/", late
    with pytest.raises(Lost):
        sleeper.commit({}, {"late": "1"})
    assert "late" not in values(other)
    assert values(sleeper) == values(other)


def test_a_client_frozen_after_its_creation_finds_it_in_the_store(world: ChainWorld) -> None:
    """It is told that the outcome is not known, and the store above looks for the token of the commit."""
    sleeper, objects = world.client()
    other, _ = world.client()
    write(sleeper, 3)

    def then_sleeps(name: str, create: Callable[[], object]) -> object:
        made = create()
        go_on(world, other)
        return made

    objects.on, objects.hurt = "create d/default/c/", then_sleeps
    with pytest.raises(Lost):
        sleeper.commit({}, {"early": "1"})
    assert values(sleeper)["early"] == "1" == values(other)["early"]


def test_a_short_sleep_costs_one_question_and_no_commit(world: ChainWorld) -> None:
    sleeper, objects = world.client()
    write(sleeper, 3)
    world.time += world.pace.trusted + 1
    before = objects.calls
    assert isinstance(sleeper.commit({}, {"k": "1"}), Swapped)
    assert objects.calls - before <= 4
    assert values(world.client()[0])["k"] == "1"


def test_what_another_sleeper_left_under_a_deleted_number_is_not_applied(world: ChainWorld) -> None:
    sleeper, objects, other = asleep(world)
    ghost = ChainCommit("ghost.1", {"ghost": "1"}).to_bytes()
    assert objects.create("d/default/c/0000000000000004", ghost)
    assert "ghost" not in values(sleeper)
    assert isinstance(sleeper.commit({"ghost": ABSENT}, {"late": "1"}), Swapped)
    assert values(other)["late"] == "1"


def test_nor_is_it_by_a_client_that_slept_in_its_creation_and_finds_it_there(world: ChainWorld) -> None:
    sleeper, objects = world.client()
    other, _ = world.client()
    write(sleeper, 1)
    assert isinstance(other.commit({}, {"k": "1"}), Swapped)

    def late(name: str, create: Callable[[], object]) -> object:
        go_on(world, other)
        world.shared.objects[name] = ChainCommit("ghost.1", {"k": None}).to_bytes()
        objects.on, objects.hurt = "get d/default/", unharmed
        return create()

    def unharmed(name: str, get: Callable[[], object]) -> object:
        """Another thread may look at the state at any time."""
        state = sleeper._head.state
        assert state is None or "k" in state.mirror.items
        objects.hurt = unharmed
        return get()

    objects.on, objects.hurt = "create d/default/c/", late
    assert isinstance(sleeper.commit({"k": EXISTS}, {"late": "1"}), Swapped)
    assert values(sleeper) == values(other)
    assert values(other)["k"] == "1" == values(other)["late"]


def test_a_lost_race_costs_one_reading_and_one_creation(world: ChainWorld) -> None:
    """With a look at the head before each, four clients make half as many commits a second."""
    loser, objects = world.client()
    winner, _ = world.client()
    write(loser, 1)
    write(winner, 1, "other")
    before = objects.calls
    assert isinstance(loser.commit({"w": EXISTS}, {"late": "1"}), Swapped)
    assert objects.calls - before == 3
    assert values(winner)["late"] == "1"


def test_it_does_not_stop_the_deleting_of_others(world: ChainWorld) -> None:
    hasty = ChainWorld(ChainPace(commits=1, kept=10.0, trusted=1.0))
    keys, objects = hasty.client()
    write(keys, 3)
    for _ in range(80):
        write(keys, 1)
        hasty.time += 20
    assert objects.create("d/default/c/0000000000000002", ChainCommit("ghost.1", {}).to_bytes())
    write(keys, 3)
    assert "d/default/c/0000000000000002" not in hasty.shared.objects
    assert len(hasty.names("c")) < 6


# --- lost replies


def test_a_commit_that_arrived_is_applied_once(world: ChainWorld) -> None:
    keys, objects = world.client()
    write(keys, 1)

    def cut(name: str, create: Callable[[], object]) -> object:
        create()
        raise Lost("cut")

    objects.on, objects.hurt = "create d/default/c/", cut
    assert keys.commit({"k": ABSENT}, {"k": "1"}) == Swapped({"k": 2})
    assert len(world.names("c")) == 2


def test_a_commit_that_never_arrived_is_sent_again(world: ChainWorld) -> None:
    keys, objects = world.client()
    write(keys, 1)

    def swallow(name: str, create: Callable[[], object]) -> object:
        raise Lost("swallowed")

    objects.on, objects.hurt = "create d/default/c/", swallow
    assert keys.commit({"k": ABSENT}, {"k": "1"}) == Swapped({"k": 2})


def test_a_creation_that_is_told_as_taken_is_known_by_its_token(world: ChainWorld) -> None:
    """A service may repeat a request by itself, and tell of the second one."""
    keys, objects = world.client()
    write(keys, 1)
    objects.on, objects.hurt = "create d/default/c/", lambda name, create: create() and False
    assert keys.commit({"k": ABSENT}, {"k": "1"}) == Swapped({"k": 2})
    assert len(world.names("c")) == 2


def test_a_number_that_another_client_took_while_the_reply_was_lost_is_applied_first(world: ChainWorld) -> None:
    keys, objects = world.client()
    other, _ = world.client()
    write(keys, 1)

    def swallow(name: str, create: Callable[[], object]) -> object:
        other.commit({}, {"k": "theirs"})
        raise Lost("swallowed")

    objects.on, objects.hurt = "create d/default/c/", swallow
    assert keys.commit({"k": ABSENT}, {"k": "mine"}) == Stale(frozenset({"k"}))
    assert values(keys)["k"] == "theirs"


def test_while_nothing_can_be_learnt_the_outcome_is_lost(world: ChainWorld) -> None:
    keys, objects = world.client()
    write(keys, 1)

    def cut(name: str, create: Callable[[], object]) -> object:
        create()
        objects.get = objects.create = away  # type: ignore[method-assign,assignment]
        raise Lost("cut")

    def away(*arguments: object) -> object:
        raise StoreUnavailable("away")

    objects.on, objects.hurt = "create d/default/c/", cut
    with pytest.raises((Lost, StoreUnavailable)) as told:
        keys.commit({}, {"k": "1"})
    assert isinstance(told.value, Lost), "it may be in the store, and must not be told as not done"
    assert values(world.client()[0])["k"] == "1"


# --- roots


def test_a_client_begins_from_the_newest_root(world: ChainWorld) -> None:
    keys, _ = world.client()
    write(keys, 23)
    keys.commit({}, {"w": None, "k": "1"})
    fresh, objects = world.client()
    assert values(fresh) == {"k": "1"}
    assert fresh.fetch(["k"]).items["k"].mark == 24
    assert objects.calls < 20


def test_commits_are_kept_for_an_hour_after_the_second_root(world: ChainWorld) -> None:
    keys, _ = world.client()
    write(keys, 40)
    world.time += world.pace.kept - 1
    write(keys, 10)
    assert len(world.names("c")) == 50
    world.time += 2
    write(keys, 5)
    assert world.names("c")[0] == "d/default/c/0000000000000011"


def test_a_root_whose_maker_slept_before_creating_it_releases_nothing_for_an_hour(world: ChainWorld) -> None:
    """The time in it is that of before the sleep, and a client that has just read the head trusts its state."""
    maker, objects = world.client()
    write(maker, 3 * PACE.commits - 1)

    def sleeps(name: str, create: Callable[[], object]) -> object:
        world.time += 2 * world.pace.kept
        return create()

    objects.on, objects.hurt = "create d/default/r/", sleeps
    write(maker, PACE.commits)
    other, _ = world.client()
    write(other, PACE.commits)
    assert "d/default/c/0000000000000006" in world.shared.objects


def test_two_clients_that_make_one_root_make_it_whole(world: ChainWorld) -> None:
    a, objects = world.client()
    b, _ = world.client()
    write(a, 2 * PACE.commits - 1, "a")
    values(b)

    def at_once(name: str, create: Callable[[], object]) -> object:
        write(b, PACE.commits, "b")
        return create()

    objects.on, objects.hurt = "create d/default/s/", at_once
    write(a, 1, "a")
    assert len(world.names("r")) == 3
    fresh, reads = world.client()
    assert values(fresh) == values(a) == {"a": "0", "b": "4"}
    assert reads.calls < 15


@pytest.mark.parametrize("where", ["create d/default/s/", "create d/default/r/"])
def test_a_root_that_was_left_half_made_is_made_by_another_client(world: ChainWorld, where: str) -> None:
    a, objects = world.client()
    b, _ = world.client()

    def dies(name: str, create: Callable[[], object]) -> object:
        raise StoreUnavailable("killed")

    objects.on, objects.hurt = where, dies
    write(a, PACE.commits)
    assert world.names("r") == []
    write(b, 1)
    assert len(world.names("r")) == 1
    assert values(world.client()[0]) == values(a)


def test_a_listing_that_shows_nothing_hides_nothing(world: ChainWorld) -> None:
    keys, _ = world.client()
    for _ in range(4):
        go_on(world, keys)
    blind, objects = world.client()
    objects.names = lambda prefix, limit: []  # type: ignore[method-assign,assignment]
    assert values(blind) == values(keys)
    assert isinstance(blind.commit({}, {"blind": "1"}), Swapped)
    assert values(keys)["blind"] == "1"


def test_a_listing_that_shows_what_was_deleted_hides_nothing(world: ChainWorld) -> None:
    keys, _ = world.client()
    write(keys, 12)
    listed = sorted(world.shared.objects)
    for _ in range(4):
        go_on(world, keys)
    behind, objects = world.client()
    objects.names = lambda prefix, limit: [one for one in listed if one.startswith(prefix)][:limit]  # type: ignore[method-assign,assignment]
    assert values(behind) == values(keys)


def test_old_roots_are_thinned_out_and_still_prove_that_the_chain_has_passed() -> None:
    world = ChainWorld(ChainPace(commits=1, kept=10.0, trusted=1.0))
    keys, objects = world.client()
    for _ in range(300):
        write(keys, 1)
        world.time += 20
    assert len(world.names("r")) <= 64 + 300 // 64 + 2
    assert len(world.names("s")) < 20
    assert len(world.names("c")) < 6
    roots = Roots(objects, "d/default/", world.pace)
    assert all(roots.reached(number) for number in range(1, 300))
    assert not roots.reached(301)
    objects.names = lambda prefix, limit: []  # type: ignore[method-assign,assignment]
    assert roots.newest() == 300
    assert values(world.client()[0]) == {"w": "0"}


def test_what_was_deleted_does_not_come_back_with_a_root(world: ChainWorld) -> None:
    """Neither from a large segment below that stays as it is, nor from small ones that are merged."""
    keys, _ = world.client()
    keys.commit({}, {f"large{i}": "v" * 100 for i in range(50)})
    write(keys, PACE.commits - 1)
    for i in range(2 * PACE.commits):
        keys.commit({}, {f"k{i}": "v", f"k{i - 7}": None, f"large{i}": None})
        expected = {f"k{j}": "v" for j in range(max(0, i - 6), i + 1)} | {
            f"large{j}": "v" * 100 for j in range(i + 1, 50)
        }
        assert values(world.client()[0]) == {"w": "3"} | expected


@pytest.mark.parametrize("seed", range(6))
def test_clients_that_sleep_and_lose_replies_tell_the_story_of_a_map(seed: int) -> None:
    """Whatever a commit replies, the map agrees; an outcome that is not known is looked up in the chain."""
    dice = random.Random(seed)
    world = ChainWorld(ChainPace(commits=3, kept=50.0, trusted=5.0))
    clients = [world.client(behind=dice.choice((0, 4, 60))) for _ in range(3)]
    truth = KeyWorld()

    def cut(name: str, create: Callable[[], object]) -> object:
        if dice.random() < 0.5:
            create()
        raise Lost("cut")

    for step in range(150):
        keys, objects = dice.choice(clients)
        if dice.random() < 0.1:
            objects.on, objects.hurt = "create d/default/c/", cut
        if dice.random() < 0.1:
            world.time += dice.choice((2.0, 20.0, 200.0))
        key = f"k{dice.randrange(4)}"
        there = truth.items.get(key)
        checks = {} if dice.random() < 0.3 else {key: ABSENT if dice.random() < 0.3 else EXISTS}
        writes = {key: None if dice.random() < 0.3 else str(step)}
        reply = keys.commit(checks, writes)
        expected = truth.commit(checks, writes)
        assert type(reply) is type(expected), (there, checks)
        if dice.random() < 0.3:
            reader = dice.choice(clients)[0]
            assert values(reader) == {item.key: item.value for item in truth.items.values()}
    assert values(world.client()[0]) == {item.key: item.value for item in truth.items.values()}


# --- what is refused


def test_a_look_alike_that_ignores_the_condition_is_refused(world: ChainWorld) -> None:
    keys, objects = world.client()
    objects.create = lambda name, content: True  # type: ignore[method-assign,assignment]
    with pytest.raises(StoreRefused, match="ignores the condition"):
        keys.commit({}, {"k": "1"})
    assert world.shared.objects == {}


def test_an_object_that_is_not_a_commit_is_named(world: ChainWorld) -> None:
    keys, objects = world.client()
    write(keys, 1)
    objects.create("d/default/c/0000000000000002", b"hello")
    with pytest.raises(StoreRefused, match=r"c/0000000000000002 is not what Solocron wrote"):
        keys.fetch(["k"])


# --- notifications


def test_a_client_hears_what_its_own_calls_have_read(world: ChainWorld) -> None:
    """A look at the head that another thread makes counts: a wait after it makes no call that it need not make."""
    listener, objects = world.client()
    other, _ = world.client()
    place = listener.position()
    other.commit({}, {"k": "1", NOTIFY: "other 1"})
    listener.fetch(["k"])
    before = objects.calls
    assert listener.wait(place, 0) == (1, ["other 1"])
    assert objects.calls - before == 1


def test_notifications_are_no_part_of_the_keys(world: ChainWorld) -> None:
    keys, _ = world.client()
    for i in range(2 * PACE.commits):
        keys.commit({}, {"k": str(i), NOTIFY: f"me {i}"})
    newcomer, _ = world.client()
    assert values(newcomer) == values(keys) == {"k": str(2 * PACE.commits - 1)}


def test_a_client_that_begins_from_a_root_is_told_that_it_missed_some(world: ChainWorld) -> None:
    sleeper, _ = world.client()
    other, _ = world.client()
    place = sleeper.position()
    go_on(world, other)
    assert sleeper.wait(place, 0) == (sleeper.position(), [None])
    other.commit({}, {NOTIFY: "other 1"})
    assert sleeper.wait(sleeper.position() - 1, 0)[1] == ["other 1"]


def test_a_closed_client_waits_no_longer(world: ChainWorld) -> None:
    keys, _ = world.client()
    place = keys.position()
    waiting = threading.Thread(target=keys.wait, args=(place, 60.0))
    waiting.start()
    keys.close()
    waiting.join(10)
    assert not waiting.is_alive()
