"""`solocron cancel`: a run that waits, runs, or is over."""

from __future__ import annotations

import threading

import pytest

from solocron import Run, Scheduler
from solocron.cli import main
from tests.unit.cli.kit import Cli, Shop


def test_cancel_of_a_run_that_waits(cli: Cli, shop: Shop) -> None:
    run = shop.scheduler.trigger("invoices")
    assert cli("cancel", run, "--store", shop.url, "--json").json == {"run": run, "answer": "cancelled"}
    assert cli("cancel", run, "--store", shop.url).code == 0  # asking twice is not a mistake
    assert shop.scheduler.get_run(run).status == "cancelled"


def test_cancel_of_a_run_that_is_over_is_a_conflict(cli: Cli, shop: Shop) -> None:
    run = shop.ran("invoices")
    answer = cli("cancel", run, "--store", shop.url)
    assert (answer.code, answer.out) == (4, "")
    assert "is over already: succeeded" in answer.err


def test_cancel_asks_the_node_that_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    begun, told = threading.Event(), threading.Event()
    scheduler = Scheduler("memory://cancelling")

    @scheduler.every("1h", name="long")
    def long(run: Run) -> None:
        begun.set()
        assert told.wait(60)
        run.check()

    with scheduler:
        run = scheduler.trigger("long")
        assert begun.wait(60)
        scheduler.on("cancelling", lambda event: told.set())
        assert main(["cancel", run, "--store", "memory://cancelling"]) == 0
        assert capsys.readouterr().out == f"{run} was asked to stop; a thread stops at its next `run.check()`\n"
        assert scheduler.wait(run, 60).status == "cancelled"


def test_cancel_of_an_unknown_run_is_not_found(cli: Cli, shop: Shop) -> None:
    assert cli("cancel", "invoices@nothing", "--store", shop.url).code == 3
