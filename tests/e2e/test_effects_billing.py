"""The billing example, killed at every boundary of every step and key: each customer is charged and mailed once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.billing.outside import Gateway, Mail

ROOT = Path(__file__).resolve().parents[2]
MOST = 2_000
"""Starts after which a story that has not ended never will. A quick machine makes a dozen while one lease runs out."""


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOLOCRON_")}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}


Start = Callable[[str | None], tuple[int, str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the example with a failpoint; return how it ended and what it printed. It is imported only once."""
    command = [sys.executable, "-m", "tests.e2e.programs.billing_again", str(tmp_path)]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        stdin, stdout = starter.stdin, starter.stdout

        def again(failpoint: str | None) -> tuple[int, str]:
            stdin.write(f"{failpoint or ''}\n")
            stdin.flush()
            code, printed = json.loads(stdout.readline())
            return code, printed

        yield again
        stdin.close()


@pytest.mark.parametrize(
    ("moments", "kills"),
    [
        (["step-done", "step-saved"], 8),
        # After a kill behind the mail the sent folder is asked, so that key has no end of its own any more: three
        # orders together reach all three boundaries of all three keys.
        (["key-opened", "key-closing", "key-closed"], 5),
        pytest.param(["key-closing", "key-closed", "key-opened"], 4, marks=pytest.mark.long),
        pytest.param(["key-closed", "key-opened", "key-closing"], 4, marks=pytest.mark.long),
    ],
    ids=["steps", "keys-opened", "keys-closing", "keys-closed"],
)
def test_killed_at_every_boundary_it_ends_with_one_charge_and_one_mail_each(
    start: Start, tmp_path: Path, moments: list[str], kills: int
) -> None:
    """Each start gets one boundary further than the one before: behind a step's work, behind its saving, and so on."""
    killed, code, printed = 0, 1, ""
    for _ in range(MOST):
        code, printed = start(f"{moments[killed % len(moments)]}:kill")
        if code == -signal.SIGKILL:
            killed += 1
        elif code == 0:
            break
        else:  # its predecessor's lease is not over yet
            assert code == 1, printed
    assert code == 0, printed
    assert killed == kills
    assert sorted(Gateway(tmp_path).charges()) == [("ada", 1000), ("edsger", 120), ("grace", 450)]
    assert sorted(letter["to"] for letter in Mail(tmp_path).sent()) == ["ada", "edsger", "grace"]
    assert start(None) == (0, printed)


def test_undisturbed_it_says_what_it_did(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.billing", str(tmp_path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "succeeded, attempt 1"
    assert done.stdout.count("charged") == 3
    assert done.stdout.count("mailed") == 3
