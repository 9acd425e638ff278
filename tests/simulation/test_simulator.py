"""The simulator in short form: worlds under fire in which everything holds, and its own ability to fail."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from proof.__main__ import main, parse
from proof.invariants.checker import Violation
from proof.invariants.ledger import i16_key_stability
from proof.oracles.slots import Daily, Even
from proof.oracles.workdays import Workdays
from proof.simulator.campaign import INVARIANTS, Summary, shrink
from proof.simulator.coverage import POLICIES
from proof.simulator.options import CLOCK_CHANGES, FAULTS, WEAK_STORES, Options, draw
from proof.simulator.world import Report, simulate
from solocron.clock import to_us
from solocron.errors import InvalidError
from solocron.model.documents.run import Origin
from solocron.schedules import Calendar, Calendared, Cron, Every, instants
from solocron.testing.simulation.kernel import Kernel, Storm

SEEDS = (1, 6, 7, 8, 10, 13, 14, 26, 27, 31, 32, 41, 43, 48, 70)
"""Chosen so that between them every fault strikes and every policy makes a difference, nearly all of them twice.

Where a change of the engine moves a history so far that one is missing, choose again: `make simulate` says with 150
worlds whether it is the history or the harness.
"""


def small(seed: int, **settings: float) -> Options:
    plain = Options(seed=seed, nodes=3, jobs=5, lease=3.0, hours=0.05, locking=bool(seed % 2))
    return plain.changed(settings)


@pytest.fixture(scope="module")
def campaign() -> Summary:
    """Worlds as they are drawn, at the pace of a short lease."""
    summary = Summary()
    for seed in SEEDS:
        drawn = draw(seed, lease=3.0, hours=0.12)
        # So short a time would pass without what is rare.
        rare = {name: getattr(drawn, name) / 3 for name in ("deploy", "clock_step", "store_restart")}
        rare["request"] = drawn.request / 2
        keep = drawn.keep if drawn.goes_back else 120.0
        report = simulate(replace(drawn, keep=keep, **rare))
        summary.add(report.to_json())
    return summary


def test_every_invariant_holds_under_every_fault(campaign: Summary) -> None:
    assert [(failure.violation, failure.command) for failure in campaign.failures] == []
    assert (campaign.duplicates, campaign.losses, campaign.stale_writes) == (0, 0, 0)


def test_every_fault_struck_and_every_invariant_was_put_to_the_test(campaign: Summary) -> None:
    assert campaign.silent == []
    assert campaign.unchecked == []
    struck = {fault for fault in FAULTS if campaign.faults[fault]}
    assert struck == set(FAULTS) - set(WEAK_STORES)


def test_every_policy_made_a_difference(campaign: Summary) -> None:
    assert campaign.unused == []
    assert [name for name in POLICIES if not campaign.used[name]] == []


def test_every_way_to_end_was_seen(campaign: Summary) -> None:
    ends = ("succeeded", "failed", "timed_out", "cancelled", "lost", "skipped", "missed")
    assert [end for end in ends if not campaign.statuses[end]] == []


# --- slow worlds: days, and the nights in which the clocks change


def test_the_slots_of_a_day_are_counted_by_the_rule_and_not_by_the_code_under_test() -> None:
    """The oracle knows two lines of European law; the schedule knows the zone's data. They agree on every day."""
    for text, (hour, minute) in (("30 2 * * *", (2, 30)), ("0 3 * * *", (3, 0))):
        schedule, at = Cron(text, tz="Europe/Paris"), to_us(datetime(2024, 1, 1, tzinfo=UTC))
        until = to_us(datetime(2029, 1, 1, tzinfo=UTC))
        found = []
        while (at := schedule.after_us(at) or until) < until:
            found.append(at)
        counted = Daily(hour, minute)
        assert counted.between(to_us(datetime(2024, 1, 1, tzinfo=UTC)), until - 1) == found
        assert counted.count(found[0], found[-1]) == len(found) - 1 == 5 * 365 + 2 - 1


