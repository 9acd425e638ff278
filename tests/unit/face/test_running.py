"""A scheduler that is started, in one process on the memory store: what users do with it, and what they see."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from solocron import (
    AsyncRun,
    ConflictError,
    InvalidError,
    NotFoundError,
    Run,
    Scheduler,
    TimedOut,
    WaitTimeout,
    every,
)
from solocron.engine.execution import Execution
from solocron.events import Event, Events

FAR = "1h"


def made(**options: object) -> Scheduler:
    return Scheduler("memory://", enabled=True, **{"lease": "3s", **options})  # type: ignore[arg-type]


def test_a_triggered_run_gets_its_facts_and_its_result_is_kept() -> None:
    scheduler = made()
    seen: list[Run] = []

    @scheduler.every(FAR, name="job", payload={"default": True})
    def job(run: Run) -> dict[str, object]:
        seen.append(run)
        run.progress(1, 2, "half")
        return {"got": run.payload}

    with scheduler:
        first = scheduler.wait(scheduler.trigger("job"), "10s")
        second = scheduler.wait(scheduler.trigger("job", {"mine": 1}), "10s")
    assert first.status == second.status == "succeeded"
    assert (first.result, second.result) == ({"got": {"default": True}}, {"got": {"mine": 1}})
    assert first.progress == {"done": 1, "total": 2, "note": "half"}
    one, two = seen
    assert one.previous is None
    assert two.previous is not None
    assert two.previous.status == "succeeded"
    assert two.fence > one.fence
    assert one.key != two.key
    assert one.slot.tzinfo is not None
    assert (one.attempt, one.job, one.node) == (1, "job", first.node)


def test_the_same_key_twice_is_one_run() -> None:
    scheduler = made()
    calls: list[str] = []
    scheduler.every(FAR, name="job")(lambda run: calls.append(run.id))
    with scheduler:
        first = scheduler.trigger("job", key="order-7")
        scheduler.wait(first, "10s")
        for number in range(40):  # more than the document remembers
            scheduler.wait(scheduler.trigger("job", key=f"other-{number}"), "10s")
        assert scheduler.trigger("job", key="order-7") == first
    assert calls.count(first) == 1


def test_a_delayed_trigger_waits_for_its_instant_and_can_be_cancelled() -> None:
    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: None)
    with scheduler:
        run = scheduler.trigger("job", at=datetime.now(UTC) + timedelta(hours=1))
        assert scheduler.get_run(run).status == "waiting"
        with pytest.raises(WaitTimeout):
            scheduler.wait(run, 0.05)
        assert scheduler.cancel(run) == "cancelled"
        assert scheduler.wait(run, "5s").status == "cancelled"


def test_a_job_that_raises_is_recorded_and_disturbs_nothing_else() -> None:
    scheduler = made()

    @scheduler.every(FAR, name="bad")
    def bad() -> None:
        raise ValueError("no luck")

    scheduler.every(FAR, name="good")(lambda: "fine")
    with scheduler:
        failed = scheduler.wait(scheduler.trigger("bad"), "10s")
        assert failed.status == "failed"
        assert "ValueError: no luck" in (failed.error or "")
        assert scheduler.wait(scheduler.trigger("good"), "10s").result == "fine"
        assert scheduler.get_job("bad").failures == 1


@pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
def test_a_body_that_exits_or_returns_nonsense_is_only_its_own_problem() -> None:
    scheduler = made()

    @scheduler.every(FAR, name="exits")
    def exits() -> None:
        raise SystemExit(3)

    scheduler.every(FAR, name="odd")(lambda: {1, 2, 3})
    with scheduler:
        assert scheduler.wait(scheduler.trigger("exits"), "10s").status == "failed"
        odd = scheduler.wait(scheduler.trigger("odd"), "10s")
        assert odd.status == "succeeded"
        assert "not JSON" in (odd.reason or "")


@pytest.mark.invariant("I5: no slot is lost")
@pytest.mark.parametrize("text", ["nul \0 inside", "no utf-8: \udc80", "a\nb\tc\x1b[31m"])
def test_an_error_of_any_text_is_recorded_and_the_hold_is_gone(text: str, tmp_path: Path) -> None:
    """A text that a store cannot keep must not keep the run from being finished."""
    scheduler = Scheduler(f"sqlite:///{tmp_path}/solocron.db", enabled=True, lease="3s")

    @scheduler.every(FAR, name="job")
    def job(run: Run) -> None:
        run.progress(1, 2, text)
        raise RuntimeError(text)

    with scheduler:
        done = scheduler.wait(scheduler.trigger("job"), "10s")
        assert done.status == "failed"
        assert "RuntimeError" in (done.error or "")
        assert scheduler.get_job("job").running == ()
        with pytest.raises(InvalidError, match="payload"):
            scheduler.trigger("job", {"text": "\udc80"})


def test_failures_are_retried_with_backoff() -> None:
    scheduler = made()
    attempts: list[int] = []

    @scheduler.every(FAR, name="job", retries=2)
    def job(run: Run) -> None:
        attempts.append(run.attempt)
        if run.attempt < 3:
            raise RuntimeError("again")

    from solocron import Backoff

    scheduler.every(FAR, name="quick", retries=2, backoff=Backoff(first="10ms"))(job)
    with scheduler:
        done = scheduler.wait(scheduler.trigger("quick"), "20s")
    assert (done.attempt, done.status) == (3, "succeeded")
    assert attempts == [1, 2, 3]


def test_a_coroutine_runs_on_a_private_loop_or_on_the_callers() -> None:
    scheduler = made()
    loops: list[object] = []

    @scheduler.every(FAR, name="job")
    async def job(run: AsyncRun) -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        seen = [item async for item in run.track([1, 2, 3])]
        return f"{seen}"

    with scheduler:
        assert scheduler.wait(scheduler.trigger("job"), "10s").result == "[1, 2, 3]"

    async def app() -> None:
        async with scheduler:
            run = await scheduler.aio.trigger("job")
            assert (await scheduler.aio.wait(run, "10s")).status == "succeeded"
            assert loops[-1] is asyncio.get_running_loop()

    asyncio.run(app())
    assert loops[0] is not loops[1]


def test_a_coroutine_is_cancelled_at_its_deadline() -> None:
    scheduler = made()
    ended = threading.Event()

    @scheduler.every(FAR, name="job", timeout="50ms")
    async def job() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with scheduler:
        done = scheduler.wait(scheduler.trigger("job"), "10s")
    assert done.status == "timed_out"
    assert ended.is_set()


def test_a_thread_is_told_that_its_time_is_over() -> None:
    scheduler = made()

    @scheduler.every(FAR, name="job", timeout="50ms")
    def job(run: Run) -> None:
        pause = threading.Event()
        while not run.cancelled:
            pause.wait(0.01)
        with pytest.raises(TimedOut):
            run.check()

    with scheduler:
        assert scheduler.wait(scheduler.trigger("job"), "10s").status == "timed_out"


def test_cancel_reaches_a_running_body() -> None:
    scheduler = made()
    started = threading.Event()

    @scheduler.every(FAR, name="job")
    async def job() -> None:
        started.set()
        await asyncio.Event().wait()

    with scheduler:
        run = scheduler.trigger("job")
        assert started.wait(10)
        assert scheduler.cancel(run) == "asked"
        done = scheduler.wait(run, "10s")
        assert done.status == "cancelled"
        assert done.reason == "cancelled by request"


def test_pause_resume_and_trigger_while_paused() -> None:
    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: None)
    with scheduler:
        paused = scheduler.pause("job", by="ana", note="deploy")
        assert paused.paused is not None
        assert (paused.paused.by, paused.paused.note) == ("ana", "deploy")
        assert paused.next is None
        assert scheduler.wait(scheduler.trigger("job"), "10s").status == "succeeded"
        assert scheduler.resume("job").paused is None


def test_jobs_as_data_are_added_changed_and_removed() -> None:
    scheduler = made()
    got: list[object] = []
    scheduler.register(lambda run: got.append(run.payload), name="handler")
    with scheduler:
        scheduler.add("tenant-1", "handler", "0 3 * * *", tz="Europe/Vienna", payload={"tenant": 1})
        scheduler.wait(scheduler.trigger("tenant-1"), "10s")
        assert got == [{"tenant": 1}]
        assert scheduler.get_job("tenant-1").zone == "Europe/Vienna"
        assert scheduler.add("tenant-1", "handler", "0 4 * * *").zone == "UTC"
        scheduler.remove("tenant-1")
        with pytest.raises(NotFoundError):
            scheduler.get_job("tenant-1")


def test_a_declared_job_is_not_changed_or_removed_as_data() -> None:
    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: None)
    with scheduler:
        with pytest.raises(ConflictError, match="declared in code"):
            scheduler.add("job", "job", "@daily")
        with pytest.raises(ConflictError, match="declared in code"):
            scheduler.remove("job")
        with pytest.raises(NotFoundError, match="did you mean 'job'"):
            scheduler.add("other", "jobb", "@daily")


def test_an_unknown_name_is_refused_without_naming_another_job() -> None:
    """An application may show the error to one tenant, and the nearest name may be another tenant's."""
    scheduler = made()
    scheduler.every(FAR, name="invoices")(lambda: None)
    with scheduler:
        for ask in (
            scheduler.get_job,
            scheduler.trigger,
            scheduler.pause,
            scheduler.resume,
            scheduler.upcoming,
            scheduler.remove,
        ):
            with pytest.raises(NotFoundError, match="there is no job 'invoice' in namespace 'default'") as refused:
                ask("invoice")
            assert "invoices" not in str(refused.value)
        with pytest.raises(NotFoundError):
            scheduler.get_run("invoices@0123456789abcdef")
        with pytest.raises(NotFoundError):
            scheduler.cancel("nonsense")


