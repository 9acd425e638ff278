"""`solocron run-slot`: one job's slots, or one attempt; and what it says where it cannot."""

from __future__ import annotations

import pytest

from tests.unit.cli.kit import DUE, Cli, Write


@pytest.mark.parametrize(
    "args", [(), ("invoices", "--run", "invoices@1", "--attempt", "1"), ("--run", "invoices@1"), ("--attempt", "1")]
)
def test_it_wants_a_job_or_an_attempt(cli: Cli, write: Write, args: tuple[str, ...]) -> None:
    write("slot_shop.py", DUE)
    answer = cli("run-slot", "slot_shop", *args)
    assert (answer.code, answer.out) == (2, "")
    assert "give JOB, or --run RUN with --attempt N. Nothing was run." in answer.err
