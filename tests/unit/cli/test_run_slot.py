"""`solocron run-slot`: one job's slots, or one attempt; and what it says where it cannot."""

from __future__ import annotations

import pytest

from tests.unit.cli.kit import DUE, Cli, Write

QUEUE = """
    from solocron import Scheduler

    scheduler = Scheduler()
    scheduler.carrier("queue", lambda message: None, follows=True)

    @scheduler.cron("0 5 1 1 *", run_in="queue", retries=1)
    def mail(run): ...
"""


@pytest.mark.parametrize(
    "args", [(), ("invoices", "--run", "invoices@1", "--attempt", "1"), ("--run", "invoices@1"), ("--attempt", "1")]
)
def test_it_wants_a_job_or_an_attempt(cli: Cli, write: Write, args: tuple[str, ...]) -> None:
    write("slot_shop.py", DUE)
    answer = cli("run-slot", "slot_shop", *args)
    assert (answer.code, answer.out) == (2, "")
    assert "give JOB, or --run RUN with --attempt N. Nothing was run." in answer.err


def test_it_says_what_it_handed_over(cli: Cli, write: Write) -> None:
    write("queue_shop.py", QUEUE)
    cli("run-slot", "queue_shop", "mail")
    run = cli("trigger", "mail").out.strip()
    answer = cli("run-slot", "queue_shop", "mail", "--log-level", "error")
    assert (answer.code, answer.out, answer.err) == (0, "", f"{run} was handed over to queue\n")