def test_around_wraps_every_run_in_every_form() -> None:
    scheduler = made()
    order: list[str] = []

    @scheduler.around
    def generator(run: Run):
        order.append("generator in")
        yield
        order.append("generator out")

    @scheduler.around
    @contextmanager
    def manager(run: Run):
        order.append("manager in")
        yield
        order.append("manager out")

    @scheduler.around
    def call(run: Run, proceed):
        order.append("call in")
        value = proceed()
        order.append("call out")
        return value

    scheduler.every(FAR, name="job")(lambda: order.append("body"))

    @scheduler.every(FAR, name="coroutine")
    async def coroutine() -> str:
        order.append("coroutine")
        return "value"

    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")
        inside = ["generator in", "manager in", "call in", "body", "call out", "manager out", "generator out"]
        assert order == inside
        order.clear()
        assert scheduler.wait(scheduler.trigger("coroutine"), "10s").result == "value"
    assert order[:3] == inside[:3]
    assert order[-2:] == inside[-2:]
    with pytest.raises(InvalidError):
        scheduler.around(lambda: None)


def test_a_wrapper_that_raises_fails_the_run() -> None:
    scheduler = made()

    @scheduler.around
    def broken(run: Run):
        raise RuntimeError("no database")
        yield

    scheduler.every(FAR, name="job")(lambda: None)
    with scheduler:
        assert "no database" in (scheduler.wait(scheduler.trigger("job"), "10s").error or "")