@pytest.mark.parametrize("rule", ["skip", "next", "previous"])
def test_days_off_are_counted_day_by_day_and_not_by_the_code_under_test(rule: str) -> None:
    """Two ways to the same slots, over both changes of the clocks, with days off that come one by one and in rows."""
    start = date(2026, 3, 20)
    off = [start + timedelta(days=ahead) for ahead in (0, 3, 9, 10, 14, 15, 16, 40, 217, 218, 219, 220)]
    calendar = Calendar.make("bank", 1, frozenset({5, 6}), dict.fromkeys(off, "off"))
    since, until = (to_us(datetime(2026, month, 1, tzinfo=UTC)) for month in (3, 12))
    for schedule, slots, europe in (
        (Cron("30 2 * * *", tz="Europe/Paris"), Daily(2, 30), True),
        (Cron("0 3 * * 0", tz="Europe/Paris"), Daily(3, 0, 0), True),
        (Cron("30 2 * * 1", tz="Europe/Paris"), Daily(2, 30, 1), True),
        (Cron("*/30 * * * *", tz="Europe/Paris"), Even(1_800_000_000), True),
        (Every("5h"), Even(18_000_000_000), False),
    ):
        counted = Workdays(slots, calendar.to_json(), rule, europe=europe)
        shipped = Calendared(schedule, calendar, rule)
        found = list(instants.between(shipped, since, until))
        assert counted.between(since, until) == found
        for middle in range(since, until, 1_234_567_890_123):
            assert counted.count(middle, until) == shipped.count_us(middle, until)
        told = shipped.left_out(since, until)
        assert len(counted.left_out(since, until)) == (told[0] if told else 0)


def test_some_worlds_last_for_days_and_see_the_clocks_change() -> None:
    slow = [options for options in map(draw, range(40)) if options.lease > 60]
    assert 8 <= len(slow) <= 22
    assert any(o.start < change < o.start + o.hours * 3600 for o in slow for change in CLOCK_CHANGES)
    report = simulate(replace(slow[0], hours=20 * slow[0].lease / 3600))
    assert report.violation is None
    assert report.hours > 5


# --- stores that are not good enough: what the tiers mean


@pytest.mark.parametrize(("fault", "often"), [("forget", 15.0), ("stale_reads", 0.5)])
def test_a_weak_store_is_found_out(fault: str, often: float) -> None:
    """A store that loses acknowledged commits, or answers from a replica, breaks promises; a strong one keeps them."""
    for seed in range(20):
        broken = simulate(small(seed, kill=6, **{fault: often})).invariant
        assert broken != "I19", "a weak store may break promises, but no loop of the engine"
        if broken is not None:
            assert simulate(small(seed, kill=6)).violation is None
            return
    pytest.fail(f"{fault} broke nothing in 20 worlds")


# --- a failure can be seen again, and made smaller


def test_the_command_of_a_world_replays_it() -> None:
    options = small(3, kill=10, lost_reply=0.05, clock_skew=3600)
    *python, module = shlex.split(options.command())[:3]
    assert (python, module) == (["python", "-m"], "proof")
    args = parse(shlex.split(options.command())[3:])
    again = draw(args.seed, nodes=args.nodes, hours=args.hours)
    assert again.changed(dict(text.split("=") for text in args.set)) == options


def test_shrinking_keeps_only_what_the_failure_needs() -> None:
    """Fails if and only if nodes are killed: everything else goes."""

    def run(options: Options) -> Report:
        failed = options.kill and options.hours >= 0.01
        return Report(options=options, hours=0.02, violation="I5: gone" if failed else None)

    smaller = shrink(small(1, kill=10, freeze=10, slow=0.1, tick=5), "I5", run)
    assert smaller.enabled() == ["kill"]
    assert (smaller.jobs, smaller.nodes) == (1, 3)
    assert smaller.hours == 0.01


def test_shrinking_does_not_mistake_another_failure_for_the_same() -> None:
    def run(options: Options) -> Report:
        return Report(options=options, hours=0.02, violation="I5: gone" if options.freeze else "I1: twice")

    assert shrink(small(1, kill=10, freeze=10), "I5", run).enabled() == ["freeze"]


# --- blindness is failure


def _world(**told: object) -> dict[str, object]:
    options = small(0, kill=10)
    return Report(options=options, hours=0.1, faults=Counter(kill=3), checked=Counter(INVARIANTS)).to_json() | told


def test_a_fault_that_never_strikes_fails_the_campaign() -> None:
    summary = Summary()
    summary.add(_world())
    assert summary.ok()
    silent = Summary()
    silent.add(_world(faults={}))
    assert silent.silent == ["kill"]
    assert not silent.ok()


