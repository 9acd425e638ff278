"""`solocron restored`: nothing before now runs again."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


def test_restored_lets_nothing_before_now_run_again(cli: Cli, shop: Shop) -> None:
    shop.later(5 * 3600)
    assert cli("restored", "--store", shop.url, "--json").json == {"jobs": 3}
    assert cli("restored", "--store", shop.url).out.startswith("3 jobs moved to now")
    shop.tick()
    (found,) = cli("runs", "invoices", "--store", shop.url, "--json").json
    assert (found["status"], found["count"]) == ("skipped", 5)
    assert found["reason"] == "the store was restored from a backup"
