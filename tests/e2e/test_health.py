"""Probes of another process see a node that lives, is frozen, is blocked, or is gone; the store is never asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from solocron import Scheduler
from solocron.cli import main
from solocron.testing.fleet.waiting import wait_until

JOBS = """
    import time
    from solocron import every

    @every("1000d")
    async def block():
        time.sleep(8)
"""
PATIENCE = 60

Probe = Callable[..., tuple[int, Any]]
Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOLOCRON_HEALTH_DIR", str(tmp_path / "health"))
    monkeypatch.setenv("SOLOCRON_STORE", f"sqlite:///{tmp_path}/store.db")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.py").write_text(dedent(JOBS))
    return tmp_path


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(node: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "solocron", "run", "jobs.py", "--node", node, "--lease", "3s"]
        with (home / f"{node}.log").open("ab") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE)


@pytest.fixture
def probe(home: Path, capsys: pytest.CaptureFixture[str]) -> Probe:
    def probe(*flags: str) -> tuple[int, Any]:
        code = main(["health", "--json", *flags])
        said = capsys.readouterr().out
        return code, json.loads(said) if said else None

    return probe


def until(probe: Probe, code: int, *flags: str) -> Any:
    """Probe until it exits with the code; return what it said."""
    last: list[Any] = []

    def look() -> bool:
        last[:] = [probe(*flags)]
        return last[0][0] == code

    wait_until(look, within=PATIENCE, what=lambda: f"exit {code} of health {flags}; last: {last}", pause=0.1)
    return last[0][1]


def test_a_frozen_node_is_not_alive_and_is_again_after_the_thaw(start: Start, probe: Probe, home: Path) -> None:
    node = start("one")
    (view,) = until(probe, 0, "--ready")
    assert (view["node"], view["pid"], view["why"], view["store_answers"]) == ("one", node.pid, [], True)
    (home / "store.db").rename(home / "elsewhere.db")  # a probe that opened the store would fail
    os.kill(node.pid, signal.SIGSTOP)
    (view,) = until(probe, 1)
    assert view["why"][0].startswith("it has written nothing for ")
    (home / "elsewhere.db").rename(home / "store.db")
    os.kill(node.pid, signal.SIGCONT)
    until(probe, 0)


def test_a_node_whose_event_loop_is_blocked_is_not_alive_and_the_run_is_named(
    start: Start, probe: Probe, home: Path
) -> None:
    start("one")
    until(probe, 0, "--ready")
    scheduler = Scheduler()
    run = scheduler.trigger("block")
    (view,) = until(probe, 1)
    assert view["blocked_by"] == run
    assert view["why"][0].startswith("its event loop has been blocked for ")
    assert view["why"][0].endswith(f" by {run}")
    until(probe, 0)
    assert scheduler.wait(run, PATIENCE).status == "succeeded", "the lease was renewed all the while"
    scheduler.stop()
    wait_until(lambda: "the event loop was blocked for" in (home / "one.log").read_text(), within=30, what="its line")
    said = (home / "one.log").read_text()
    assert "the event loop has been blocked for" in said
    assert said.count("s by block [") == 2


def test_a_killed_node_is_gone_and_its_file_is_removed_by_the_next(start: Start, probe: Probe, home: Path) -> None:
    killed, kept = start("one"), start("two")
    until(probe, 0, "--node", "one")
    until(probe, 0, "--node", "two")
    killed.kill()
    killed.wait(PATIENCE)
    code, (view,) = probe("--node", "one")
    assert (code, view["alive"], view["why"]) == (1, False, ["its process is gone"])
    assert [one["node"] for one in probe()[1]] == ["two"], "a machine with a node that lives is well"
    start("three")
    until(probe, 0, "--node", "three")
    assert probe("--node", "one") == (3, None)
    kept.terminate()
    assert kept.wait(PATIENCE) == 0
    assert sorted(path.name.split(".")[1] for path in (home / "health").iterdir()) == ["three"]
