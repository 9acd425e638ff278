"""`solocron health`: exit codes for probes, one line for a mistake."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from solocron import HealthView
from solocron.telemetry.health_file import HealthFile
from solocron.views.health import judge
from tests.unit.cli.kit import Cli

WELL = HealthView(
    node="n", namespace="default", host=os.uname().nodename, pid=os.getpid(), alive=True, ready=True, why=(),
    session="s", trusted_for_s=10.0, store_answers=True, loops={}, event_loop_lag_s=None, blocked_by=None, running=0,
    draining=False, lease_s=15.0, age_s=0.0,
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOLOCRON_HEALTH_DIR", str(tmp_path / "health"))
    return tmp_path / "health"


def write(view: HealthView) -> None:
    made = HealthFile.make(namespace=view.namespace, node=view.node, host=view.host, pid=view.pid)
    assert made is not None
    made.write(view)


def test_no_node_is_exit_3_and_says_where_it_looked(cli: Cli, folder: Path) -> None:
    write(WELL)
    answer = cli("health", "--node", "x")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith(f"solocron: no node 'x' has written its health to {folder}.")
    assert cli("--namespace", "another", "health").code == 3
    answer = cli("health", "--namespace", "another")
    assert answer.code == 3
    assert answer.err.startswith(f"solocron: no node of namespace 'another' has written its health to {folder}.")
    assert cli("health", "--namespace", "default").code == 0


def test_a_node_that_drains_is_alive_and_not_ready(cli: Cli, folder: Path) -> None:
    write(WELL)
    answer = cli("health", "--ready")
    assert (answer.code, answer.lines[0].split()[:3], answer.lines[1].split()[:3]) == (
        0,
        ["NODE", "ALIVE", "READY"],
        ["n", "yes", "yes"],
    )
    write(judge(replace(WELL, draining=True)))
    assert cli("health").code == 0
    answer = cli("health", "--ready")
    assert answer.code == 1
    assert answer.lines[1].endswith("it drains")


def test_one_node_of_several_that_is_not_alive_is_exit_1(cli: Cli, folder: Path) -> None:
    write(WELL)
    write(judge(replace(WELL, node="m", loops={"claimer": None})))
    answer = cli("health", "--json")
    assert (answer.code, [view["alive"] for view in answer.json]) == (1, [False, True])
    assert cli("health", "--node", "n").code == 0


@pytest.mark.parametrize(
    ("folder", "flags", "said"),
    [
        ("off", (), "solocron: SOLOCRON_HEALTH_DIR=off: nodes write no health here"),
        ("health", (), "solocron: SOLOCRON_HEALTH_DIR='health' is not an absolute path"),
        ("/nowhere", ("--nodes", "x"), "solocron health: unrecognized arguments: --nodes x; did you mean '--node'?"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, folder: str, flags: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv("SOLOCRON_HEALTH_DIR", folder)
    answer = cli("health", *flags)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(said)
    assert len(answer.err.splitlines()) == 2, "the message, and where to read on"
