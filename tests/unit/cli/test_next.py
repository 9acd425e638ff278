"""`solocron next`: the slots of an expression or a job, with gaps and folds of the clocks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from solocron import Scheduler
from tests.unit.cli.kit import Cli, Shop


def test_the_slots_are_strictly_after_from(cli: Cli) -> None:
    answer = cli("next", "0 7 * * *", "--from", "2026-03-08T07:00:00Z", "-n", "2", "--json")
    assert answer.json == {"next": ["2026-03-09T07:00:00Z", "2026-03-10T07:00:00Z"]}


def test_a_time_in_a_gap_runs_right_after_it_and_says_so(cli: Cli) -> None:
    given = ("next", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07T12:00:00Z", "-n", "2")
    assert cli(*given, "--json").json == {"next": ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]}
    shown = cli(*given).lines
    assert shown[0] == "Sun 2026-03-08 03:00 -04:00   in 19 h        (07:00 UTC)"
    assert shown[-1] == "note  2026-03-08: 02:30 does not exist, runs once at 03:00."


def test_the_rule_for_gaps_and_folds_can_be_previewed(cli: Cli) -> None:
    zone = ("--tz", "America/New_York", "--json", "-n", "2")
    skipped = cli("next", "30 2 * * *", *zone, "--from", "2026-03-08T00:00", "--gap", "skip")
    assert skipped.json["next"][0] == "2026-03-09T06:30:00Z"
    both = cli("next", "30 1 * * *", *zone, "--from", "2026-11-01T00:00", "--fold", "both")
    assert both.json["next"] == ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]


def test_from_without_an_offset_is_read_in_the_zone(cli: Cli) -> None:
    answer = cli("next", "0 9 * * *", "--tz", "Europe/Paris", "--from", "2026-06-01T09:00", "-n", "1", "--json")
    assert answer.json == {"next": ["2026-06-02T07:00:00Z"]}


def test_an_expression_opens_no_store(cli: Cli, elsewhere: Path) -> None:
    assert cli("next", "@daily", "-n", "3", "--store", "sqlite:///nowhere.db").code == 0
    assert len(cli("next", "@daily", "-n", "3").lines) == 3
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("bad", ["61 * * * *", "0 0 31 2 *", "@reboot", "* * *", "0 9 * * MONDAY "])
def test_a_bad_expression_is_a_usage_error(cli: Cli, bad: str) -> None:
    answer = cli("next", bad, "--store", "sqlite:///nowhere.db")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("solocron: cron ")
    assert "Traceback" not in answer.err


def test_an_unknown_zone_is_refused_with_the_nearest(cli: Cli) -> None:
    answer = cli("next", "0 9 * * *", "--tz", "Europe/Pariss")
    assert answer.code == 2
    assert "did you mean 'Europe/Paris'" in answer.err


def test_from_must_be_an_instant(cli: Cli) -> None:
    answer = cli("next", "0 9 * * *", "--from", "yesterday")
    assert answer.code == 2
    assert "--from: 'yesterday' is not an instant" in answer.err


def test_h_needs_the_name_that_it_is_made_from(cli: Cli) -> None:
    without = cli("next", "H 3 * * *")
    assert without.code == 2
    assert "--name" in without.err
    one = cli("next", "H 3 * * *", "--name", "invoices", "--json", "--from", "2026-01-01")
    assert one.code == 0
    assert one.json == cli("next", "H 3 * * *", "--name", "invoices", "--json", "--from", "2026-01-01").json
    assert one.json != cli("next", "H 3 * * *", "--name", "report", "--json", "--from", "2026-01-01").json


def test_seconds_are_shown_where_there_are_any(cli: Cli) -> None:
    (line,) = cli("next", "15 0 12 * * *", "--from", "2026-01-01", "-n", "1").lines
    assert line == "Thu 2026-01-01 12:00:15 +00:00   in 12 h    (12:00:15 UTC)"


def test_the_end_of_the_calendar_is_not_an_error(cli: Cli) -> None:
    answer = cli("next", "0 0 1 1 *", "--tz", "Pacific/Kiritimati", "--from", "9998-12-30T00:00:00Z", "--json")
    assert answer.code == 0
    assert len(answer.json["next"]) < 10


def test_of_a_job_its_own_zone_is_shown(cli: Cli, shop: Shop) -> None:
    given = ("next", "report", "--store", shop.url, "--from", "2026-03-07T12:00", "-n", "1")
    assert cli(*given, "--json").json == {"next": ["2026-03-08T07:00:00Z"]}
    assert cli(*given).lines[0].startswith("Sun 2026-03-08 03:00 -04:00 ")
    assert cli(*given[:-2], "-n", "1", "--tz", "UTC").lines[0].startswith("Sun 2026-03-08 07:00 +00:00 ")


def test_of_a_job_without_from_it_counts_from_the_stores_now(cli: Cli, shop: Shop) -> None:
    before = cli("next", "invoices", "-n", "1", "--store", shop.url, "--json").json["next"]
    shop.later(3600)
    assert cli("next", "invoices", "-n", "1", "--store", shop.url, "--json").json["next"] > before


def test_an_unknown_job_is_not_found_with_the_nearest_name(cli: Cli, shop: Shop) -> None:
    answer = cli("next", "invoice", "--store", shop.url)
    assert (answer.code, answer.out) == (3, "")
    assert "Did you mean 'invoices'?" in answer.err


def test_flags_of_expressions_are_refused_for_jobs(cli: Cli, shop: Shop) -> None:
    assert cli("next", "report", "--name", "x", "--store", shop.url).code == 2


def test_a_paused_job_says_that_its_slots_will_be_skipped(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("report")
    answer = cli("next", "report", "--store", shop.url)
    assert answer.code == 0
    assert "report is paused: these slots will be skipped" in answer.err


def test_too_many_slots_are_refused(cli: Cli) -> None:
    assert cli("next", "@hourly", "-n", "1001").code == 2
    assert cli("next", "@hourly", "-n", "0").code == 2


def test_where_no_slot_is_left_that_is_said(cli: Cli) -> None:
    scheduler = Scheduler("memory://over")
    scheduler.at(datetime(2001, 1, 1, tzinfo=UTC), name="once")(lambda: None)
    scheduler.tick()
    answer = cli("next", "once", "--store", "memory://over")
    assert (answer.code, answer.out) == (0, "")
    assert "no slot is left" in answer.err
    assert cli("next", "once", "--store", "memory://over", "--json").json == {"next": []}


def test_a_job_that_is_over_says_when_it_ended(cli: Cli) -> None:
    scheduler = Scheduler("memory://ended")
    scheduler.cron("0 9 * * *", name="sale", starts="2001-01-01", ends="2001-01-31")(lambda: None)
    scheduler.tick()
    answer = cli("next", "sale", "--store", "memory://ended")
    assert (answer.code, answer.out) == (0, "")
    assert "sale ended on 2001-01-31: it has no slot after that" in answer.err
    shown = cli("next", "sale", "--store", "memory://ended", "--from", "2001-01-30T12:00", "--json")
    assert shown.json == {"next": ["2001-01-31T09:00:00Z"]}
