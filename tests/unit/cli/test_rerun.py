"""`solocron rerun`: slots that ran once, run again."""

from __future__ import annotations

from tests.unit.cli.kit import Cli, Shop


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
