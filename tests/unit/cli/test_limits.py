"""`solocron limits`: who has the permits and who waits."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


def test_limits_show_who_has_the_permits_and_who_waits(cli: Cli, shop: Shop) -> None:
    answer = cli("limits", "--store", shop.url)
    assert answer.code == 0
    assert "names a limit" in answer.err
    shop.scheduler.add("heavy", "invoices", "0 0 1 1 *", limit="db-heavy:2")
    answer = cli("limits", "--store", shop.url)
    assert answer.lines[0].split() == ["LIMIT", "MOST", "TAKEN", "WAITING", "JOBS", "BY"]
    assert answer.lines[1].split() == ["db-heavy", "2", "0", "0", "heavy"]
    (limit,) = cli("limits", "--store", shop.url, "--json").json
    assert limit == {"name": "db-heavy", "most": 2, "taken": [], "jobs": ["heavy"], "waiting": 0}
