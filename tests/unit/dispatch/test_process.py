"""A process of its own for a run, with real processes: what it sees, how it can end, and that nothing is left of it."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from solocron import InvalidError, Run, Scheduler, every
from solocron.telemetry.records import JsonFormatter, TextFormatter
from solocron.testing.fleet import wait_until
from solocron.views import RunView
from tests.unit.dispatch import isolated_jobs

PATIENCE = "30s"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    made = Scheduler(f"sqlite:///{tmp_path / 'store.db'}", enabled=True, lease="10s", node="here")
    made.discover(isolated_jobs)
    with made:
        yield made


def ran(scheduler: Scheduler, job: str, payload: Any = None) -> RunView:
    return scheduler.wait(scheduler.trigger(job, payload), PATIENCE)


def is_gone(pid: int) -> bool:
    """Return whether it has ended; a zombie that was not waited for yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def pids(file: Path) -> list[int]:
    """The numbers that a body wrote down, once it has."""
    wait_until(lambda: file.exists() and file.read_text(), within=30, what="the body's first words")
    return [int(word) for word in file.read_text().split()]


def wait_gone(*numbers: int, within: float = 10) -> None:
    wait_until(lambda: all(map(is_gone, numbers)), within=within, what=f"the end of {numbers}")


# --- what it can do --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["/usr/bin/uwsgi", ""])
def test_inside_a_server_that_carries_python_with_it_the_child_still_is_python(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    monkeypatch.setattr(sys, "executable", server)
    view = ran(scheduler, "facts")
    assert view.status == "succeeded", view.error


def test_where_there_is_no_python_at_all_the_run_fails_and_says_what_to_do(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    monkeypatch.setattr(sys, "exec_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_exec_prefix", str(tmp_path))
    view = ran(scheduler, "facts")
    assert view.status == "failed"
    assert "is not a Python" in (view.error or "")
    assert "process of its own" in (view.error or "")


def test_a_run_in_a_process_sees_its_facts_and_its_result_progress_and_output_are_kept(scheduler: Scheduler) -> None:
    first, view = ran(scheduler, "facts"), ran(scheduler, "facts", {"mine": "ü"})
    assert (first.status, view.status) == ("succeeded", "succeeded"), first.error or view.error
    seen = view.result
    assert seen["pid"] != os.getpid()
    assert (seen["id"], seen["fence"], seen["key"], seen["attempt"], seen["node"]) == (
        view.run, view.fence, view.key, 1, "here",
    )  # fmt: skip
    assert (first.result["payload"], seen["payload"]) == ({"default": True}, {"mine": "ü"})
    assert (first.result["previous"], seen["previous"]) == (None, "succeeded")
    assert seen["slot"] == view.slot.isoformat()
    assert (seen["cancelled"], seen["stdin"]) == (False, "")
    assert view.progress == {"done": 1, "total": 2, "note": "half"}
    assert view.output is not None
    assert view.output.splitlines() == ["printed {'mine': 'ü'}", "INFO solocron.run.facts: logged"]


def test_a_shard_knows_which_one_it_is(scheduler: Scheduler) -> None:
    ran(scheduler, "sharded")
    shards = [view.result for view in scheduler.runs("sharded") if view.status == "succeeded"]
    assert shards
    assert all(shard in ("eu", "us") and whole for shard, whole in shards)


def test_a_coroutine_runs_in_a_process_too(scheduler: Scheduler) -> None:
    view = ran(scheduler, "coroutine")
    assert (view.status, view.result) == ("succeeded", 3), view.error
    assert view.progress == {"done": 3, "total": 3, "note": None}


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
def test_a_coroutine_that_nobody_awaits_in_a_process_is_no_success(scheduler: Scheduler) -> None:
    view = ran(scheduler, "plain-that-returns-a-coroutine")
    assert view.status == "failed"
    assert "its function returned a coroutine, which was never carried out" in (view.error or "")
    assert "never awaited" not in (view.output or "")
    view = ran(scheduler, "coroutine-that-returns-a-coroutine")
    assert (view.status, view.result) == ("succeeded", "carried out"), view.error


def test_keys_and_steps_work_through_a_connection_of_the_childs_own(scheduler: Scheduler) -> None:
    view = ran(scheduler, "effects")
    assert (view.status, view.attempt) == ("succeeded", 2), view.error
    assert view.result == [False, 7], "the second attempt finds the key taken and the step done"


def test_a_step_that_was_made_and_never_called_fails_the_run_in_a_process_too(scheduler: Scheduler) -> None:
    view = ran(scheduler, "step-that-is-not-called")
    assert view.status == "failed"
    assert (view.error or "").startswith("step 'charge' was made and never called, so its function was not run.")


def test_the_current_run_is_known_in_a_process_too(scheduler: Scheduler) -> None:
    view = ran(scheduler, "logging")
    assert (view.status, view.result) == ("succeeded", view.run), view.error


def test_verbs_with_io_say_why_they_cannot_work_on_a_store_in_memory() -> None:
    with Scheduler("memory://", enabled=True, lease="3s") as scheduler:
        pass
    scheduler.discover(isolated_jobs.effects)
    with scheduler:
        view = ran(scheduler, "effects")
    assert view.status == "failed"
    assert "which a process of its own cannot open; give it a URL that it can" in (view.error or "")


def test_a_pool_of_processes_inside_works_and_is_gone_afterwards(scheduler: Scheduler) -> None:
    view = ran(scheduler, "pool")
    assert (view.status, view.result) == ("succeeded", [1, 2, 3]), view.error


def test_wrappers_wrap_the_body_in_the_child(scheduler: Scheduler) -> None:
    scheduler.around(isolated_jobs.tenant)
    view = ran(scheduler, "wrapped")
    assert (view.status, view.result) == ("succeeded", "of wrapped"), view.error


def test_cpu_is_the_number_of_cores_that_it_may_use(scheduler: Scheduler) -> None:
    assert ran(scheduler, "hog", "cores").result == 1


# --- how it can end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "status", "error"),
    [
        ("raise", "failed", "ValueError: a reason of my own"),
        ("exit", "failed", "SystemExit: 3"),
        ("os-exit", "failed", "its process ended with exit code 4 before it had answered"),
        ("segfault", "failed", "its process was killed by SIGSEGV before it had answered"),
    ],
)
def test_however_a_process_ends_the_run_says_how(scheduler: Scheduler, payload: str, status: str, error: str) -> None:
    view = ran(scheduler, "ending", payload)
    assert view.status == status
    assert (view.error or "").strip().endswith(error)
    if payload == "raise":
        assert 'isolated_jobs.py", line' in (view.error or ""), "the traceback names the place in the user's code"


def test_a_failure_is_logged_as_that_of_a_thread_is(scheduler: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    """One line that says what happened, and the traceback where every log handler looks for it."""
    ran(scheduler, "ending", "raise")
    ran(scheduler, "ending", "segfault")
    raised, killed = [one for one in caplog.records if getattr(one, "event", None) == "finished"]
    assert raised.error == "ValueError: a reason of my own"  # type: ignore[attr-defined]
    assert raised.exc_info is not None
    shown = TextFormatter().format(raised)
    assert shown.count("Traceback (most recent call last)") == 1
    assert 'isolated_jobs.py", line' in shown
    assert json.loads(JsonFormatter().format(raised))["exception"].endswith("\nValueError: a reason of my own")
    assert killed.error == "its process was killed by SIGSEGV before it had answered"  # type: ignore[attr-defined]
    assert not killed.exc_info


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("no-json", "its result (set) is not JSON and was not kept"),
        ("large", "its result is larger than 65536 characters and was not kept"),
    ],
)
def test_a_result_that_cannot_be_kept_is_named(scheduler: Scheduler, payload: str, reason: str) -> None:
    view = ran(scheduler, "ending", payload)
    assert (view.status, view.result, view.reason) == ("succeeded", None, reason)


