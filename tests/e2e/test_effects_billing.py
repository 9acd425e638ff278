"""The billing example, killed at every boundary of every step and every key: everybody is charged and mailed once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.billing.outside import Gateway, Mail

ROOT = Path(__file__).resolve().parents[2]
MOST = 60
"""Starts after which a story that has not ended never will."""


def start(folder: Path, failpoint: str | None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOLOCRON_")}
    env = {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    if failpoint is not None:
        env["SOLOCRON_FAILPOINT"] = failpoint
    return subprocess.run(
        [sys.executable, "-m", "examples.billing", str(folder)],
        env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


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
    tmp_path: Path, moments: list[str], kills: int
) -> None:
    """Each start gets one boundary further than the one before: behind a step's work, behind its saving, and so on."""
    killed, done = 0, None
    for _ in range(MOST):
        done = start(tmp_path, f"{moments[killed % len(moments)]}:kill")
        if done.returncode == -9:
            killed += 1
        elif done.returncode == 0:
            break
        else:  # its predecessor's lease is not over yet
            assert done.returncode == 1, done.stderr
    assert done is not None
    assert done.returncode == 0, done.stdout + done.stderr
    assert killed == kills
    assert sorted(Gateway(tmp_path).charges()) == [("ada", 1000), ("edsger", 120), ("grace", 450)]
    assert sorted(letter["to"] for letter in Mail(tmp_path).sent()) == ["ada", "edsger", "grace"]
    again = start(tmp_path, None)
    assert again.stdout == done.stdout


def test_undisturbed_it_says_what_it_did(tmp_path: Path) -> None:
    done = start(tmp_path, None)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "succeeded, attempt 1"
    assert done.stdout.count("charged") == 3
    assert done.stdout.count("mailed") == 3
