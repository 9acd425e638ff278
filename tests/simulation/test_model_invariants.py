"""Random histories of the pure machine keep every invariant that it can show; a failing one is a list of numbers."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from tests.properties import calm
from tests.simulation.model_driver import EVENTS, Driver, play
from tests.simulation.model_history import books
from tests.simulation.model_world import CHECKERS, check

SEEDS, LENGTH = 60, 500


@pytest.fixture(scope="module")
def histories() -> list[Driver]:
    """Worlds that were driven through everything and then healed; every test below looks at the same ones."""
    return [play(seed, _codes(seed, LENGTH)) for seed in range(SEEDS)]


def _codes(seed: int, length: int) -> list[int]:
    dice = random.Random(seed)
    return [dice.getrandbits(32) for _ in range(length)]


def _check_all(histories: list[Driver], name: str) -> None:
    for driver in histories:
        check(driver.world, name)


@pytest.mark.invariant("I1: a slot has one live claim at a time")
def test_no_slot_has_two_live_claims(histories: list[Driver]) -> None:
    _check_all(histories, "i1")


@pytest.mark.invariant("I2: an attempt is claimed at most once, and none after the last word of its run")
def test_no_slot_is_claimed_twice_for_one_attempt_or_after_its_end(histories: list[Driver]) -> None:
    _check_all(histories, "i2")


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_fences_only_grow(histories: list[Driver]) -> None:
    _check_all(histories, "i3")


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_a_stale_write_changes_nothing(histories: list[Driver]) -> None:
    _check_all(histories, "i4")


@pytest.mark.invariant("I5: no slot is lost")
def test_after_the_faults_no_slot_is_lost(histories: list[Driver]) -> None:
    _check_all(histories, "i5")


@pytest.mark.invariant("I6: every slot has exactly one last word")
def test_every_slot_has_exactly_one_last_word(histories: list[Driver]) -> None:
    _check_all(histories, "i6")


@pytest.mark.invariant("I9: no more run at once than may")
def test_no_more_run_at_once_than_may(histories: list[Driver]) -> None:
    _check_all(histories, "i9")


@pytest.mark.invariant("I10: after an outage each slot fares as its policy promises")
def test_every_slot_ends_as_a_naive_walk_says(histories: list[Driver]) -> None:
    _check_all(histories, "i10")


@pytest.mark.invariant("I11: the cursor passes no slot without a record")
def test_the_cursor_passes_no_slot_without_a_word(histories: list[Driver]) -> None:
    _check_all(histories, "i11")


@pytest.mark.invariant("I12: what was recorded stays recorded")
def test_the_log_is_only_appended_and_closed(histories: list[Driver]) -> None:
    _check_all(histories, "i12")


@pytest.mark.invariant("I13: a repeated request has no second effect")
def test_a_repeated_request_has_no_second_effect(histories: list[Driver]) -> None:
    _check_all(histories, "i13")


@pytest.mark.invariant("I15: nothing starts early by the store's clock")
def test_nothing_is_early_by_the_stores_clock(histories: list[Driver]) -> None:
    _check_all(histories, "i15")


@pytest.mark.invariant("I16: the key of a slot is equal over attempts and nodes, and that of no other")
def test_keys_are_equal_over_attempts_and_no_others(histories: list[Driver]) -> None:
    _check_all(histories, "i16")


@pytest.mark.invariant("I18: every node finds the same slots")
def test_every_node_decides_alike(histories: list[Driver]) -> None:
    _check_all(histories, "i18")


@pytest.mark.invariant("I20: there is no storm of starts")
def test_there_is_no_storm_of_starts_or_looks(histories: list[Driver]) -> None:
    _check_all(histories, "i20")


def test_every_checker_is_used_above() -> None:
    marks = [mark for test in list(globals().values()) for mark in getattr(test, "pytestmark", ())]
    used = {mark.args[0].partition(":")[0].lower() for mark in marks if mark.name == "invariant"}
    assert used == set(CHECKERS)


@calm(40)
@given(first=st.integers(0, 2**32), codes=st.lists(st.integers(0, 2**32), max_size=120))
def test_any_short_history_keeps_every_invariant(first: int, codes: list[int]) -> None:
    check(play(first, codes).world)


@pytest.mark.parametrize("seed", [101, 102])
def test_a_history_of_thousands_of_events_keeps_every_invariant(seed: int) -> None:
    check(play(seed, _codes(seed, 5_000)).world)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1_000, 1_040))
def test_long_histories_keep_every_invariant(seed: int) -> None:
    check(play(seed, _codes(seed, 20_000)).world)


def test_the_same_numbers_give_the_same_history() -> None:
    one, two = (play(7, _codes(7, LENGTH)).world.commits for _ in range(2))
    assert one == two


def test_the_histories_leave_nothing_out(histories: list[Driver]) -> None:
    """Every event had an effect somewhere, every outcome and policy came up: else the tests above prove less."""
    seen: Counter[str] = Counter()
    for driver in histories:
        seen.update(driver.seen)
        for commit in driver.world.commits:
            if commit.after is not commit.before or commit.records:
                seen[commit.verb] += 1
            for record in (*commit.records, *commit.claims):
                seen[record.status] += 1
                seen["summary"] += record.count > 1
            if isinstance(commit.before, Job):
                seen[f"{commit.before.definition.overlap.kind}, {len(commit.before.active)} active"] += 1
                seen[f"catch up {commit.before.definition.catch_up.kind}"] += 1
        seen.update(f"attempt {len(tale.opened)}" for tale in books(driver.world).values())
    # Hand-over has a search of its own (`test_offers`).
    statuses = set(map(str, Status)) - {str(Status.OFFERED), str(Status.HANDED_OVER)}
    wanted = {event.__name__ for event in EVENTS} | statuses | {"summary"}
    wanted |= {"claim", "finish", "hand back", "take over", "trigger", "cancel", "pause", "resume"}
    wanted |= {"define", "remove", "restore", "begin", "renew", "bury", "swept"}
    wanted |= {f"{kind}, {n} active" for kind in ("skip", "queue", "queue-all", "replace") for n in (0, 1)}
    wanted |= {"allow, 2 active", "catch up skip", "catch up latest", "catch up all", "attempt 3"}
    assert not [what for what in sorted(wanted) if seen[what] < 3]
