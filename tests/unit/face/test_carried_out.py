"""I25: a run has succeeded only if its function was carried out to its end, whatever kind of function it is."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from solocron import AsyncRun, InvalidError, RetryDecision, Run, Scheduler, every
from solocron.dispatch.contract import Stop
from solocron.engine.attempts import Running
from solocron.engine.execution import outcome_of
from solocron.model.documents.run import Status
from solocron.testing.cluster import Cluster
from solocron.views import RunView

FAR = "1h"


def made(**options: Any) -> Scheduler:
    return Scheduler("memory://", enabled=True, **{"lease": "3s", **options})


def carried_out(function: Callable[..., Any], *around: Callable[..., Any], **options: Any) -> RunView:
    """How a run of the function ends; a warning that a coroutine was never awaited is an error of the test."""
    scheduler = made()
    scheduler.every(FAR, name="job", **options)(function)
    for wrapper in around:
        scheduler.around(wrapper)
    with scheduler:
        return scheduler.wait(scheduler.trigger("job"), "10s")


# --- refused where they are declared ---------------------------------------------------------------------------------


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class Callable_:  # noqa: N801 - an object that can be called
    def __call__(self) -> Iterator[int]:
        yield 1

    def method(self) -> Iterator[int]:
        yield 1


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
@pytest.mark.parametrize(
    ("function", "what"),
    [
        (generator, "a generator function"),
        (functools.partial(generator), "a generator function"),
        (Callable_(), "a generator function"),
        (Callable_().method, "a generator function"),
        (async_generator, "an async generator function"),
        (functools.partial(async_generator), "an async generator function"),
    ],
)
def test_a_function_that_yields_is_refused_where_it_is_declared(function: Callable[..., Any], what: str) -> None:
    scheduler = made()
    with pytest.raises(InvalidError, match=rf"{what}.*was not registered"):
        scheduler.every(FAR, name="job")(function)
    with pytest.raises(InvalidError, match=rf"{what}.*was not registered"):
        scheduler.register(function, name="handler")
    with pytest.raises(InvalidError, match=rf"{what}.*was not registered"):
        scheduler.every(FAR, name="job", on_retry=function)(lambda: None)
    assert scheduler.registry.jobs == {}
    assert scheduler.registry.handlers == {}


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
def test_discovery_refuses_it_too_and_registers_nothing() -> None:
    @every(FAR)
    def rows() -> Iterator[int]:
        yield 1

    scheduler = made()
    with pytest.raises(InvalidError, match="rows is a generator function"):
        scheduler.discover(rows)
    assert scheduler.registry.jobs == {}


def test_a_generator_function_that_somebody_goes_through_is_a_function_like_any_other() -> None:
    seen: list[int] = []

    def exhausted(function: Callable[[], Iterator[int]]) -> Callable[[], None]:
        @functools.wraps(function)
        def call() -> None:
            seen.extend(function())

        return call

    assert carried_out(exhausted(generator)).status == "succeeded"
    assert seen == [1]


# --- failed, where there is no loop to await it ----------------------------------------------------------------------


async def _real(done: list[str]) -> str:
    done.append("begun")
    await asyncio.sleep(0)
    done.append("ended")
    return "fine"


async def _rows() -> AsyncIterator[int]:
    yield 1


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (lambda: _real([]), "a coroutine"),
        (lambda: (row for row in (1, 2)), "a generator"),
        (lambda: _rows(), "an async generator"),
    ],
    ids=["coroutine", "generator", "async generator"],
)
def test_a_plain_function_that_returns_what_was_not_carried_out_has_failed(body: Callable[[], Any], kind: str) -> None:
    view = carried_out(body)
    assert view.status == "failed"
    assert view.error is not None
    assert view.error.startswith(f"its function returned {kind}, which was never carried out")
    assert "async def" in view.error or kind != "a coroutine"
    assert view.result is None


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
def test_a_wrapper_that_has_to_be_awaited_does_not_count_as_the_body_of_a_plain_function() -> None:
    called: list[str] = []

    async def around(run: Run, call: Callable[[], Any]) -> Any:
        return call()

    view = carried_out(lambda: called.append("body"), around)
    assert view.status == "failed"
    assert "returned a coroutine" in (view.error or "")
    assert called == []


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
def test_an_on_retry_that_has_to_be_awaited_says_nothing_and_leaves_no_warning() -> None:
    async def later() -> str:
        return "done"

    with pytest.raises(InvalidError, match="is not a decision"):
        RetryDecision.read(later())


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
def test_the_same_holds_on_a_simulated_cluster() -> None:
    @every("1m", name="job")
    def job() -> Any:
        return _real([])

    cluster = Cluster(job, nodes=1)
    cluster.run("70s")
    assert {view.status for view in cluster.runs("job")} == {"failed"}


def test_a_body_that_must_stop_leaves_no_coroutine_behind_either() -> None:
    running = Running.__new__(Running)
    running.stop, running.asking = Stop("timeout", "its time is over"), False
    assert outcome_of(running, _real([]), None).status is Status.TIMED_OUT


# --- awaited, where there is one -------------------------------------------------------------------------------------


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
def test_a_coroutine_that_returns_another_one_is_awaited_to_the_end() -> None:
    done: list[str] = []

    async def job(run: AsyncRun) -> Any:
        return _real(done)

    view = carried_out(job)
    assert (view.status, view.result) == ("succeeded", "fine")
    assert done == ["begun", "ended"]


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "wrapped"])
def test_a_plain_function_with_run_in_loop_is_awaited_there_and_gets_an_async_run(wrapped: bool) -> None:
    done: list[str] = []
    runs: list[Run] = []

    async def around(run: Run, call: Callable[[], Any]) -> Any:
        return await call()

    def job(run: AsyncRun) -> Any:
        asyncio.get_running_loop()
        runs.append(run)
        return _real(done)

    view = carried_out(job, *([around] if wrapped else []), run_in="loop")
    assert (view.status, view.result) == ("succeeded", "fine"), view.error
    assert done == ["begun", "ended"]
    assert [type(run) for run in runs] == [AsyncRun]


@pytest.mark.invariant("I25: a run succeeded only if its function was carried out to its end")
def test_a_job_that_was_added_as_data_may_choose_the_loop_too() -> None:
    scheduler, done = made(), list[str]()
    scheduler.register(lambda: _real(done), name="plain")
    scheduler.add("chosen", "plain", "@yearly", run_in="loop")
    scheduler.add("not-chosen", "plain", "@yearly")
    with scheduler:
        chosen = scheduler.wait(scheduler.trigger("chosen"), "10s")
        not_chosen = scheduler.wait(scheduler.trigger("not-chosen"), "10s")
    assert (chosen.status, chosen.result, not_chosen.status) == ("succeeded", "fine", "failed")
    assert done == ["begun", "ended"]


def test_a_partial_and_an_object_whose_call_is_a_coroutine_function_run_on_the_loop() -> None:
    class Job:
        async def __call__(self, done: list[str]) -> str:
            return await _real(done)

    for function in (functools.partial(_real, []), functools.partial(Job().__call__, [])):
        view = carried_out(function)
        assert (view.status, view.result) == ("succeeded", "fine"), view.error
