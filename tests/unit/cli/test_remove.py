"""`solocron remove`: only what no running code declares."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


def test_remove_forgets_a_job_that_no_running_code_declares(cli: Cli, shop: Shop) -> None:
    assert cli("remove", "invoices", "--store", shop.url, "--json").json == {"job": "invoices", "removed": True}
    assert "invoices" not in [job.name for job in shop.scheduler.jobs()]


def test_remove_leaves_what_running_code_declares(cli: Cli, shop: Shop) -> None:
    with shop.scheduler:
        answer = cli("remove", "invoices", "--store", shop.url)
    assert answer.code == 4
    assert "was not removed" in answer.err