def test_events_reach_their_subscribers_and_a_broken_one_disturbs_nobody() -> None:
    scheduler = made()
    heard: list[str] = []
    scheduler.every(FAR, name="job")(lambda: None)

    @scheduler.on("finished")
    def finished(event: object) -> None:
        heard.append(event.outcome)  # type: ignore[attr-defined]

    @scheduler.on("*")
    def broken(event: object) -> None:
        raise RuntimeError("a broken subscriber")

    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")
    assert heard == ["succeeded"]
    with pytest.raises(InvalidError, match="no event"):
        scheduler.on("lunch")


def test_what_a_subscriber_does_not_want_is_not_made_for_it() -> None:
    events = Events()
    heard: list[Event] = []
    loud = True
    events.on("*", heard.append, wants=lambda name: loud or name == "finished")
    events.emit("started", job="a")
    loud = False
    events.emit("started", job="b")
    events.emit("finished", job="c")
    assert [(event.name, event.job) for event in heard] == [("started", "a"), ("finished", "c")]
    events.off("*", heard.append)
    events.emit("finished", job="d")
    assert len(heard) == 2
    assert events.counts == {"started": 2, "finished": 2}


def test_a_change_of_the_log_level_counts_from_the_next_event(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: None)
    with scheduler:
        caplog.set_level(logging.INFO, "solocron")
        scheduler.wait(scheduler.trigger("job"), "10s")
        assert not [record for record in caplog.records if record.event == "started"]  # type: ignore[attr-defined]
        caplog.set_level(logging.DEBUG, "solocron")
        scheduler.wait(scheduler.trigger("job"), "10s")
        assert [record for record in caplog.records if record.event == "started"]  # type: ignore[attr-defined]


