"""The command line as people have it: real processes, real signals, one SQLite file, a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from textwrap import dedent
from typing import Any, TextIO

import pytest

import solocron
from solocron import Scheduler

PATIENCE = 60
"""Seconds after which a test gives up on a process; nothing waits for so long unless it is broken."""

JOBS = """
    import os, threading
    from solocron import Run, every

    PIPE = int(os.environ["LEDGER"])

    def tell(*words):
        os.write(PIPE, (" ".join(map(str, words)) + "\\n").encode())

    @every("200ms", retries=2)
    def tock(run: Run):
        tell("tock", run.slot.isoformat(), run.node)

    @every("1000d")
    def stubborn(run: Run):
        tell("begun")
        while not run.cancelled:
            threading.Event().wait(0.01)
        tell("told")
        threading.Event().wait()
"""


class Place:
    """A folder with a module of jobs, and a pipe into which their bodies write what they did."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "shop.py").write_text(dedent(JOBS))
        self._read, self._write = os.pipe()
        self.ledger: TextIO = os.fdopen(self._read)
        self.nodes: list[subprocess.Popen[str]] = []
        self.look = Scheduler(f"sqlite:///{folder / 'shop.db'}", enabled=False)

    def close(self) -> None:
        self.look.stop()
        for node in self.nodes:
            node.kill()
            node.communicate()
        self.ledger.close()
        os.close(self._write)

    @property
    def env(self) -> dict[str, str]:
        """The environment of a person who has set nothing but the store."""
        own = {
            "PYTHONPATH": str(Path(solocron.__file__).parent.parent),
            "SOLOCRON_STORE": "sqlite:///shop.db",
            "LEDGER": str(self._write),
        }
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), **own}

    def options(self) -> dict[str, Any]:
        return {"cwd": self.folder, "env": self.env, "pass_fds": (self._write,), "text": True}

    def start(self, *flags: str) -> subprocess.Popen[str]:
        """Run a node."""
        node = subprocess.Popen(argv("run", "shop", *flags), stderr=subprocess.PIPE, **self.options())
        self.nodes.append(node)
        return node

    def tick(self) -> None:
        """Register the job as a node would; this process is quicker than one of its own."""
        node = Scheduler(f"sqlite:///{self.folder / 'shop.db'}", enabled=True)
        node.every("200ms", name="tock")(lambda: None)
        node.tick()
        node.stop()

    def call(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv(*args), capture_output=True, timeout=PATIENCE, **self.options() | options)

    def json(self, *args: str) -> Any:
        done = self.call(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def lines(self, *words: str) -> Iterator[list[str]]:
        """What the bodies write from now on, as words; those lines that begin with one of these."""
        while True:
            line = self.ledger.readline().split()
            if line[0] in words:
                yield line

    def rest(self, word: str) -> list[str]:
        """The slots in what is left in the pipe, once no process writes any more."""
        os.write(self._write, b"end\n")
        return [line[1] for line in iter(lambda: self.ledger.readline().split(), ["end"]) if line[0] == word]


def argv(*args: str) -> list[str]:
    return [sys.executable, "-m", "solocron.cli", *args]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


def end(node: subprocess.Popen[str]) -> str:
    """Wait for its end; what it wrote to stderr."""
    return node.communicate(timeout=PATIENCE)[1]


def test_a_node_runs_what_another_process_triggers_and_sigterm_drains_it(place: Place) -> None:
    node = place.start("--node", "first")
    next(place.lines("tock"))
    assert [found["node"] for found in place.json("nodes")] == ["first"]
    run = place.json("trigger", "tock", "--wait", str(PATIENCE))
    assert (run["origin"], run["status"], run["node"]) == ("trigger", "succeeded", "first")
    assert place.json("show", run["run"])["attempts"][0]["node"] == "first"
    node.send_signal(signal.SIGTERM)
    log = end(node)
    assert node.returncode == 0, log
    assert "registered tock [Every 200ms] -> shop.tock" in log
    assert "a node has drained" in log
    assert place.look.nodes() == []
    statuses = {str(run.status) for run in place.look.runs("tock")}
    assert "succeeded" in statuses
    assert statuses.isdisjoint({"running", "failed", "lost"})


def test_a_second_signal_ends_at_once_with_130(place: Place) -> None:
    node = place.start("--grace", "0s", "--lease", "60s")
    next(place.lines("tock"))
    place.look.trigger("stubborn")
    words = place.lines("begun", "told")
    assert next(words) == ["begun"]
    node.send_signal(signal.SIGINT)
    assert next(words) == ["told"]  # the first signal was heard, and the body does not care
    node.send_signal(signal.SIGINT)
    end(node)
    assert node.returncode == 130


def test_five_nodes_on_one_file_run_each_slot_once(place: Place) -> None:
    nodes = [place.start("--node", f"node-{n}", "--log-format", "json") for n in range(5)]
    words = place.lines("tock")
    ran = [next(words)[1] for _ in range(25)]
    assert len(place.look.nodes()) == 5
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    logs = [end(node) for node in nodes]
    assert [node.returncode for node in nodes] == [0] * 5, logs
    for line in "".join(logs).splitlines():
        assert {"time", "level", "logger", "message"} <= set(json.loads(line))
    ran += place.rest("tock")
    assert len(set(ran)) == len(ran)
    runs = place.look.runs("tock", limit=1_000, status="succeeded")
    assert sorted(run.slot for run in runs) == sorted(map(datetime.fromisoformat, ran))
    found = json.loads(place.call("doctor", "--json").stdout)["checks"]
    assert {check["name"] for check in found if check["level"] == "FAIL"} == {"nodes"}  # they have all gone home


def test_tick_works_with_a_path_from_another_folder(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = place.call("tick", str(place.folder / "shop.py"), "--json", cwd=elsewhere)
    # The first slot is due 200 ms after the job was registered: on a slow machine within the same tick.
    assert (done.returncode, {run["job"] for run in json.loads(done.stdout)} - {"tock"}) == (0, set())
    assert (elsewhere / "shop.db").exists()


def test_a_reader_that_has_seen_enough_is_no_error(place: Place) -> None:
    place.tick()
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(argv("jobs"), stdout=write, stderr=subprocess.PIPE, timeout=PATIENCE, **place.options())
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_cannot_be_encoded_is_escaped(place: Place) -> None:
    place.tick()
    latin = place.env | {"PYTHONIOENCODING": "ascii"}
    done = place.call("pause", "tock", "--note", "zu spät", env=latin)
    assert done.returncode == 0, done.stderr
    done = place.call("jobs", env=latin)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"zu sp\xe4t" in done.stdout


@pytest.mark.parametrize("no_color", [False, True])
def test_on_a_terminal_there_are_colours_unless_they_are_not_wanted(place: Place, no_color: bool) -> None:
    place.tick()
    wanted = {"NO_COLOR": "1"} if no_color else {}
    ours, theirs = pty.openpty()
    try:
        options = place.options() | {"env": place.env | {"TERM": "xterm-256color", "COLUMNS": "200"} | wanted}
        with subprocess.Popen(argv("jobs"), stdin=theirs, stdout=theirs, stderr=theirs, **options) as process:
            os.close(theirs)
            shown = _all_of(ours)
            assert process.wait(PATIENCE) == 0
    finally:
        os.close(ours)
    assert "tock" in shown
    assert ("\x1b[1;31m" in shown) is not no_color  # orphaned: the tick is over


def _all_of(terminal: int) -> str:
    """Everything that is written to a terminal until its other side is closed."""
    found = b""
    while select.select([terminal], [], [], PATIENCE)[0]:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux's way to say that the other side is gone
            break
        if not part:
            break
        found += part
    return found.decode()
