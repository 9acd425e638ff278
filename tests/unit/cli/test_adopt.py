"""`solocron adopt`: stored definitions give way after a rollback."""

from __future__ import annotations

import pytest

from solocron import Scheduler
from tests.unit.cli.kit import Answer, Cli, Shop


def test_adopt_lets_definitions_of_a_higher_revision_give_way(cli: Cli) -> None:
    def node(expression: str, revision: int) -> Scheduler:
        scheduler = Scheduler("memory://adopt", revision=revision)
        scheduler.cron(expression, name="report")(lambda: None)
        return scheduler

    def asked(*words: str) -> Answer:
        return cli("adopt", *words, "--store", "memory://adopt")

    node("0 2 * * *", 42).tick()
    node("0 1 * * *", 41).tick()
    assert Scheduler("memory://adopt").get_job("report").revision == 42
    answer = asked("report")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "report gives way: what the nodes declare is written with the next node that declares it\n"
    node("0 1 * * *", 41).tick()
    assert Scheduler("memory://adopt").get_job("report").revision == 41
    assert asked("--all", "--json").json == {"jobs": ["report"]}
    with node("0 1 * * *", 41):
        assert "nothing was changed" in asked("--all").err
        assert asked("report").code == 4
    assert asked("nothing").code == 3


@pytest.mark.parametrize("words", [(), ("report", "--all")])
def test_adopt_wants_a_job_or_all(words: tuple[str, ...], cli: Cli, shop: Shop) -> None:
    answer = cli("adopt", *words, "--store", shop.url)
    assert answer.code == 2
    assert "a JOB or --all" in answer.err