def test_switched_off_nothing_is_registered_or_claimed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLOCRON_ENABLED", "off")
    scheduler = Scheduler("memory://")
    scheduler.every("1s", name="job")(lambda: None)
    with caplog.at_level(logging.INFO, "solocron"), scheduler:
        assert scheduler.jobs() == []
        assert scheduler.tick() == []
    assert caplog.text.count("switched off") == 1, "said once, not with every call"
    monkeypatch.setenv("SOLOCRON_ENABLED", "perhaps")
    with pytest.raises(InvalidError, match="SOLOCRON_ENABLED"):
        Scheduler("memory://")
    monkeypatch.setenv("SOLOCRON_ENABLED", "YES")
    assert Scheduler("memory://").enabled


def test_a_disabled_job_is_not_run_and_not_triggered() -> None:
    scheduler = made()
    scheduler.every("10ms", name="job", enabled=False)(lambda: None)
    with scheduler:
        with pytest.raises(ConflictError, match="disabled"):
            scheduler.trigger("job")
        assert scheduler.get_job("job").next is None


def test_tick_runs_what_is_due_and_answers_it() -> None:
    scheduler = made()
    calls: list[int] = []

    @scheduler.every(FAR, name="job")
    def job(run: Run) -> str:
        calls.append(run.attempt)
        return "ticked"

    assert scheduler.tick() == []
    run = scheduler.trigger("job")
    (done,) = scheduler.tick()
    assert (done.run, done.status, done.result) == (run, "succeeded", "ticked")
    assert scheduler.tick() == []
    assert [node.state for node in scheduler.nodes() if node.state == "live"] == []


def test_tick_runs_more_than_fits_at_once_and_never_waits_for_a_backoff() -> None:
    scheduler = made(max_running=2)
    scheduler.every(FAR, name="many", overlap="queue-all")(lambda: None)

    @scheduler.every(FAR, name="fails", retries=5)
    def fails() -> None:
        raise RuntimeError("later")

    scheduler.tick()
    runs = [scheduler.trigger("many") for _ in range(7)]
    scheduler.trigger("fails")
    done = scheduler.tick()
    assert sorted(view.run for view in done if view.job == "many") == sorted(runs)
    assert [view.status for view in done if view.job == "fails"] == ["failed"]
    assert scheduler.get_job("fails").waiting == 1


def test_a_started_scheduler_does_not_tick() -> None:
    scheduler = made()
    with scheduler, pytest.raises(InvalidError, match="runs a node already"):
        scheduler.tick()


def test_start_and_stop_are_idempotent_and_a_scheduler_can_start_again() -> None:
    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: None)
    for _ in range(2):
        scheduler.start()
        scheduler.start()
        scheduler.wait(scheduler.trigger("job"), "10s")
        assert scheduler.stop()
        assert scheduler.stop()


def test_stop_hands_back_and_tells_whether_anything_was_left() -> None:
    scheduler = made()
    started, release = threading.Event(), threading.Event()

    @scheduler.every(FAR, name="job")
    def job() -> None:
        started.set()
        release.wait(30)

    scheduler.start()
    scheduler.trigger("job")
    assert started.wait(10)
    assert not scheduler.stop(grace=0.05), "a thread that does not end is left, and said to be"
    release.set()


