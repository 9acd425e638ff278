"""A module that starts its scheduler when it is imported: a command refuses it, a spawned child is no node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import solocron
from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until

PATIENCE = 60
"""Seconds after which a test gives up on a process; nothing waits for so long unless it is broken."""

PROGRAM = """
    import multiprocessing
    from pathlib import Path

    from solocron import Scheduler

    scheduler = Scheduler("sqlite:///jobs.db")


    def write():
        Path("written").touch()


    @scheduler.every("1000d")
    def spawns():
        child = multiprocessing.get_context({method!r}).Process(target=write)
        child.start()
        child.join()
        return child.exitcode


    {start}
"""
BARE = "scheduler.run_forever()"
GUARDED = f'if __name__ == "__main__": {BARE}'

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Write the program and start a process in its folder; killed, with all that it started, if it is still there."""
    started: list[subprocess.Popen[str]] = []

    def begin(*argv: str, ending: str, method: str = "spawn") -> subprocess.Popen[str]:
        (tmp_path / "program.py").write_text(dedent(PROGRAM).format(start=ending, method=method))
        process = subprocess.Popen(
            [sys.executable, *argv],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(solocron.__file__).parent.parent)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.mark.parametrize(("command", "ending"), [("run", BARE), ("tick", "with scheduler: ...")])
def test_a_target_that_starts_its_scheduler_is_refused(start: Start, tmp_path: Path, command: str, ending: str) -> None:
    """It used to drain at SIGTERM and start again: once for the module, once for the command."""
    process = start("-m", "solocron", command, "program.py", ending=ending)
    said, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (2, "")
    line = (tmp_path / "program.py").read_text().splitlines().index(ending) + 1
    assert f"program.py, line {line}: the module starts its scheduler when it is imported" in errors
    assert "nothing was started" in errors
    assert 'below `if __name__ == "__main__":`' in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "jobs.db").exists()


def test_the_same_target_with_its_start_guarded_is_run(start: Start, tmp_path: Path) -> None:
    process = start("-m", "solocron", "run", "program.py", "--node", "one", ending=GUARDED)
    assert result_of_a_run(tmp_path) == 0
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert errors.count("a node runs") == errors.count("a node has drained") == 1
    assert (tmp_path / "written").exists()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_spawned_child_of_an_unguarded_program_does_not_become_a_node(
    start: Start, tmp_path: Path, method: str
) -> None:
    """It imports the program again: there it used to become a second node, and what it was made for never ran."""
    process = start("program.py", ending=BARE, method=method)
    assert result_of_a_run(tmp_path) == 1
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "a child process of multiprocessing imports this program again" in errors
    assert 'below `if __name__ == "__main__":`' in errors
    assert not (tmp_path / "written").exists()


def _has_jobs(scheduler: Scheduler) -> bool:
    try:
        return bool(scheduler.jobs())
    except EmptyStore:  # its node has not made the tables yet
        return False


def result_of_a_run(folder: Path) -> object:
    """Trigger the job that spawns a child; the child's exit code. Meanwhile there is one node and no other."""
    scheduler = Scheduler(f"sqlite:///{folder / 'jobs.db'}")
    try:
        wait_until(lambda: _has_jobs(scheduler), within=30, what="its job")
        run = scheduler.trigger("spawns")
        nodes: set[str] = set()

        def is_over() -> bool:
            nodes.update(node.session for node in scheduler.nodes())
            return scheduler.get_run(run).status == "succeeded"

        wait_until(is_over, within=30, what="the end of the run")
        assert len(nodes) == 1
        return scheduler.get_run(run).result
    finally:
        scheduler.stop()
