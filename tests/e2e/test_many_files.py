"""A process with more than 1,024 open files, as a busy web server is one, runs a node like any other."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import MakeFleet
from tests.servers import Server

MORE_THAN_SELECT_TAKES = 1_100


@pytest.mark.parametrize("server", ["postgres", "mariadb", "etcd"])
def test_a_node_starts_and_runs_with_more_files_open_than_select_takes(
    server: str, make_fleet: MakeFleet, request: pytest.FixtureRequest
) -> None:
    """Every socket and pipe of the node then has a number above 1,023, which `select` refuses to look at."""
    found: Server = request.getfixturevalue(server)
    fleet = make_fleet(
        "tests.e2e.jobs.many_files", store=found.fresh_url(), env={"OPEN_FILES": str(MORE_THAN_SELECT_TAKES)}
    )
    fleet.start(1)
    for run in [fleet.scheduler.trigger(job) for job in ("inside", "apart")]:
        view = fleet.scheduler.wait(run, "20s")
        assert (view.status, view.attempt) == ("succeeded", 1)
    assert len(fleet.ledger.lines(event="end")) == 2
    assert fleet.stop() == [0]