def test_a_result_that_only_json_can_carry_comes_home(scheduler: Scheduler) -> None:
    view = ran(scheduler, "ending", "half-a-letter")
    assert (view.status, view.result, view.reason) == ("succeeded", "\ud800", None)


def test_of_a_flood_of_output_the_first_and_the_last_lines_are_kept(scheduler: Scheduler) -> None:
    view = ran(scheduler, "ending", "loud")
    assert view.status == "succeeded"
    assert view.output is not None
    assert len(view.output) < 66_000
    assert view.output.startswith("line 0\nline 1\n")
    assert view.output.endswith("line 49998\nline 49999\n")
    assert " bytes left out]\n" in view.output


def test_output_that_is_no_text_is_kept_as_far_as_it_can_be_shown(scheduler: Scheduler) -> None:
    view = ran(scheduler, "ending", "odd-bytes")
    assert (view.status, view.output) == ("succeeded", "\ufffd\x00 odd")


@pytest.mark.parametrize("payload", ["itself", "child"])
def test_a_process_that_takes_more_memory_than_it_may_is_killed(scheduler: Scheduler, payload: str) -> None:
    view = ran(scheduler, "hog", payload)
    assert view.status == "failed"
    assert (view.error or "").startswith("used more than 96M: it had "), view.error


