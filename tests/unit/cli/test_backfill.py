"""`solocron backfill`: a range of the past."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


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
