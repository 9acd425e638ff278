"""Processes of their own under kill -9 and SIGSTOP of their node: none works past the lease, no slot runs twice."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from solocron.testing.fleet import Fleet, Judge, wait_until
from solocron.testing.fleet.nemesis import Nemesis
from solocron.testing.fleet.replica import Replica
from tests.e2e.conftest import MakeFleet

LEASE = 2.0


def signs(folder: Path) -> dict[tuple[str, int], tuple[int, float]]:
    """Of each run and attempt: the process that carried it out, and the boot time of its last sign of life."""
    found = {}
    for path in folder.iterdir():
        run, attempt, pid = path.name.rsplit(" ", 2)
        found[run, int(attempt)] = (int(pid), float(path.read_text() or 0))
    return found


def assert_nobody_worked_beside_a_successor(fleet: Fleet, folder: Path) -> None:
    starts = {(line.run, line.attempt): line.at for line in fleet.ledger.lines(event="start")}
    for (run, attempt), (_, last) in signs(folder).items():
        following = [at for (other, later), at in starts.items() if other == run and later > attempt]
        assert all(last < at for at in following), f"{run}: attempt {attempt} still worked when the next one started"


@pytest.mark.invariant("I8: a body that can be stopped does nothing after its lease")
def test_a_node_that_is_killed_or_frozen_leaves_no_child_working_past_the_lease(
    make_fleet: MakeFleet, tmp_path: Path
) -> None:
    folder = tmp_path / "signs"
    folder.mkdir()
    fleet = make_fleet("tests.e2e.jobs.endless", lease=LEASE, env={"SIGNS": str(folder)})
    fleet.start(3)
    for hurt in (Replica.kill, fleet.freeze):
        run = fleet.scheduler.trigger("endless")
        pid, _ = wait_until(partial(_sign_of, folder, run), within=30, what="the first sign of life")
        (start,) = [line for line in fleet.ledger.lines("endless", "start") if line.run == run]
        hurt(fleet.of(start.node))
        wait_until(partial(_is_gone, pid), within=30, what="the end of the child")
        view = fleet.scheduler.wait(run, "30s")
        assert (view.status, view.attempt) == ("succeeded", 2)
        assert view.node != start.node
    assert_nobody_worked_beside_a_successor(fleet, folder)
    fleet.stop()


@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.long)])
def test_processes_survive_kills_and_freezes_of_their_nodes_with_zeros(
    make_fleet: MakeFleet, tmp_path: Path, seconds: int
) -> None:
    """Zero twice, zero lost, every slot in the log, and no attempt works beside its successor."""
    folder = tmp_path / "signs"
    folder.mkdir()
    fleet = make_fleet("tests.e2e.jobs.isolated", lease=LEASE, env={"SIGNS": str(folder)})
    fleet.start(4)
    judge = Judge.of(fleet)
    judge.open()
    Nemesis(fleet, lease=LEASE, seed=seconds).rage(seconds)
    judge.close()
    assert judge.wait_settled(within=120)
    assert set(fleet.stop()) == {0}
    verdict = judge.verdict()
    assert verdict.clean, str(verdict)
    assert verdict.slots >= seconds
    assert verdict.kills >= 1
    assert verdict.freezes >= 1
    assert_nobody_worked_beside_a_successor(fleet, folder)
    assert not [pid for pid, _ in signs(folder).values() if _is_python(pid)], "all children are gone"


def _sign_of(folder: Path, run: str) -> tuple[int, float] | None:
    """Return the last sign of life of its first attempt."""
    return signs(folder).get((run, 1))


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _is_python(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "solocron.dispatch.process" in Path(f"/proc/{pid}/cmdline").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
