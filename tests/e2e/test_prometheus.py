"""A real Prometheus scrapes two nodes and `solocron metrics`: panels have values, and alerts fire after kill -9."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from solocron.telemetry.alert_rules import alert_rules
from solocron.telemetry.dashboard import expressions
from solocron.testing.fleet import wait_until
from tests.servers.fixtures import StartServer
from tests.servers.prometheus import Prometheus

SOON = 60


class Watched:
    """Two nodes, the metrics of their fleet, and a Prometheus that scrapes all three."""

    def __init__(self, folder: Path, start_server: StartServer, stack: ExitStack) -> None:
        store = f"sqlite:///{folder}/jobs.db"
        ports = [folder / f"{name}.port" for name in "ab"]
        self.nodes = [
            self._spawn(stack, "-m", "tests.e2e.programs.metered", store, file.stem, str(file)) for file in ports
        ]
        wait_until(lambda: all(file.exists() for file in ports), within=SOON, what="the nodes' ports")
        fleet = self._spawn(stack, "-m", "solocron", "metrics", "--port", "0", "--store", store)
        assert fleet.stderr is not None
        found = re.search(r"127\.0\.0\.1:\d+", fleet.stderr.readline())
        assert found is not None
        (folder / "alerts.yml").write_text(alert_rules())
        targets = [f"127.0.0.1:{file.read_text()}" for file in ports]
        settings = {"rules": str(folder / "alerts.yml"), "targets": ",".join([*targets, found[0]])}
        self.prometheus = start_server(Prometheus, settings=settings)

    def _spawn(self, stack: ExitStack, *args: str) -> subprocess.Popen[str]:
        made = stack.enter_context(subprocess.Popen([sys.executable, *args], stderr=subprocess.PIPE, text=True))
        stack.callback(made.kill)
        return made

    def values(self, query: str) -> list[float]:
        filled = re.sub(r"\$(namespace|pool|job_name)\b", ".*", query).replace("$__rate_interval", "1m")
        return [float(sample["value"][1]) for sample in self.prometheus.query(filled)]


@pytest.fixture
def watched(tmp_path: Path, start_server: StartServer) -> Iterator[Watched]:
    with ExitStack() as stack:
        yield Watched(tmp_path, start_server, stack)


def test_every_panel_has_values_in_a_fleet_that_works(watched: Watched) -> None:
    def lacking() -> list[str]:
        return [f"{title}: {query}" for title, query in expressions() if not watched.values(query)]

    wait_until(lambda: not lacking(), within=SOON, what=lambda: f"values of {lacking()}", pause=0.5)
    assert watched.values('count(up{job="solocron"} == 1)') == [3]
    assert watched.values('count(solocron_runs_total{exported_job!=""})') == [], "no label of ours is renamed"
    assert watched.prometheus.firing() == set()


@pytest.mark.long
def test_after_kill_9_of_all_nodes_the_alerts_fire(watched: Watched) -> None:
    """Five minutes: the alerts wait on purpose, so that a deployment wakes no person."""
    wait_until(
        lambda: watched.values("min(solocron_job_last_success_timestamp_seconds)"), within=SOON, what="a success"
    )
    for node in watched.nodes:
        node.kill()
    wanted = {("SolocronNoNode", "default"), ("SolocronJobOverdue", "secondly")}
    wait_until(
        lambda: watched.prometheus.firing() >= wanted,
        within=290,
        what=lambda: str(watched.prometheus.firing()),
        pause=1.0,
    )
