"""`solocron namespaces`: every namespace of a store."""

from __future__ import annotations

from pathlib import Path

from solocron import Scheduler
from tests.unit.cli.kit import Cli, Shop


def test_a_store_in_memory_cannot_list_its_namespaces(cli: Cli, shop: Shop) -> None:
    answer = cli("namespaces", "--store", shop.url)
    assert answer.code == 2
    assert "cannot list its namespaces" in answer.err
    assert cli("restored", "--all", "--store", shop.url).code == 2


def test_namespaces_are_a_table_and_restored_everywhere_says_so_of_each(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    for name in ("reports", "billing"):
        scheduler = Scheduler(url, namespace=name)
        scheduler.cron("0 1 * * *", name="a")(lambda: None)
        scheduler.tick()
    lines = cli("namespaces", "--store", url).lines
    assert [line.split() for line in lines] == [
        ["NAMESPACE", "JOBS", "NODES"],
        ["billing", "1", "0"],
        ["reports", "1", "0"],
    ]
    told = "1 jobs moved to now; what the backup does not know of will not run again"
    assert cli("restored", "--all", "--store", url).lines == [f"billing: {told}", f"reports: {told}"]
    assert cli("restored", "--all", "--namespace", "billing", "--store", url).code == 2
