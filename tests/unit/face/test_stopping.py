"""What stops a body passes `except Exception`, and harms neither the thread, the loop nor the process it runs on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solocron import Cancelled, InvalidError, LeaseLost, LockLost, Run, RunStopped, Scheduler, SolocronError, TimedOut
from solocron.engine.node import Node
from tests.unit.face import stopped_jobs

FAR = "1d"
TOO_OFTEN = 20


def made(store: str = "memory://") -> Scheduler:
    return Scheduler(store, enabled=True, lease="3s")


def test_what_stops_a_body_is_no_exception_and_what_loses_a_lock_is_one() -> None:
    assert not issubclass(RunStopped, Exception)
    assert {kind.__base__ for kind in (LeaseLost, Cancelled, TimedOut)} == {RunStopped}
    assert LockLost.__base__ is SolocronError


@pytest.mark.parametrize(
    "look",
    [Run.check, lambda run: run.progress(1), lambda run: next(run.track([1]))],
    ids=["check", "progress", "track"],
)
@pytest.mark.parametrize(("timeout", "status"), [(None, "cancelled"), ("50ms", "timed_out")])
def test_a_body_that_swallows_every_exception_is_stopped_all_the_same(
    look: Callable[[Run], Any], timeout: str | None, status: str
) -> None:
    scheduler = made()
    going, pause = threading.Event(), threading.Event()
    swallowed: list[Exception] = []

    @scheduler.every(FAR, name="job", timeout=timeout)
    def job(run: Run) -> None:
        while len(swallowed) < TOO_OFTEN:
            going.set()
            pause.wait(0.005)
            try:
                look(run)
            except Exception as error:
                swallowed.append(error)
                continue

    with scheduler:
        run = scheduler.trigger("job")
        assert going.wait(10)
        if timeout is None:
            scheduler.cancel(run)
        view = scheduler.wait(run, "10s")
    assert swallowed == []
    assert view.status == status


def test_a_coroutine_that_swallows_every_exception_is_stopped_by_its_own_look_too() -> None:
    scheduler = made()
    going = threading.Event()
    seen: list[type[BaseException]] = []

    @scheduler.every(FAR, name="job")
    async def job(run: Run) -> None:
        for _ in range(TOO_OFTEN):
            going.set()
            try:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    run.check()
            except Exception:
                continue
            except BaseException as error:
                seen.append(type(error))
                raise

    with scheduler:
        run = scheduler.trigger("job")
        assert going.wait(10)
        scheduler.cancel(run)
        assert scheduler.wait(run, "10s").status == "cancelled"
    assert seen == [Cancelled]


def test_a_process_whose_body_swallows_every_exception_ends_by_itself(tmp_path: Path) -> None:
    scheduler = made(f"sqlite:///{tmp_path}/store.db")
    scheduler.discover(stopped_jobs)
    with scheduler:
        run = scheduler.trigger("swallows", payload=str(tmp_path / "going"))
        while not (tmp_path / "going").exists():
            scheduler.open().store.wait(0.02)
        scheduler.cancel(run)
        view = scheduler.wait(run, "20s")
    assert view.status == "cancelled"
    assert "was killed" not in (view.reason or "")
    assert view.output == "swallowed 0, ended by Cancelled\n"


@pytest.mark.parametrize("where", ["thread", "loop", "process"])
def test_a_body_that_raises_it_by_itself_harms_nothing_that_runs_after_it(where: str, tmp_path: Path) -> None:
    """On one thread, loop and process each: the dispatcher goes on, and the outcome says what was raised."""
    scheduler = made(f"sqlite:///{tmp_path}/store.db")
    scheduler.discover(stopped_jobs)
    with scheduler:
        views = [scheduler.wait(scheduler.trigger(where, payload=what), "20s") for what in stopped_jobs.RAISED]
    assert [view.status for view in views] == ["cancelled", "timed_out", "failed", "succeeded"]
    assert (views[0].reason, views[1].reason) == ("of my own", "of my own")
    assert "LeaseLost: of my own" in (views[2].error or "")


def test_a_key_whose_block_was_stopped_is_free_and_not_in_doubt() -> None:
    """The block itself looked and stopped: it has not done its effect, as if it had raised an error."""
    scheduler = made()
    going, pause = threading.Event(), threading.Event()

    @scheduler.every(FAR, name="job")
    def job(run: Run) -> None:
        with run.once("key") as claim:
            if run.payload == "again":
                assert claim
                return
            while True:
                going.set()
                pause.wait(0.005)
                run.check()

    with scheduler:
        run = scheduler.trigger("job")
        assert going.wait(10)
        scheduler.cancel(run)
        assert scheduler.wait(run, "10s").status == "cancelled"
        assert scheduler.wait(scheduler.trigger("job", payload="again"), "10s").status == "succeeded"


def test_a_subscriber_that_raises_it_disturbs_nobody() -> None:
    scheduler = made()

    @scheduler.on("started")
    def subscriber(event: object) -> None:
        raise Cancelled("a run that this subscriber keeps")

    @scheduler.every(FAR, name="job")
    def job() -> None: ...

    with scheduler:
        assert scheduler.wait(scheduler.trigger("job"), "10s").status == "succeeded"


def test_a_result_that_raises_it_when_it_is_let_go_costs_neither_outcome_nor_thread() -> None:
    scheduler = made()

    async def begun(run: Run) -> None:
        try:
            await _once_more()
        finally:
            raise Cancelled("while it is closed")

    @scheduler.every(FAR, name="job")
    def job(run: Run) -> object:
        coroutine = begun(run)
        coroutine.send(None)
        return coroutine

    with scheduler:
        for _ in range(2):
            view = scheduler.wait(scheduler.trigger("job"), "10s")
            assert view.status == "failed"
            assert "returned a coroutine" in (view.error or "")


class _once_more:  # noqa: N801 - awaited once
    def __await__(self) -> Any:
        yield None


@pytest.mark.parametrize("how", ["with", "async with"])
def test_a_block_gives_runs_the_grace_of_the_scheduler(how: str) -> None:
    """The end of a web application waited for half a minute, whatever its supervisor allowed it."""
    scheduler, begun, told = Scheduler("memory://", grace="10ms"), threading.Event(), list[bool]()

    @scheduler.every("1000d")
    def endless(run: Run) -> None:
        begun.set()
        while True:
            run.check()

    scheduler.on("cancelling", lambda event: told.append(event.reason.startswith("cut off")))

    def start() -> None:
        scheduler.trigger("endless")
        assert begun.wait(30)

    async def in_a_loop() -> None:
        async with scheduler:
            await asyncio.to_thread(start)

    asked = time.monotonic()
    if how == "with":
        with scheduler:
            start()
    else:
        asyncio.run(in_a_loop())
    assert told == [True]
    assert time.monotonic() - asked < 25


@pytest.mark.parametrize(("grace", "allowed"), [("2m", 25.0), ("5s", 5.0)])
def test_a_lifespan_drains_before_a_server_kills_its_worker(
    grace: str, allowed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gunicorn kills a worker after 30 s."""
    drained, drain = list[float](), Node.drain

    def told(self: Node, seconds: float) -> bool:
        drained.append(seconds)
        return drain(self, seconds)

    monkeypatch.setattr(Node, "drain", told)
    scheduler = Scheduler("memory://", grace=grace, enabled=True)

    async def serve() -> None:
        async with scheduler.lifespan() as state:
            assert state == {"solocron": scheduler}

    asyncio.run(serve())
    assert drained == [allowed]


@pytest.mark.parametrize("bad", ["soon", -1, "1x"])
def test_a_grace_that_is_no_duration_is_refused(bad: object) -> None:
    with pytest.raises(InvalidError, match="grace"):
        Scheduler("memory://", grace=bad)  # type: ignore[arg-type]
