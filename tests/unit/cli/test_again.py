"""`rerun`, `backfill` and `calendars`: what they ask for, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from tests.unit.cli.kit import Answer, Shop

Cli = Callable[..., Answer]


def test_rerun_of_what_failed_prints_the_runs(cli: Cli, shop: Shop) -> None:
    shop.later(3600)
    shop.tick()
    answer = cli("rerun", "broken", "--failed-since", "2h", "--key", "k", "--store", shop.url)
    assert answer.code == 0
    assert len(answer.lines) == 1
    assert shop.scheduler.get_run(answer.lines[0]).status == "waiting"
    again = cli("rerun", "broken", "--failed-since", "2h", "--json", "--store", shop.url)
    assert again.json == {"runs": []}, "it waits already"


def test_rerun_of_a_slot_that_is_not_there_is_not_found(cli: Cli, shop: Shop) -> None:
    answer = cli("rerun", "invoices", "2001-01-01T00:00Z", "--store", shop.url)
    assert answer.code == 3
    assert "on record" in answer.err
    assert cli("rerun", "invoices", "--store", shop.url).code == 2


def test_rerun_watched_to_its_end_is_a_failure_if_one_fails(cli: Cli, shop: Shop) -> None:
    shop.later(3600)
    shop.tick()
    with shop.scheduler:
        answer = cli("rerun", "broken", "--failed-since", "2h", "--watch", "--store", shop.url)
    assert answer.code == 1
    assert "rerun broken: 1 runs" in answer.err


def test_backfill_counts_asks_and_can_be_cancelled(cli: Cli, shop: Shop) -> None:
    counted = cli("backfill", "invoices", "10h", "0s", "--dry-run", "--store", shop.url)
    assert "invoices has 10 slots there" in counted.out
    made = cli("backfill", "invoices", "10h", "0s", "--limit", "3", "--rate", "1/s", "--store", shop.url, "--json")
    assert (made.json["total"], made.json["rate"]) == (3, 1.0)
    assert cli("cancel", made.json["id"], "--store", shop.url).code == 0
    assert shop.scheduler.backfills() == []


def test_backfill_watched_to_its_end(cli: Cli, shop: Shop) -> None:
    with shop.scheduler:
        answer = cli("backfill", "invoices", "5h", "0s", "--watch", "--store", shop.url)
    assert answer.code == 0
    assert "backfill invoices: done" in answer.err
    assert sum(run.origin == "backfill" for run in shop.scheduler.runs("invoices")) == 5


def test_a_range_that_makes_no_sense_is_refused(cli: Cli, shop: Shop) -> None:
    assert cli("backfill", "invoices", "0s", "10h", "--store", shop.url).code == 2
    assert cli("backfill", "invoices", "soon", "0s", "--store", shop.url).code == 2
    assert cli("backfill", "invoices", "1h", "0s", "--rate", "fast", "--store", shop.url).code == 2


def test_calendars_are_listed_with_their_next_day_off(cli: Cli, shop: Shop) -> None:
    shop.scheduler.calendar("bank", holidays={date(2099, 5, 1): "Labour Day"})
    answer = cli("calendars", "--store", shop.url)
    assert answer.lines[0].split() == ["calendar", "revision", "weekend", "days", "ahead", "next", "day", "off", "jobs"]
    assert "2099-05-01 Labour Day" in answer.lines[1]
    assert cli("calendars", "bank", "--store", shop.url).lines == ["Fri 2099-05-01  Labour Day"]
    assert cli("calendars", "bank", "--store", shop.url, "--json").json[0]["revision"] == 1
    assert cli("calendars", "other", "--store", shop.url).code == 3
