"""`solocron run-slot`: one job's slots, or one attempt; and what it says where it cannot."""

from __future__ import annotations

import pytest

from tests.unit.cli.kit import DUE, Cli, Write

QUEUE = """
    from solocron import Scheduler

    scheduler = Scheduler()
    scheduler.carrier("queue", lambda message: {answer}, follows=True)

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


@pytest.mark.parametrize("command", ["tick", "run-slot"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("None", "was handed over to queue"),
        (
            "1 / 0",
            "waits to be handed over once more: queue gave no clear answer (ZeroDivisionError: division by zero)",
        ),
    ],
    ids=["taken", "in doubt"],
)
def test_it_says_what_became_of_a_message(
    cli: Cli, write: Write, request: pytest.FixtureRequest, command: str, answer: str, said: str
) -> None:
    module = f"shop_{abs(hash(request.node.name))}"
    write(f"{module}.py", QUEUE.format(answer=answer))
    cli("tick", module)
    run = cli("trigger", "mail").out.strip()
    told = cli(command, module, *(["mail"] if command == "run-slot" else []), "--log-level", "error")
    assert (told.code, told.out, told.err) == (0, "", f"{run} {said}\n")
