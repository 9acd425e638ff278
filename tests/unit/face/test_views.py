"""Views are values of public types: a program can annotate, compare and print all that they carry."""

from __future__ import annotations

import threading
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from solocron import Backoff, CatchUp, HoldView, JobView, NodeView, Overlap, Run, RunView, Scheduler, Status, StatusView
from solocron.views import AlarmView, PauseView, PermitView, to_json

PUBLIC = (
    *(JobView, HoldView, RunView, NodeView, StatusView, PauseView, AlarmView, PermitView, Backoff, Overlap, CatchUp),
    *(datetime, timedelta, str, int, float, bool),
)


def parts(value: Any) -> list[Any]:
    """Every value inside a value, itself included."""
    if is_dataclass(value):
        return [value, *(part for field in fields(value) for part in parts(getattr(value, field.name)))]
    if isinstance(value, tuple | list):
        return [part for one in value for part in parts(one)]
    if isinstance(value, dict):
        return [part for one in value.values() for part in parts(one)]
    return [] if value is None else [value]


@pytest.fixture
def busy() -> Any:
    scheduler, going, go_on = Scheduler("memory://", enabled=True, node="n"), threading.Event(), threading.Event()

    @scheduler.every("365d", name="job", overlap="queue-all", timeout="1h")
    def job(run: Run) -> None:
        going.set()
        go_on.wait(20)

    with scheduler:
        run = scheduler.trigger("job")
        assert going.wait(20)
        yield scheduler, run
        go_on.set()


def test_what_a_job_runs_is_a_tuple_of_run_views(busy: tuple[Scheduler, str]) -> None:
    scheduler, run = busy
    (running,) = scheduler.get_job("job").running
    assert isinstance(running, RunView)
    assert (running.run, running.job, running.status, running.attempt) == (run, "job", Status.RUNNING, 1)
    assert (running.node, running.origin, running.stuck, running.stopping) == ("n", "trigger", False, None)
    assert running.deadline is not None
    assert running.claimed_at is not None
    assert (running.finished_at, running.error, running.result) == (None, None, None)
    (listed,) = scheduler.runs("job", status="running")
    assert (running.key, running.slot, running.fence) == (listed.key, listed.slot, listed.fence)
    (again,) = scheduler.jobs()[0].running
    assert replace(again, lease_left_s=running.lease_left_s) == running


def test_a_run_that_was_asked_to_stop_says_so_in_its_job_too(busy: tuple[Scheduler, str]) -> None:
    scheduler, run = busy
    assert scheduler.cancel(run) == "asked"
    (running,) = scheduler.get_job("job").running
    assert running.stopping == "cancelled by request"
    assert running.stopping_since is not None


def test_views_hold_no_internal_class(busy: tuple[Scheduler, str]) -> None:
    scheduler, _ = busy
    seen = parts([scheduler.jobs(), scheduler.runs(), scheduler.nodes(), scheduler.status()])
    assert {type(part) for part in seen} <= set(PUBLIC)
    assert all(part.utcoffset() is not None for part in seen if isinstance(part, datetime))
    shown = to_json(scheduler.get_job("job"))
    assert shown["running"][0]["status"] == "running"


@pytest.mark.parametrize(
    ("duration", "seconds"), [(timedelta(hours=1, minutes=30), 5400), (timedelta(milliseconds=250), 0.25), (None, None)]
)
def test_a_duration_is_json_as_a_number_of_seconds(duration: timedelta | None, seconds: float | None) -> None:
    assert to_json({"timeout": duration}) == {"timeout": seconds}


def test_the_durations_of_a_policy_are_seconds_too() -> None:
    assert to_json(Backoff(first="1m", cap="1h")) == {"first": 60, "factor": 2.0, "cap": 3600, "jitter": 0.1}
