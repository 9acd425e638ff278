"""A server that keeps nothing on disk: kill -9 takes acknowledged writes with it, and `doctor` has said so before."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from proof.chaos.figures import Figures
from proof.chaos.storm import Tell
from solocron.errors import NotFoundError, StoreError
from solocron.testing.fleet import Fleet, wait_until
from tests.servers import SERVERS

__all__ = ["ACKNOWLEDGED", "forgetful"]

ACKNOWLEDGED = 50
JOB = "bill-0"


def forgetful(name: str, folder: Path, *, tell: Tell) -> Figures:
    """Fifty acknowledged triggers, kill -9, restart; once as the server comes by default, once as it is demanded."""
    figures = Figures(store=name, scenario="forgetful", slots=ACKNOWLEDGED)
    for settings in ({"appendonly": "no"}, {}):
        durable = not settings
        part = folder / ("durable" if durable else "default")
        part.mkdir()
        gone, doctor, log = _kill_the_server(name, settings, part)
        tell(f"{gone} of {ACKNOWLEDGED} acknowledged writes gone, append-only file {'on' if durable else 'off'}")
        told = {"doctor": "no append-only file" in doctor, "the start-up log": "no append-only file" in log}
        if durable:
            figures.faults += [f"{gone} acknowledged writes are gone in spite of an append-only file"] if gone else []
            figures.faults += [f"{who} complains of a durable server" for who, said in told.items() if said]
        else:
            figures.losses = gone
            figures.faults += ["nothing was forgotten: this proves nothing"] if not gone else []
            figures.faults += [f"{who} does not say that writes can be lost" for who, said in told.items() if not said]
            figures.notes += [line.strip() for line in doctor.splitlines() if "no append-only file" in line][-1:]
            figures.notes += [line.partition(" WARNING ")[2] for line in log.splitlines() if "no append-only" in line][
                :1
            ]
    return figures


def _kill_the_server(name: str, settings: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """How many acknowledged triggers are gone; what `doctor` and a node's log had said."""
    with (
        SERVERS[name](settings=settings) as server,
        Fleet(["proof.chaos.jobs.beside"], store=server.url, folder=folder, lease="3s") as fleet,
    ):
        (replica,) = fleet.start(1)
        later = datetime.now(UTC) + timedelta(hours=1)
        runs = [fleet.scheduler.trigger(JOB, at=later) for _ in range(ACKNOWLEDGED)]
        assert not _gone(fleet, runs)
        doctor = _doctor(server.url)
        server.kill9()
        server.restart()
        wait_until(lambda: _answers(fleet), within=30, what="the server to be back")
        return _gone(fleet, runs), doctor, replica.log()


def _gone(fleet: Fleet, runs: list[str]) -> int:
    gone = 0
    for run in runs:
        try:
            fleet.scheduler.get_run(run)
        except NotFoundError:
            gone += 1
    return gone


def _answers(fleet: Fleet) -> bool:
    try:
        fleet.scheduler.open().store.clock()
    except StoreError:
        return False
    return True


def _doctor(url: str) -> str:
    env = {**os.environ, "SOLOCRON_STORE": url, "NO_COLOR": "1", "COLUMNS": "400"}
    command = [sys.executable, "-m", "solocron.cli", "doctor"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60).stdout