def test_a_policy_that_many_worlds_had_and_that_never_made_a_difference_fails_the_campaign() -> None:
    summary = Summary()
    for _ in range(8):
        assert summary.ok() or not summary.seeds
        summary.add(_world(policies={"rate": 0, "limit": 1}))
    assert summary.unused == ["rate"]
    assert not summary.ok()


def test_a_policy_that_is_not_drawn_any_more_fails_the_campaign() -> None:
    """A checker of something that no world has proves nothing."""
    summary = Summary()
    for _ in range(40):
        assert summary.unused == []
        summary.add(_world(policies=dict.fromkeys(set(POLICIES) - {"alarm"}, 1)))
    assert summary.unused == ["alarm"]
    again = Summary()
    again.merge(summary.to_json())
    assert again.to_json() == summary.to_json()


def test_an_invariant_that_is_never_put_to_the_test_fails_the_campaign() -> None:
    summary = Summary()
    summary.add(_world(checked={name: 1 for name in INVARIANTS if name != "i3_fence_grows"}))
    assert summary.unchecked == ["i3_fence_grows"]
    assert not summary.ok()


@pytest.mark.invariant("I20: there is no storm of starts")
def test_a_world_that_does_not_come_to_rest_is_stopped() -> None:
    kernel = Kernel(0)

    def again() -> None:
        kernel.after(0.0, again)

    again()
    with pytest.raises(Storm, match="I20"):
        kernel.run(1.0)


# --- the command


def test_one_world_is_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seed", "7", "--nodes", "2", "--set", "hours=0.01", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is True
    assert (told["seeds"], told["violations"], told["duplicates"], told["losses"]) == (1, 0, 0, 0)
    assert told["slots"] > 0
    assert set(told["faults"]) == set(FAULTS)


def test_a_world_that_fails_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--seed", "1", "--set", "hours=0.05", "--set", "lease=3", "--set", "forget=10", "--no-shrink"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "FAIL  seed 1: I" in out
    assert "replay:  python -m proof simulate --seed 1 --nodes 5 --set hours=0.05 " in out
    assert "--set forget=10.0" in out
    assert "FAIL  1 of 1 worlds broke an invariant" in out


def test_worlds_in_processes_of_their_own_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--from", "7", "--seeds", "3", "--nodes", "2", "--set", "hours=0.01", "--json"]
    main(words)
    alone = json.loads(capsys.readouterr().out)
    main([*words, "--jobs", "2"])
    together = json.loads(capsys.readouterr().out)
    same = ("seeds", "slots", "runs", "starts", "steps", "statuses", "faults")
    assert {name: alone[name] for name in same} == {name: together[name] for name in same}


@pytest.mark.parametrize(
    ("setting", "message"), [("kil=3", "'kil'"), ("kill", "name=value"), ("kill=x", "number"), ("kill=-1", "negative")]
)
def test_a_wrong_option_is_refused(setting: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seed", "1", "--set", setting]) == 2
    assert message in capsys.readouterr().err


def test_options_know_their_kinds() -> None:
    changed = Options(seed=1).changed({"locking": "0", "jobs": "3", "kill": "2.5"})
    assert (changed.locking, changed.jobs, changed.kill) == (False, 3, 2.5)
    with pytest.raises(InvalidError):
        Options(seed=1).changed({"unknown": 1})


@pytest.mark.invariant("I16: the key of a slot is equal over attempts and nodes, and that of no other")
def test_a_slot_that_is_asked_for_again_before_it_has_run_may_start_after_its_rerun() -> None:
    """They share the key by design, whichever comes first; two runs of the schedule never do."""
    origins = {"j@again": Origin.RERUN, "j@slot": Origin.SCHEDULE, "j@other": Origin.SCHEDULE}
    granted = {(run, 1): SimpleNamespace(origin=origin) for run, origin in origins.items()}
    checker: Any = SimpleNamespace(keys={}, key_of={}, granted=granted)

    def start(run: str) -> None:
        line: Any = SimpleNamespace(what="start", run=run, fence=1, key="j@2027-01-01T00:00:00Z")
        i16_key_stability(checker, line)

    start("j@again")
    start("j@slot")
    with pytest.raises(Violation, match="share the key"):
        start("j@other")
