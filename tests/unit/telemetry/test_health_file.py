"""The health file: whole or absent, of live processes only, and never a reason for a node to stop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from solocron import ConfigurationError, HealthView, Scheduler
from solocron.clock import SystemClock
from solocron.telemetry import health_file
from solocron.telemetry.health_file import HealthFile, health_folder, read_health
from solocron.testing.fleet.waiting import wait_until
from solocron.views.health import judge

WELL = HealthView(
    node="n", namespace="default", host=os.uname().nodename, pid=os.getpid(), alive=True, ready=True, why=(),
    session="s", trusted_for_s=10.0, store_answers=True, loops={"keeper": 0.0, "claimer": 0.1, "sweeper": 500.0},
    event_loop_lag_s=None, blocked_by=None, running=0, draining=False, lease_s=15.0, age_s=0.0,
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOLOCRON_HEALTH_DIR", str(tmp_path / "health"))
    return tmp_path / "health"


def file_of(view: HealthView) -> HealthFile:
    made = HealthFile.make(namespace=view.namespace, node=view.node, host=view.host, pid=view.pid)
    assert made is not None
    return made


def shift(folder: Path, **changes: object) -> None:
    (path,) = folder.glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("view", "alive", "ready", "why"),
    [
        (WELL, True, True, ""),
        (replace(WELL, loops={"keeper": None}), False, False, "its loop keeper is gone"),
        (replace(WELL, loops={"claimer": 61.0}), False, False, "its loop claimer has been in one step for 61 s"),
        (replace(WELL, loops={"keeper": 61.0}), True, True, ""),
        (replace(WELL, loops={"keeper": 61.0}, session=None, trusted_for_s=None), False, False, "its loop keeper has"),
        (replace(WELL, event_loop_lag_s=14.0), True, True, ""),
        (replace(WELL, event_loop_lag_s=16.0, blocked_by="a@1"), False, False, "blocked for 16 s by a@1"),
        (replace(WELL, store_answers=False), True, False, "its session could not be renewed"),
        (
            replace(WELL, session=None, trusted_for_s=None, store_answers=False),
            True,
            False,
            "the store does not answer",
        ),
        (replace(WELL, draining=True), True, False, "it drains"),
    ],
)
def test_not_alive_is_what_a_restart_cures_and_not_ready_what_time_does(
    view: HealthView, alive: bool, ready: bool, why: str
) -> None:
    judged = judge(view)
    assert (judged.alive, judged.ready) == (alive, ready)
    assert why in "; ".join(judged.why)
    assert bool(judged.why) is not ready


def test_what_was_written_is_read_and_removed(folder: Path) -> None:
    file = file_of(WELL)
    file.write(WELL)
    (found,) = read_health(folder)
    assert replace(found, age_s=0.0) == WELL
    file.remove()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("age", [16.0, -100.0])
def test_silence_for_a_lease_is_not_alive_and_so_is_a_file_from_before_the_last_boot(folder: Path, age: float) -> None:
    file_of(WELL).write(WELL)
    shift(folder, boot=SystemClock.boot() - age)
    (found,) = read_health(folder)
    assert (found.alive, found.ready, len(found.why)) == (False, False, 1)


def test_a_process_of_the_same_number_that_started_later_is_another_one(folder: Path) -> None:
    """In a container every process is number 1, the one before the restart too."""
    file_of(WELL).write(WELL)
    shift(folder, process_start=1)
    (found,) = read_health(folder)
    assert found.why == ("its process is gone",)
    file_of(replace(WELL, node="next"))
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="the system cannot look at a child without ending it")
def test_a_process_that_ended_unnoticed_by_its_parent_is_gone(folder: Path) -> None:
    """In a container the first process is often one that never asks for the end of its children."""
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        file_of(replace(WELL, pid=child.pid)).write(replace(WELL, pid=child.pid))
        (found,) = read_health(folder)
        assert found.why == ("its process is gone",)


def test_files_of_other_hosts_are_neither_judged_nor_removed_while_they_are_written(folder: Path) -> None:
    file_of(WELL).write(replace(WELL, host="another", pid=1))
    assert read_health(folder) == []
    file_of(replace(WELL, node="next"))
    (path,) = folder.iterdir()
    os.utime(path, (0, 0))
    file_of(replace(WELL, node="next"))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"boot": 1}', '"x"', "\x00\xff"])
def test_what_is_no_file_of_a_node_is_passed_over_and_kept(folder: Path, content: str) -> None:
    folder.mkdir()
    (folder / "x.json").write_text(content)
    file_of(WELL).write(WELL)
    assert [view.node for view in read_health(folder)] == ["n"]
    assert (folder / "x.json").exists()


def test_a_node_that_cannot_write_says_so_once_and_runs(
    folder: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file = file_of(WELL)
    folder.rmdir()
    for _ in range(3):
        file.write(WELL)
    assert len([one for one in caplog.messages if one.startswith("the health file cannot be written")]) == 1


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ConfigurationError) as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_that_cannot_be_used_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    scheduler = Scheduler("memory://")
    for bad, why in ((str(tmp_path / "file"), "cannot be used"), ("health", "is not an absolute path")):
        monkeypatch.setenv("SOLOCRON_HEALTH_DIR", bad)
        assert why in (said := refused(scheduler.start))
        assert "nothing was started" in said
        assert not scheduler.health().alive


def test_the_default_folder_is_ours_alone_and_a_foreign_one_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("SOLOCRON_HEALTH_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file_of(WELL)
    folder = health_folder()
    assert folder is not None
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    folder.symlink_to(tmp_path)
    file_of(WELL)
    assert "the health file cannot be written" in caplog.text


def test_a_scheduler_knows_its_own_health_and_writes_it_while_it_runs(folder: Path) -> None:
    scheduler = Scheduler("memory://", node="here")
    assert scheduler.health().why == ("no node runs in this process",)
    with scheduler:
        found = scheduler.health()
        assert (found.alive, found.ready, found.why, found.node) == (True, True, (), "here")
        assert {"keeper", "watchdog", "claimer", "finisher", "sweeper", "pulse"} <= set(found.loops)
        wait_until(lambda: [view.node for view in read_health(folder)] == ["here"], within=10, what="its file")
    assert list(folder.iterdir()) == []
    scheduler.tick()
    assert list(folder.iterdir()) == []


def test_a_node_that_drains_says_so_until_its_last_body_has_ended() -> None:
    """It used to say that no node runs in this process, and a liveness probe would have ended it at once."""
    scheduler, begun, seen = Scheduler("memory://"), Event(), list[HealthView]()

    @scheduler.every("365d", name="job")
    def body() -> None:
        begun.set()
        wait_until(lambda: scheduler.health().draining, within=30, what="the drain")
        seen.append(scheduler.health())

    scheduler.start()
    scheduler.trigger("job")
    assert begun.wait(30)
    assert scheduler.stop("60s")
    assert [(view.alive, view.ready, view.draining) for view in seen] == [(True, False, True)]
    assert not scheduler.health().alive


def test_off_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOCRON_HEALTH_DIR", "off")
    assert health_folder() is None
    with Scheduler("memory://") as scheduler:
        assert scheduler.health().alive


def test_a_file_that_is_replaced_while_a_probe_reads_is_not_older_than_the_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe read its clock first and the file after that: a node that wrote in between was called dead."""
    file = file_of(WELL)
    files = health_file._files

    def replaced(where: Path) -> Iterator[object]:
        file.write(WELL)
        yield from files(where)

    monkeypatch.setattr(health_file, "_files", replaced)
    (view,) = read_health(folder)
    assert (view.alive, view.why) == (True, ())