def test_a_timeout_kills_the_process_and_what_it_started(scheduler: Scheduler, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    view = ran(scheduler, "family", str(file))
    assert (view.status, view.reason) == ("timed_out", "still running at its deadline")
    wait_gone(*pids(file))


def test_a_cancelled_process_may_end_by_itself_in_a_moment(scheduler: Scheduler, tmp_path: Path) -> None:
    run = scheduler.trigger("polite", str(tmp_path / "pid"))
    (pid,) = pids(tmp_path / "pid")
    scheduler.cancel(run)
    view = scheduler.wait(run, PATIENCE)
    assert (view.status, view.result, view.output) == ("succeeded", "stopped by itself", "waiting\n")
    wait_gone(pid)


def test_a_cancelled_coroutine_is_cancelled_in_its_process(scheduler: Scheduler, tmp_path: Path) -> None:
    run = scheduler.trigger("polite-coroutine", str(tmp_path / "pid"))
    (pid,) = pids(tmp_path / "pid")
    scheduler.cancel(run)
    assert scheduler.wait(run, PATIENCE).status == "cancelled"
    wait_gone(pid)


def test_a_process_that_ignores_its_cancellation_is_killed(scheduler: Scheduler, tmp_path: Path) -> None:
    run = scheduler.trigger("stubborn", str(tmp_path / "pids"))
    numbers = pids(tmp_path / "pids")
    scheduler.cancel(run)
    assert scheduler.wait(run, PATIENCE).status == "cancelled"
    wait_gone(*numbers)


def test_the_end_of_a_drain_is_the_end_of_its_processes(scheduler: Scheduler, tmp_path: Path) -> None:
    run = scheduler.trigger("stubborn", str(tmp_path / "pids"))
    numbers = pids(tmp_path / "pids")
    assert scheduler.stop(grace="100ms") is True, "what was killed has ended, so the drain is clean"
    wait_gone(*numbers)
    view = scheduler.get_run(run)
    assert (view.status, view.reason) == ("cancelled", "cut off: its node shuts down")


def test_whoever_kills_the_guard_ends_the_run_and_all_of_its_processes(scheduler: Scheduler, tmp_path: Path) -> None:
    run = scheduler.trigger("stubborn", str(tmp_path / "pids"))
    numbers = pids(tmp_path / "pids")
    guard = int(Path(f"/proc/{numbers[0]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(guard, signal.SIGKILL)
    view = scheduler.wait(run, PATIENCE)
    assert (view.status, view.error) == (
        "failed", "its process was killed by SIGKILL from outside or before it could begin",
    )  # fmt: skip
    wait_gone(*numbers)


# --- what is refused -------------------------------------------------------------------------------------------------


class Shop:
    @every("1d", name="method", run_in="process")
    def method(self) -> None: ...

    @staticmethod
    @every("1d", name="static", run_in="process")
    def static() -> None: ...


def inner() -> Callable[[], None]:
    def made() -> None: ...

    return made


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda: None, "is a lambda"),
        (inner(), "is made inside another function"),
        (functools.partial(print, 1), "is an object of type partial, not a function"),
        (Shop().method, "is a method of an object"),
    ],
)
def test_what_another_process_could_not_find_is_refused_when_declared(function: Any, why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        Scheduler("memory://", enabled=True).every("1m", name="job", run_in="process")(function)


def test_static_methods_can_be_found() -> None:
    scheduler = Scheduler("memory://", enabled=True)
    assert scheduler.discover(Shop.static) == ["static"]


def test_a_wrapper_that_no_child_could_find_is_refused_at_the_start() -> None:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.discover(isolated_jobs.wrapped)
    scheduler.around(lambda run: isolated_jobs.tenant(run))
    with pytest.raises(InvalidError, match="is a lambda"):
        scheduler.start()


def test_a_module_that_cannot_be_imported_there_fails_the_run_with_its_traceback(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN_JOBS", "whole")
    scheduler.stop()
    scheduler.discover("tests.unit.dispatch.broken_jobs")
    monkeypatch.delenv("BROKEN_JOBS")
    scheduler.start()
    view = ran(scheduler, "broken")
    assert view.status == "failed"
    assert (view.error or "").strip().endswith("RuntimeError: this module is broken here")
    assert "broken_jobs.py" in (view.error or "")


PROGRAM = """
import sys
from solocron import Run, Scheduler

scheduler = Scheduler(sys.argv[1], enabled=True, lease="3s")

@scheduler.every("1d", name="own", run_in="process")
def own(run: Run) -> str:
    return f"{__name__} {run.job}"
"""


@pytest.mark.parametrize(
    ("tail", "shown"),
    [
        (
            'if __name__ == "__main__":\n'
            "    with scheduler:\n"
            '        view = scheduler.wait(scheduler.trigger("own"), "30s")\n'
            "    print(view.status, view.result, view.error)\n",
            "succeeded __solocron_main__ own None",
        ),
        (
            "with scheduler:\n"
            '    view = scheduler.wait(scheduler.trigger("own"), "30s")\n'
            "print(view.status, view.error.strip().splitlines()[-1])\n",
            "failed solocron.errors.ConfigurationError: this process carries out one run of a job, and must not",
        ),
    ],
)
def test_a_program_of_one_file_works_unless_it_starts_its_node_when_imported(
    tmp_path: Path, tail: str, shown: str
) -> None:
    import subprocess

    (tmp_path / "app.py").write_text(PROGRAM + tail)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "app.py"), f"sqlite:///{tmp_path / 'store.db'}"],
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.stdout.startswith(shown), done.stdout + done.stderr


def typed(run: Run) -> None: ...


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"memory": "512M"}, 'only run_in="process" can keep to it'),
        ({"cpu": 1}, 'only run_in="process" can keep to it'),
        ({"run_in": "process", "memory": "much"}, "is not an amount of memory"),
        ({"run_in": "process", "memory": -1}, "is not an amount of memory"),
        ({"run_in": "process", "memory": True}, "is not an amount of memory"),
        ({"run_in": "process", "memory": "1K"}, "is less than a Python process needs for itself"),
        ({"run_in": "process", "cpu": 0}, "from 1 up"),
        ({"run_in": "process", "cpu": 0.5}, "from 1 up"),
        ({"run_in": "process", "cpu": True}, "from 1 up"),
        ({"run_in": "process", "on_lost": "finish"}, "always ends with its lease"),
    ],
)
def test_nonsense_is_refused_when_declared(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        Scheduler("memory://", enabled=True).every("1m", name="job", **options)(typed)
