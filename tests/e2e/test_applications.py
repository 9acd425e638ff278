"""I26: two programs share a store and the name of a job; it runs the function of the one that declared it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until

LEASE = "1s"
WITHIN = 20.0

JOBS = """
    from pathlib import Path
    from solocron import Scheduler

    def tell(who):
        with Path("told").open("a") as file:
            file.write(who + "\\n")

    scheduler = Scheduler(lease="{lease}")

    @scheduler.every("100ms", name="cleanup")
    def {function}():
        tell("{application}")

    if __name__ == "__main__":
        import logging
        logging.basicConfig(format="%(levelname)s %(message)s")
        scheduler.run_forever()
"""


class Place:
    """A folder with two applications, `billing` (a package) and `reports` (a file), on one store."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        self.told = folder / "told"
        self._environment = {
            **os.environ,
            "SOLOCRON_STORE": store,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._look = Scheduler(store, enabled=False)
        self.told.touch()
        (folder / "billing").mkdir()
        (folder / "billing" / "__init__.py").touch()
        for file, function, application in (
            ("billing/worker.py", "remove_drafts", "billing"),
            ("reports.py", "remove_everything", "reports"),
        ):
            text = dedent(JOBS).format(lease=LEASE, function=function, application=application)
            (folder / file).write_text(text)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """`python` with these words, its log in `log-N`."""
        with (self.folder / f"log-{len(self._nodes)}").open("wb") as log:
            node = subprocess.Popen([sys.executable, *words], cwd=self.folder, env=self._environment, stderr=log)
        self._nodes.append(node)
        return node

    def log(self, number: int) -> str:
        return (self.folder / f"log-{number}").read_text()

    def solocron(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "solocron", *words]
        return subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False, timeout=60
        )

    def nodes(self) -> set[int]:
        """Return the processes that are nodes; there is none before the first has made the tables."""
        try:
            return {node.pid for node in self._look.nodes()}
        except EmptyStore:
            return set()

    def runs(self) -> list[str]:
        return self.told.read_text().split()

    def more_runs(self, count: int) -> list[str]:
        """So many runs from now on, by whom."""
        before = len(self.runs())
        return wait_until(
            lambda: self.runs()[before:] if len(self.runs()) >= before + count else None, within=WITHIN, what="runs"
        )

    def close(self) -> None:
        self._look.stop()
        for node in self._nodes:
            node.kill()
            node.wait()


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    kind = getattr(request, "param", "sqlite")
    url = f"sqlite:///{tmp_path / 'store.db'}" if kind == "sqlite" else request.getfixturevalue(kind).fresh_url()
    made = Place(tmp_path, url)
    yield made
    made.close()


@pytest.mark.invariant("I26: a job runs only the function of the application that declared it")
@pytest.mark.parametrize("place", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)], indirect=True)
def test_a_job_runs_only_the_function_of_the_application_that_declared_it(place: Place) -> None:
    first = place.start("-m", "billing.worker")
    assert set(place.more_runs(2)) == {"billing"}
    place.start("reports.py")
    wait_until(lambda: "WARNING another application" in place.log(1), within=WITHIN, what=lambda: place.log(1))
    assert "application=reports" in place.log(1)
    assert "declared_by=billing" in place.log(1)
    assert set(place.more_runs(5)) == {"billing"}
    looked = place.solocron("doctor")
    assert looked.returncode == 1
    assert "FAIL  applications: cleanup belongs to billing, and reports on " in looked.stdout

    first.send_signal(signal.SIGTERM)
    assert first.wait(WITHIN) == 0
    wait_until(lambda: "reports" in place.runs()[-3:], within=WITHIN, what="reports to take the job over")
    assert "WARNING a job's own application is gone" in place.log(1)


def test_one_program_is_one_application_however_it_is_started(place: Place) -> None:
    ways = [("-m", "billing.worker"), ("billing/worker.py",), ("-m", "solocron", "run", "billing.worker")]
    nodes = [place.start(*words) for words in ways]
    wait_until(lambda: place.nodes() == {node.pid for node in nodes}, within=WITHIN, what="three nodes")
    assert set(place.more_runs(2)) == {"billing"}
    for node in nodes:
        node.terminate()
    assert [node.wait(WITHIN) for node in nodes] == [0, 0, 0]
    assert "another application" not in "".join(map(place.log, range(3)))
