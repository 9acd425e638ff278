"""Five processes that start at once on an empty file: the schema is made once, and every one of them joins."""

from __future__ import annotations

from solocron.testing.fleet import Judge, wait_until
from tests.e2e.conftest import MakeFleet


def test_five_processes_may_start_at_once_on_an_empty_file(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("tests.e2e.jobs.secondly", lease="2s")
    assert not (fleet.folder / "store.db").exists()
    fleet.start(5)
    judge = Judge.of(fleet)
    judge.open()
    assert [view.state for view in fleet.scheduler.nodes()] == ["live"] * 5
    for replica in fleet.replicas:
        assert not replica.events("loop error"), replica.log()
        assert not replica.events("store error"), replica.log()
    for replica in fleet.replicas:
        replica.wait_event("session renewed")
    wait_until(judge.due, within=10, what="a slot")
    judge.close()
    assert judge.wait_settled(within=20)
    assert fleet.stop() == [0] * 5
    verdict = judge.verdict()
    assert verdict.clean, str(verdict)
    assert verdict.slots > 0
