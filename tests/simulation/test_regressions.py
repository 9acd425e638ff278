"""Bugs that the simulator has found, each with the shortest history that shows it and a line on what it taught."""

from __future__ import annotations

from solocron import Run, every
from solocron.testing.cluster import Cluster


def test_a_session_that_began_while_the_sweeper_worked_is_not_unknown() -> None:
    """What names a session must be looked at before the sessions are: one that begins in between is no stranger."""

    @every("2s", name="job", overlap="skip")
    def body(run: Run) -> None:
        cluster.sleep("20s")

    cluster = Cluster(body, nodes=0)
    cluster.start(0, pools=("elsewhere",))
    cluster.fleet.network.script(cluster.process(0).name, "holders", after=3.0)
    cluster.run("500ms")
    cluster.start(1)
    cluster.run("10s")
    first = cluster.runs("job")[0]
    assert (first.status, first.node) == ("running", cluster.process(1).name)
