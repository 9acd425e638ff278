"""`scheduler.aio`: a few threads of its own; a wait holds none of them, and the application's pool is left alone."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from solocron import NotFoundError, Scheduler, WaitTimeout
from solocron.testing.fleet import wait_until
from tests.unit.test_forked import in_a_fork

SOON = 10
"""Seconds after which a test gives up on an answer."""


def made() -> Scheduler:
    """A scheduler with one job in its store and no node: what is triggered stays as it is."""
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.every("1000d", name="job")(lambda: None)
    scheduler.tick()
    return scheduler


def own_threads() -> int:
    return sum(thread.name.startswith("solocron-aio") for thread in threading.enumerate())


@contextmanager
def stuck_log(scheduler: Scheduler) -> Iterator[list[str]]:
    """The store's log does not answer meanwhile; yields the threads that wait for it."""
    store, inside, go_on = scheduler.open().store, list[str](), threading.Event()
    real = store.history

    def stuck(query: Any) -> Any:
        inside.append(threading.current_thread().name)
        go_on.wait(SOON)
        return real(query)

    store.history = stuck  # type: ignore[method-assign]
    try:
        yield inside
    finally:
        store.history = real  # type: ignore[method-assign]
        go_on.set()


def test_fifty_waits_take_one_thread_and_none_of_the_applications() -> None:
    """They used to fill the application's thread pool: a trigger was answered only when one of their runs was over."""
    scheduler = made()

    async def app() -> None:
        runs = [await scheduler.aio.trigger("job") for _ in range(50)]
        with stuck_log(scheduler) as inside:
            waits = [asyncio.create_task(scheduler.aio.wait(run, "30s")) for run in runs]
            while not inside:
                await asyncio.sleep(0)
            one_more = await asyncio.wait_for(scheduler.aio.trigger("job"), SOON)
            assert one_more not in runs
            assert len(inside) == 1, "one look at a time, however many wait"
            assert own_threads() <= 1 + 8
            assert asyncio.get_running_loop()._default_executor is None, "the application's own pool was not asked"  # type: ignore[attr-defined]
        for run in runs:
            await scheduler.aio.cancel(run)
        assert {view.status for view in await asyncio.gather(*waits)} == {"cancelled"}

    asyncio.run(app())
    scheduler.stop()


def test_a_wait_looks_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, looks, pauses = made(), 0, list[float]()
    store = scheduler.open().store
    real = store.history

    def counted(query: Any) -> Any:
        nonlocal looks
        looks += query.run is not None
        return real(query)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if sum(pauses) > 60:
            scheduler.cancel(run)

    monkeypatch.setattr(store, "history", counted)
    monkeypatch.setattr("solocron.scheduler.aio.asyncio.sleep", sleep)
    run = scheduler.trigger("job")
    assert asyncio.run(scheduler.aio.wait(run)).status == "cancelled"
    assert looks == len(pauses) + 1
    assert pauses[0] <= 0.01
    assert looks < 140, "two a second, and some at the beginning"
    scheduler.stop()


def test_a_wait_that_is_cancelled_looks_no_more() -> None:
    """Its thread used to go on looking until the run was over."""
    scheduler = made()
    run = scheduler.trigger("job")

    async def app() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(scheduler.aio.wait(run), 0.05)

    asyncio.run(app())
    scheduler.stop()
    wait_until(lambda: own_threads() == 0, within=SOON, what="the end of its threads")


def test_its_errors_are_those_of_wait() -> None:
    scheduler = made()
    run = scheduler.trigger("job")
    with pytest.raises(WaitTimeout, match=r"is waiting after 0\.02 s of waiting; it goes on by itself"):
        asyncio.run(scheduler.aio.wait(run, "20ms"))
    with pytest.raises(NotFoundError, match="there is no run 'job@nothing' in namespace 'default'"):
        asyncio.run(scheduler.aio.wait("job@nothing"))
    scheduler.stop()


def test_after_an_error_its_threads_end_without_the_collector() -> None:
    """A future and its error refer to each other: the pool stayed in the traceback until the next full collection."""
    gc.collect()
    gc.disable()
    try:
        scheduler = made()
        with pytest.raises(NotFoundError):
            asyncio.run(scheduler.aio.wait("job@nothing"))
        scheduler.stop()
        wait_until(lambda: own_threads() == 0, within=SOON, what="the end of its threads")
    finally:
        gc.enable()


def test_stopping_ends_its_threads_and_it_can_be_asked_again() -> None:
    scheduler = made()

    async def app() -> None:
        async with scheduler:
            assert len(await scheduler.aio.nodes()) == 1
            assert own_threads() > 0
        assert await scheduler.aio.nodes() == []

    asyncio.run(app())
    scheduler.stop()
    wait_until(lambda: own_threads() == 0, within=SOON, what="the end of its threads")


def test_a_long_tick_keeps_no_other_call_waiting() -> None:
    """Calls that last as long as jobs do have threads of their own."""
    scheduler, begun, may_end = Scheduler("memory://", enabled=True), threading.Event(), threading.Event()

    @scheduler.every("1000d", name="job")
    def job() -> None:
        begun.set()
        may_end.wait(SOON)

    scheduler.tick()

    async def app() -> None:
        run = await scheduler.aio.trigger("job")
        ticking = asyncio.create_task(scheduler.aio.tick())
        while not begun.is_set():
            await asyncio.sleep(0)
        answers = [asyncio.wait_for(scheduler.aio.get_run(run), SOON) for _ in range(20)]
        assert {view.status for view in await asyncio.gather(*answers)} == {"running"}
        may_end.set()
        assert [view.status for view in await ticking] == ["succeeded"]

    asyncio.run(app())
    scheduler.stop()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_a_fork_has_threads_of_its_own() -> None:
    """The parent's pool believes in threads that do not exist there: a call handed to it would wait forever."""
    scheduler = made()
    assert len(asyncio.run(scheduler.aio.jobs())) == 1
    assert in_a_fork(lambda: len(asyncio.run(scheduler.aio.jobs())) == 1)
    scheduler.stop()
