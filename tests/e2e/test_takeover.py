"""How long the work of a node that goes away has to wait: a lease after kill -9, no time at all after SIGTERM."""

from __future__ import annotations

import pytest

from solocron.testing.fleet import Judge, Line, Replica, wait_until
from tests.e2e.conftest import MakeFleet

LEASE = 2.0


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
@pytest.mark.alone
@pytest.mark.parametrize("kills", [2, pytest.param(25, marks=pytest.mark.long)])
def test_after_kill_9_a_run_starts_elsewhere_within_a_lease_and_a_second_of_the_last_renewal(
    make_fleet: MakeFleet, kills: int
) -> None:
    fleet = make_fleet("tests.e2e.jobs.slow", lease=LEASE)
    fleet.start(4)
    judge = Judge.of(fleet)
    judge.open()
    for _ in range(kills):
        victim = wait_until(lambda: _on_living(fleet.ledger.open("slow"), fleet.alive()), within=10, what="a slow run")
        fleet.of(victim.node).kill()
        wait_until(lambda: _next(fleet.ledger.lines("slow"), victim), within=10, what="its next attempt")  # noqa: B023
        if kills > 2:
            fleet.start(1)
    judge.close()
    judge.wait_settled(within=10)
    fleet.stop()
    verdict = judge.verdict()
    assert verdict.clean, str(verdict)
    assert verdict.kills == kills
    assert len(verdict.takeovers) >= kills
    assert verdict.takeover_s is not None
    assert verdict.takeover_s <= LEASE + 1, str(verdict)


@pytest.mark.invariant("I21: after a drain nothing is left")
def test_after_sigterm_a_run_starts_elsewhere_at_once(make_fleet: MakeFleet) -> None:
    """The lease is a minute: a node that had to wait for it would be seen."""
    fleet = make_fleet("tests.e2e.jobs.slow", lease="60s", grace="300ms")
    first = fleet.start(1)[0]
    run = fleet.scheduler.trigger("patient")
    wait_until(lambda: fleet.ledger.open("patient"), within=10, what="the start of it")
    fleet.start(1)
    first.term()
    assert first.wait() == 0
    view = fleet.scheduler.wait(run, "10s")
    assert (view.status, view.attempt, view.node) == ("succeeded", 2, "replica-2")
    stopped, start = fleet.ledger.lines("patient", "raised")[0], fleet.ledger.lines("patient", "start")[1]
    assert start.at - stopped.at < 5
    attempts = fleet.scheduler.open().attempts(run)
    assert [attempt.status for attempt in attempts] == ["cancelled", "succeeded"]
    assert "shuts down" in (attempts[0].reason or "")


def _on_living(lines: list[Line], alive: list[Replica]) -> Line | None:
    pids = {replica.pid for replica in alive}
    return next((line for line in reversed(lines) if line.pid in pids), None)


def _next(lines: list[Line], victim: Line) -> bool:
    return any(line.run == victim.run and line.attempt > victim.attempt for line in lines)
