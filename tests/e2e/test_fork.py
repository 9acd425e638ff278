"""A fork after start is another process and so another node: it shares neither session nor connections."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from solocron.testing.fleet import Ledger
from solocron.testing.fleet.ledger import FOLDER
from solocron.testing.proxy import ChaosProxy


def run(program: str, folder: Path) -> Any:
    """Run a program that forks on a store of its own; the JSON that it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), FOLDER: str(folder / "ledger")}
    command = [sys.executable, "-m", f"tests.e2e.programs.{program}", f"sqlite:///{folder / 'store.db'}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_fork_after_start_gets_a_session_of_its_own_and_leaves_the_parents_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    facts = run("forking", tmp_path)
    (parents,) = facts["before"]
    assert facts["before"][parents][0] == facts["pid"]
    assert facts["threads"] == [], "no loop of the parent's runs in the child"
    own = [session for session, (pid, _) in facts["both"].items() if pid == facts["child"]]
    assert len(own) == 1
    assert own[0] != parents
    assert facts["both"][own[0]][1] != facts["both"][parents][1], "nor do they share a node's name"
    assert set(facts["after"]) == {parents}, "the child closed its own session only"
    assert facts["clean"]
    assert facts["child_clean"]
    starts = [(line.run, line.attempt) for line in ledger.lines(event="start")]
    assert len(starts) == len(set(starts)), "nothing was started twice"


def test_a_fork_in_the_middle_of_another_threads_write_can_write_too(tmp_path: Path) -> None:
    """SQLite keeps its locks in memory too: the store lets its calls end and closes its connections before a fork."""
    assert run("forking_writer", tmp_path)["child_wrote"]


def test_no_thread_of_a_node_imports_anything(tmp_path: Path) -> None:
    """A module that a thread is importing while the process is forked stays locked in the child forever."""
    assert imports_of(f"sqlite:///{tmp_path / 'store.db'}") == []


@pytest.mark.parametrize("kind", ["postgres", pytest.param("mariadb", marks=pytest.mark.long), "redis_server"])
def test_nor_on_a_server_that_was_away_when_it_started(kind: str, request: pytest.FixtureRequest) -> None:
    """Then the store is opened by a thread, so that every import would be a thread's: nothing is left to a server that
    is there. The child of a fork at that moment never got its node started."""
    url = request.getfixturevalue(kind).fresh_url()
    with ChaosProxy.for_url(url) as proxy:
        proxy.refuse()
        assert imports_of(proxy.through(url), proxy) == []


def imports_of(url: str, proxy: ChaosProxy | None = None) -> Any:
    """What the threads of a node import while it runs jobs of every kind; its store comes back once it has started."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.e2e.programs.importing", url]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        assert node.stdout.readline() == "started\n"
        if proxy is not None:
            proxy.heal()
        found, errors = node.communicate(timeout=120)
    assert node.returncode == 0, errors
    return json.loads(found)
