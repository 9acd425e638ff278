"""`solocron resume`: says what it does before it does it."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


def test_resume_goes_on(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("invoices")
    answer = cli("resume", "invoices", "--store", shop.url)
    assert answer.code == 0
    assert "its next slot is" in answer.out
    assert shop.scheduler.get_job("invoices").paused is None
    assert cli("resume", "invoices", "--store", shop.url, "--json").json["paused"] is None


def test_resume_says_what_it_does_before_it_does_it(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("invoices")
    shop.later(3 * 3600)
    plan = cli("resume", "invoices", "--dry-run", "--store", shop.url)
    assert (plan.code, plan.err) == (0, "")
    assert "invoices: 3 slots do not run (3 skipped: " in plan.out
    assert "; 0 waiting runs start; the next slot is " in plan.out
    assert cli("resume", "invoices", "--dry-run", "--json", "--store", shop.url).json["skipped"] == 3
    assert shop.scheduler.get_job("invoices").paused is not None
    done = cli("resume", "invoices", "--store", shop.url)
    assert "3 slots do not run" in done.err
    assert shop.scheduler.runs("invoices", status="skipped")[0].count == 3
    assert "nothing would change" in cli("resume", "invoices", "--dry-run", "--store", shop.url).out
