"""Five processes on one SQLite file, hurt while they work: no slot runs twice, none is lost, all are on record."""

from __future__ import annotations

import pytest

from solocron.testing.fleet import Judge
from solocron.testing.fleet.nemesis import Nemesis
from tests.e2e.conftest import MakeFleet

LEASE = 2.0


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.long)])
def test_thirty_jobs_a_second_survive_kills_and_freezes(make_fleet: MakeFleet, seconds: int) -> None:
    """Zero twice, zero lost, every slot in the log, and no result of a frozen node accepted after its lease."""
    fleet = make_fleet("tests.e2e.jobs.thirty", lease=LEASE)
    fleet.start(5)
    judge = Judge.of(fleet)
    judge.open()
    Nemesis(fleet, lease=LEASE, seed=seconds).rage(seconds)
    judge.close()
    judge.wait_settled(within=60)
    assert set(fleet.stop()) == {0}
    verdict = judge.verdict()
    assert verdict.clean, str(verdict)
    assert verdict.slots >= 30 * (seconds - 1)
    assert verdict.kills >= 1
    assert verdict.freezes >= 1
    if seconds >= 60:  # with two or three freezes it is chance whether a body ends before it is told to stop
        assert verdict.stale_refused >= 1, "a frozen node had a body that ended after its thaw"
