"""A node that dies at the worst moment, each of them in turn: what it had claimed is neither doubled nor forgotten."""

from __future__ import annotations

import pytest

from solocron.testing.fleet import Judge, wait_until
from tests.e2e.conftest import MakeFleet

LEASE = 1.0
MOMENTS = {
    "claiming": 2,  # about to ask for what is due
    "claimed": 2,  # the claim is in the store, its body has not begun
    "begun": 2,  # the body may start
    "body-ended": 2,  # the body is over, and its node does not know it yet
    "finishing": 2,  # about to record it
    "finished": 2,  # recorded, the node does not know yet
    "renewing": 2,  # about to extend the session
}


@pytest.mark.invariant("I5: no slot is lost")
@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_at_a_failpoint_loses_and_doubles_nothing(make_fleet: MakeFleet, moment: str) -> None:
    fleet = make_fleet("tests.e2e.jobs.secondly", lease=LEASE)
    # The victim may be dead before it says that it started: another replica writes the definitions.
    fleet.start(1)
    assert fleet.stop() == [0]
    judge = Judge.of(fleet)
    judge.open()
    victim = fleet.spawn("victim", failpoint=f"{moment}:kill:{MOMENTS[moment]}")
    victim.wait(within=20)
    assert victim.process.returncode == -9, victim.log()
    fleet.start(1)
    wait_until(lambda: len(judge.due()) >= 9, within=20, what="a few more slots")
    judge.close()
    assert judge.wait_settled(within=20), judge.verdict()
    assert fleet.stop() == [0]
    verdict = judge.verdict()
    assert verdict.clean, str(verdict)


@pytest.mark.invariant("I5: no slot is lost")
def test_a_sweeper_that_dies_after_a_burial_leaves_nothing_to_nobody(make_fleet: MakeFleet) -> None:
    """The session is dead and its runs are still its own: the next to look takes them."""
    fleet = make_fleet("tests.e2e.jobs.secondly", lease=LEASE)
    first = fleet.start(1)[0]
    judge = Judge.of(fleet)
    judge.open()
    sweeper = fleet.spawn("sweeper", failpoint="buried:kill")
    fleet.wait_ready([sweeper])
    wait_until(
        lambda: [line for line in fleet.ledger.open("working") if line.pid == first.pid], within=10, what="a run"
    )
    first.kill()
    sweeper.wait(within=20)
    assert sweeper.process.returncode == -9, sweeper.log()
    fleet.start(1)
    judge.close()
    assert judge.wait_settled(within=20), judge.verdict()
    assert fleet.stop() == [0]
    verdict = judge.verdict()
    assert verdict.clean, str(verdict)
