"""Nodes whose wall clock is wrong, or steps while they run, beside an honest one: nothing early, twice or lost."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import libfaketime
import pytest

from solocron.clock import SystemClock
from solocron.testing.fleet import Fleet, Judge, Replica, wait_until
from tests.e2e.conftest import MakeFleet

LEASE = 4.0
"""Long enough that a busy machine costs no session: here only the clocks may."""
LIBRARY = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
HOUR = 3600


@pytest.mark.invariant("I15: nothing starts early by the store's clock")
def test_wall_clocks_an_hour_off_and_stepping_change_nothing(make_fleet: MakeFleet, tmp_path: Path) -> None:
    """The store was opened by an honest node; its clock decides, whatever the others believe."""
    # One run at a time on each, so that the three jobs of a second need three nodes.
    fleet = make_fleet("tests.e2e.jobs.secondly", lease=LEASE, beat="500ms", max_running=1)
    fleet.start(1)
    judge = Judge.of(fleet)
    judge.open()
    stepping = tmp_path / "faketime"
    stepping.write_text("+0s")
    fast = fleet.spawn("fast", env=_fake(FAKETIME=f"+{HOUR}s"))
    slow = fleet.spawn("slow", env=_fake(FAKETIME=f"-{HOUR}s"))
    steps = fleet.spawn("steps", env=_fake(FAKETIME_TIMESTAMP_FILE=str(stepping)))
    skewed = [fast, slow, steps]
    fleet.wait_ready(skewed)
    assert _minutes_off(fast) == pytest.approx(60, abs=5)
    assert _minutes_off(slow) == pytest.approx(-60, abs=5)
    for step in (f"+{HOUR}s", f"-{HOUR}s"):
        stepping.write_text(step)
        _wait_renewed(skewed)
    honest = fleet.of("replica-1")
    honest.term()  # the crooked ones alone now: the store's clock is still the honest one's
    honest.wait()
    stepping.write_text(f"+{2 * HOUR}s")
    _wait_renewed(skewed)
    since = SystemClock().boot()
    wait_until(lambda: _worked(fleet, since) >= {"fast", "slow", "steps"}, within=30, what="work for each of them")
    judge.close()
    assert judge.wait_settled(within=20)
    assert set(fleet.stop()) == {0}
    verdict = judge.verdict()
    assert verdict.clean, str(verdict)
    assert verdict.slots >= 3 * 4
    assert not [replica for replica in fleet.replicas if replica.events("session lost")]


def _fake(**settings: str) -> dict[str, str]:
    """Shift the wall clock only; what leases are counted on stays true."""
    return {"LD_PRELOAD": str(LIBRARY), "DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1", **settings}


def _worked(fleet: Fleet, since: float) -> set[str]:
    return {line.node for line in fleet.ledger.lines(event="end") if line.at > since}


def _minutes_off(replica: Replica) -> float:
    """How far its wall clock is from ours, by the stamp of the first line that it logged."""
    first = datetime.strptime(replica.log()[:19], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - both are local
    return (first - datetime.now()).total_seconds() / 60  # noqa: DTZ005


def _wait_renewed(replicas: list[Replica], beats: int = 2) -> None:
    """Wait until each has renewed its session a few times more."""
    counts = {replica.node: len(replica.events("session renewed")) for replica in replicas}
    wait_until(
        lambda: all(len(r.events("session renewed")) >= counts[r.node] + beats for r in replicas),
        within=30,
        what="renewals of all skewed nodes",
    )