def test_aio_never_blocks_the_callers_loop() -> None:
    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: None)
    store = scheduler.open().store
    entered, release = threading.Event(), threading.Event()
    real = store.read

    def slow(which: object) -> object:
        entered.set()
        release.wait(10)
        return real(which)  # type: ignore[arg-type]

    async def app() -> None:
        store.read = slow  # type: ignore[method-assign]
        waiting = asyncio.create_task(scheduler.aio.jobs())
        await asyncio.to_thread(entered.wait, 10)
        assert not waiting.done()
        turns = 0
        while turns < 100:  # the loop goes on turning while the store does not answer
            await asyncio.sleep(0)
            turns += 1
        release.set()
        await waiting

    asyncio.run(app())


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"lease": "9s", "beat": "4s"}, "three times the beat"),
        ({"lease": "10ms"}, "300ms"),
        ({"max_running": 0}, "max_running"),
        ({"pools": ()}, "pools"),
        ({"pools": "default"}, "did you mean"),
        ({"namespace": "two words"}, "namespace"),
        ({"node": "a b"}, "node"),
        ({"revision": "one"}, "revision"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidError, match=what):
        Scheduler("memory://", **options)  # type: ignore[arg-type]


def test_the_log_and_status_tell_what_happened() -> None:
    scheduler = made(node="alpha")
    scheduler.every(FAR, name="job")(lambda: None)
    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")
        status = scheduler.status()
        assert status.counts == {"succeeded": 1}
        assert [node.node for node in status.nodes] == ["alpha"]
        assert status.running == ()
        (view,) = scheduler.runs("job", status="succeeded")
        assert view.started_at is not None
        assert view.claimed_at is not None
        assert view.finished_at is not None
        assert view.claimed_at <= view.finished_at
        with pytest.raises(InvalidError, match="status"):
            scheduler.runs(status="happy")
        with pytest.raises(InvalidError, match="limit"):
            scheduler.runs(limit=0)


def test_pools_route_jobs_to_the_nodes_meant_for_them() -> None:
    world = "memory://pools-test"
    api = Scheduler(world, enabled=True, lease="3s", pools=("api",), node="api")
    gpu = Scheduler(world, enabled=True, lease="3s", pools=("gpu",), node="gpu")
    job = every(FAR, name="train", pool="gpu")(lambda run: run.node)
    for scheduler in (api, gpu):
        scheduler.discover(job)
    with api, gpu:
        assert {api.wait(api.trigger("train"), "10s").node for _ in range(5)} == {"gpu"}


def test_a_scheduled_job_runs_at_its_slots() -> None:
    scheduler = made()
    ran: list[datetime] = []
    enough = threading.Event()

    @scheduler.every("100ms", name="job")
    def job(run: Run) -> None:
        assert datetime.now(UTC) >= run.slot
        ran.append(run.slot)
        if len(ran) == 5:
            enough.set()

    with scheduler:
        assert enough.wait(20)
    assert all(later - earlier >= timedelta(milliseconds=100) for earlier, later in pairwise(ran))


@pytest.mark.invariant("I24: an ended body is on record within two leases, or its session is given up")
def test_a_result_that_raises_when_it_is_looked_at_costs_the_result_and_not_the_outcome() -> None:
    """The thread of the body died of it, and the run was running forever."""

    class Moody(dict[str, int]):
        def items(self) -> Any:
            raise MemoryError

    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: Moody(one=1))
    with scheduler:
        run = scheduler.wait(scheduler.trigger("job"), "10s")
    assert (run.status, run.result) == ("succeeded", None)
    assert run.reason == "its result could not be written down (MemoryError)"


def test_a_claim_whose_body_cannot_be_made_goes_back_and_is_claimed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stayed claimed under a session that was renewed, and its job never ran again."""
    scheduler = made()
    scheduler.every(FAR, name="job")(lambda: None)
    real, left = Execution.__init__, [MemoryError(), MemoryError()]

    def make(self: Execution, *args: Any) -> None:
        if left:
            raise left.pop()
        real(self, *args)

    monkeypatch.setattr(Execution, "__init__", make)
    with scheduler:
        run = scheduler.wait(scheduler.trigger("job"), "10s")
    assert (run.status, left) == ("succeeded", []), "at the cost of no retry"
    assert scheduler.events.counts["handed back"] == 2
