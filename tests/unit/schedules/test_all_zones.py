"""Every zone in the world and every clock change of twenty years: nothing early, twice, lost or endless."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from solocron.schedules import Cron, load_zone, zoned
from solocron.schedules import cron as cron_module
from solocron.schedules.zone import ClockChange
from tests.unit.schedules.oracle import (
    assert_all_agree,
    by_cronsim,
    by_the_rules,
    changes,
    distinct_zones,
    moment,
)

RULES = [
    dict(zip(("gap", "fold"), rule, strict=True)) for rule in product(("run-after", "skip"), ("first", "last", "both"))
]

EXPRESSIONS = [
    *["30 2 * * *", "0 0 * * *", "15,45 0-3 * * *", "59 23 * * *", "0 3 * * *", "7 1 * * SUN", "0-59/10 2 L * *"],
    *["*/20 * * * *", "0 * * * *", "30 */2 * * *", "0 */2 * * *", "*/30 2 * * *", "* 0 * * *", "*/7 1-3 * * SAT,SUN"],
]


def cronsim_errs(change: ClockChange) -> bool:
    """Where cronsim is wrong about wildcards, and the rules are not.

    It steps by whole hours also through changes that are not (Lord Howe: by half an hour; Casey: at 00:01), and in a
    gap at midnight it names a reading that no clock shows.
    """
    by, wall = change.after - change.before, change.at + change.before
    return bool(by % 3600 or wall % 3600) or (by > 0 and wall % 86_400 == 0)


SOME = pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.long)], ids=["an eighth", "all"])
"""Of the changes of each zone; two neighbours of a zone are much alike. All of them with --long."""


def test_there_is_something_to_test():
    assert len(distinct_zones()) > 300
    assert sum(len(changes(name)) for name in distinct_zones()) > 4_000


@SOME
def test_the_default_is_what_cronsim_and_so_debian_does_at_every_change(step: int):
    compared = 0
    for name in distinct_zones():
        info = load_zone(name).info
        for number, change in enumerate(changes(name)[number_of(name) % step :: step]):
            a, b = moment(change.at - 4 * 3600), moment(change.at + 5 * 3600)
            for expression in EXPRESSIONS[number % 5 :: 5]:
                cron = Cron(expression, tz=name)
                ours = list(cron.between(a, b))
                assert cron.count(a, b) == len(ours)
                if ours != by_cronsim(expression, info, a, b):
                    assert cronsim_errs(change), (name, expression, change)
                    assert "*" in expression[:4], (name, expression, change)
                    assert ours == by_the_rules(cron, a, b)
                compared += 1
    assert compared > 12_000 / step


@SOME
def test_each_rule_for_gaps_and_folds_does_what_it_says_at_every_change(step: int):
    for name in distinct_zones():
        # Named one by one, so that each is a fixed time; the last schedule names the same ones with a star.
        fixed = [Cron("0,30 0-23 * * *", tz=name, dst=rule) for rule in RULES]
        schedules = [*fixed, Cron("*/30 * * * *", tz=name)]
        for change in changes(name)[number_of(name) % step :: step]:
            a, b = moment(change.at - 2 * 3600), moment(change.at + 2 * 3600)
            for cron in schedules:
                assert_all_agree(cron, a, b, by_the_rules_every_half_hour(cron, change, a, b))


def number_of(name: str) -> int:
    """A number of a zone, so that zones begin with different changes and both directions are met."""
    return sum(name.encode())


def by_the_rules_every_half_hour(cron: Cron, change: ClockChange, a: datetime, b: datetime) -> list[datetime]:
    """The same rules once more, in closed form: cheaper than reading by reading, and shares no code with either."""
    at, before, after = change
    half = 1800
    early = range(-(-(at + before - 3 * 3600) // half) * half, at + before, half)
    late = range(-(-(at + after) // half) * half, at + after + 3 * 3600, half)
    repeated = range(at + after, at + before)
    skipped = range(-(-(at + before) // half) * half, at + after, half)
    wildcard = cron.expression.startswith("*")
    slots = {reading - before for reading in early if wildcard or cron.fold != "last" or reading not in repeated}
    slots |= {reading - after for reading in late if wildcard or cron.fold != "first" or reading not in repeated}
    if skipped and not wildcard and cron.gap == "run-after":
        slots.add(at)
    return [slot for slot in map(moment, sorted(slots)) if a < slot <= b]


@pytest.mark.invariant("I18: every node finds the same slots")
@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza"])
def test_asking_from_any_instant_gives_the_same_slots(name):
    """Wherever a node starts looking, in whatever order, on whatever object, the slots are the same."""
    for change in changes(name)[:6]:
        a, b = moment(change.at - 3 * 3600), moment(change.at + 3 * 3600)
        for rule in RULES:
            slots = list(Cron("*/5 * * * *", tz=name).between(a, b))
            fixed = list(Cron("5,25,55 0-23 * * *", tz=name, dst=rule).between(a, b))
            for probe in range(change.at - 3 * 3600, change.at + 3 * 3600, 420):
                t = moment(probe)
                again = Cron("5,25,55 0-23 * * *", tz=name, dst=rule)
                for cron, known in ((again, fixed), (Cron("*/5 * * * *", tz=name), slots)):
                    after = next((slot for slot in known if slot > t), None)
                    assert after is None or cron.after(t) == after
                    before = next((slot for slot in reversed(known) if slot < t), None)
                    assert before is None or cron.before(t) == before
                    assert cron.count(t, b) == sum(slot > t for slot in known)


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Time cut every 68 minutes instead of every seven weeks, so that every change lies near a cut."""
    forget = (zoned._spans.cache_clear, cron_module._line.cache_clear)
    monkeypatch.setattr(zoned, "_BLOCK", 12)
    for cache_clear in forget:
        cache_clear()
    yield
    for cache_clear in forget:
        cache_clear()


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "Antarctica/Casey"])
def test_it_does_not_matter_where_time_is_cut(name):
    for change in changes(name)[:8]:
        a, b = moment(change.at - 4 * 3600), moment(change.at + 5 * 3600)
        for expression, rule in product(("5,35 0-23 * * *", "30 2 * * *", "*/20 * * * *"), RULES):
            cron = Cron(expression, tz=name, dst=rule)
            assert_all_agree(cron, a, b, by_the_rules(cron, a, b))


def test_a_day_that_a_zone_leaves_out_is_made_up_for_once():
    """Samoa had no 30 December 2011; Kwajalein no 21 August 1993."""
    for name, day in (("Pacific/Apia", "2011-12-31"), ("Pacific/Kwajalein", "1993-08-22")):
        cron = Cron("0,30 9,17 * * *", tz=name)
        (change,) = load_zone(name).changes(*_around(day))
        a, b = moment(change.at - 86_400), moment(change.at + 86_400)
        assert moment(change.at) in list(cron.between(a, b))
        assert_all_agree(cron, a, b, by_the_rules(cron, a, b))
        skipping = Cron("0,30 9,17 * * *", tz=name, dst={"gap": "skip"})
        assert moment(change.at) not in list(skipping.between(a, b))
        assert_all_agree(skipping, a, b, by_the_rules(skipping, a, b))


def _around(day: str) -> tuple[int, int]:
    at = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return int((at - timedelta(days=2)).timestamp()), int((at + timedelta(days=2)).timestamp())
