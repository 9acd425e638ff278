"""`run_now` and `tick(inline=True)`: bodies in the caller's thread or loop, with a real run, fence and record."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from contextvars import ContextVar
from datetime import UTC, datetime
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
    StaleFence,
    StoreUnavailable,
    TimedOut,
    current_run,
)
from solocron.model.documents.job import Hold
from solocron.testing.clock import ManualClock
from solocron.testing.fleet import wait_until

tenant: ContextVar[str] = ContextVar("tenant", default="none")


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler("memory://", enabled=True)
    yield made
    made.stop()


def test_the_body_runs_in_the_callers_thread_and_returns_the_object_itself(scheduler: Scheduler) -> None:
    kept = object()

    @scheduler.every("1d", retries=2)
    def job(run: Run) -> tuple[Any, ...]:
        return kept, threading.get_ident(), run.payload, run.attempt, current_run() is run

    assert scheduler.run_now(job, {"n": 1}) == (kept, threading.get_ident(), {"n": 1}, 1, True)
    (view,) = scheduler.runs("job")
    assert (view.status, view.origin, view.fence > 0) == ("succeeded", "trigger", True)
    assert scheduler.nodes() == [], "its session is closed"


def test_what_the_body_raises_is_raised_as_it_is_and_not_retried(scheduler: Scheduler) -> None:
    error = KeyError("no such customer")

    @scheduler.every("1d", retries=5)
    def job() -> None:
        raise error

    with pytest.raises(KeyError) as raised:
        scheduler.run_now("job")
    assert raised.value is error
    assert [(view.status, view.attempt) for view in scheduler.runs("job")] == [("failed", 1)]
    assert scheduler.get_job("job").waiting == 0, "the caller decides whether to try again"


def test_the_body_sees_the_callers_open_transaction_and_guards_it(scheduler: Scheduler) -> None:
    with closing(sqlite3.connect(":memory:")) as books:
        books.execute("CREATE TABLE invoices (id INTEGER)")
        books.execute("INSERT INTO invoices VALUES (1)")  # not committed: only this connection, on this thread, sees it

        @scheduler.every("1d")
        def bill(run: Run) -> list[int]:
            run.guard(books)
            return run.claim_items(books, "invoices", [row[0] for row in books.execute("SELECT id FROM invoices")])

        assert scheduler.run_now(bill) == [1]
        assert scheduler.run_now(bill) == [], "claimed before, in this transaction"
        (fence,) = books.execute("SELECT fence FROM solocron_guards").fetchone()
        assert fence == scheduler.runs("bill")[0].fence
        books.rollback()
        assert books.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE 'solocron%'").fetchone() == (0,)


def test_keys_and_steps_act_as_in_production(scheduler: Scheduler) -> None:
    mails: list[str] = []

    @scheduler.every("1d")
    def job(run: Run) -> Any:
        with run.once("receipt:42") as first:
            if first:
                mails.append("sent")
        return run.step("charge").call(lambda: len(mails))

    assert [scheduler.run_now(job), scheduler.run_now(job)] == [1, 1]
    assert mails == ["sent"]


def test_wrappers_are_around_it(scheduler: Scheduler) -> None:
    seen: list[str] = []

    @scheduler.around
    def session(run: Run) -> Iterator[None]:
        seen.append("begin")
        yield
        seen.append("end")

    scheduler.every("1d", name="job")(lambda: seen.append("body"))
    scheduler.run_now("job")
    assert seen == ["begin", "body", "end"]


def test_a_coroutine_runs_on_the_callers_loop_with_its_variables(scheduler: Scheduler) -> None:
    @scheduler.every("1d")
    async def job(run: AsyncRun) -> tuple[Any, ...]:
        await asyncio.sleep(0)
        return asyncio.get_running_loop(), tenant.get(), run.payload

    async def test() -> None:
        tenant.set("acme")
        assert await scheduler.aio.run_now(job, 5) == (asyncio.get_running_loop(), "acme", 5)

    asyncio.run(test())
    loop, _, _ = scheduler.run_now(job)
    assert loop.is_closed(), "without a loop of the caller's it gets one for this call, on the caller's thread"


def test_a_plain_function_runs_on_the_thread_of_the_loop(scheduler: Scheduler) -> None:
    scheduler.every("1d", name="job")(lambda: threading.get_ident())

    async def test() -> None:
        assert await scheduler.aio.run_now("job") == threading.get_ident()

    asyncio.run(test())


def test_a_caller_that_is_cancelled_takes_its_body_with_it(scheduler: Scheduler) -> None:
    begun = threading.Event()

    @scheduler.every("1d", retries=3)
    async def job() -> None:
        begun.set()
        await asyncio.sleep(60)

    async def test() -> None:
        calling = asyncio.create_task(scheduler.aio.run_now(job))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    asyncio.run(test())
    assert [view.status for view in scheduler.runs("job")] == ["cancelled"]
    assert scheduler.get_job("job").waiting == 0


def test_a_coroutine_past_its_timeout_is_stopped(scheduler: Scheduler) -> None:
    @scheduler.every("1d", timeout="20ms")
    async def job() -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimedOut, match="still running at its deadline"):
        scheduler.run_now(job)
    assert scheduler.runs("job")[0].status == "timed_out"


def test_a_function_past_its_timeout_is_not_taken_for_a_success(scheduler: Scheduler) -> None:
    @scheduler.every("1d", timeout="10ms")
    def job(run: Run) -> str:
        wait_until(lambda: run.cancelled, within=30, what="a stop")
        return "done all the same"

    with pytest.raises(ConflictError, match="its function returned, and the run timed_out: still running"):
        scheduler.run_now(job)


def test_it_is_refused_while_a_run_of_the_job_is_active(scheduler: Scheduler) -> None:
    @scheduler.every("1d")
    def job() -> None:
        scheduler.run_now("job")

    with pytest.raises(ConflictError, match="job runs at this moment, as often as its overlap= allows, so it was not"):
        scheduler.run_now(job)
    assert [view.status for view in scheduler.runs("job")] == ["failed"], "the inner one left nothing"


def test_it_keeps_to_the_limit_of_the_job(scheduler: Scheduler) -> None:
    @scheduler.every("1d", limit="db:1")
    def outer() -> None:
        scheduler.run_now("inner")

    @scheduler.every("1d", limit="db:1")
    def inner() -> str:
        return "ran"

    with pytest.raises(ConflictError, match="every permit of the limit 'db:1' is taken"):
        scheduler.run_now(outer)
    assert scheduler.run_now(inner) == "ran"


def test_it_works_beside_the_running_node_and_where_scheduling_is_off() -> None:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.every("1d", name="job")(lambda: threading.get_ident())
    with scheduler:
        assert scheduler.run_now("job") == threading.get_ident()
        assert len(scheduler.nodes()) == 1
    off = Scheduler("memory://", enabled=False)
    off.every("1d", name="job")(lambda: "ran")
    assert off.run_now("job") == "ran"


def test_one_shard_is_run_by_its_name(scheduler: Scheduler) -> None:
    @scheduler.every("1d", shards=("eu", "us"))
    def job(run: Run) -> Any:
        return run.shard, run.shards

    assert scheduler.run_now(job, shard="us") == ("us", ("eu", "us"))
    with pytest.raises(InvalidError, match="job has shards, so it was not run; name one of them with shard="):
        scheduler.run_now(job)
    with pytest.raises(InvalidError, match="job has no shard 'asia', so it was not run"):
        scheduler.run_now(job, shard="asia")


def test_a_claim_whose_reply_was_lost_is_not_run_later(scheduler: Scheduler) -> None:
    """The caller was told that nothing was run; the claim had landed, and the node found it and handed it back."""
    ran: list[str] = []
    scheduler.every("1000d", name="job", retries=3)(lambda: ran.append("ran"))
    store = scheduler.open().store
    real = store.update

    def update(which: Any, change: Any, **options: Any) -> Any:
        answer = real(which, change, **options)
        if any(isinstance(result.answer, Hold) for result in answer.results):
            store.update = real  # type: ignore[method-assign]
            raise StoreUnavailable("the connection broke")
        return answer

    store.update = update  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        scheduler.run_now("job")
    assert scheduler.tick() == []
    assert ran == []
    assert (scheduler.get_job("job").waiting, [view.status for view in scheduler.runs("job")]) == (0, ["lost"])


def test_mistakes_are_one_clear_error_and_leave_nothing(scheduler: Scheduler) -> None:
    scheduler.every("1d", name="off", enabled=False)(lambda: None)
    scheduler.every("1d", name="job")(lambda: None)
    with pytest.raises(NotFoundError, match="there is no job 'jbo'"):
        scheduler.run_now("jbo")
    with pytest.raises(InvalidError, match="is not declared as a job of this scheduler"):
        scheduler.run_now(print)
    with pytest.raises(ConflictError, match="off is disabled, so it was not run"):
        scheduler.run_now("off")
    with pytest.raises(InvalidError, match="the payload of job is not JSON"):
        scheduler.run_now("job", object())
    assert scheduler.runs() == []


def test_a_job_whose_function_is_elsewhere_is_refused() -> None:
    clock = ManualClock()
    clock.scheduler().register(print, name="handler")
    there = clock.scheduler()
    there.register(lambda: None, name="handler")
    there.add("report", "handler", "0 7 * * *")
    with pytest.raises(NotFoundError, match="calls the handler 'handler', which this program does not have"):
        clock.scheduler().run_now("report")
    assert there.get_job("report").waiting == 0


def test_a_coroutine_under_a_running_loop_names_the_awaited_form(scheduler: Scheduler) -> None:
    @scheduler.every("1d")
    async def job() -> None: ...

    async def test() -> None:
        with pytest.raises(InvalidError, match=r"write `await scheduler.aio.run_now"):
            scheduler.run_now(job)
        with pytest.raises(InvalidError, match=r"write `await scheduler.aio.tick\(inline=True\)`"):
            scheduler.tick(inline=True)
        scheduler.register(job, name="handler")
        scheduler.add("report", "handler", "@daily")
        with pytest.raises(InvalidError, match=r"report is a coroutine and an event loop runs here"):
            scheduler.run_now("report")

    asyncio.run(test())
    assert scheduler.runs() == []


def test_a_function_that_wants_a_loop_fails_where_one_runs() -> None:
    """A tick cannot know beforehand that a job added as data wants one: its run fails, and the tick goes on."""
    clock = ManualClock()
    scheduler = clock.scheduler()
    scheduler.register(lambda: None, name="handler")
    scheduler.add("report", "handler", "@hourly", run_in="loop")

    async def test() -> None:
        clock.advance("1h")
        (view,) = scheduler.tick(inline=True)
        assert view.status == "failed"
        assert "an event loop runs on this thread" in str(view.error)

    asyncio.run(test())


# --- tick(inline=True) -----------------------------------------------------------------------------------------------


def test_a_tick_runs_what_is_due_in_the_callers_thread_one_after_the_other() -> None:
    clock, ran, inside = ManualClock(), list[tuple[str, int]](), list[str]()
    scheduler = clock.scheduler()
    for name in ("a", "b", "c"):

        def body(run: Run) -> None:
            assert not inside, "one after the other"
            inside.append(run.job)
            ran.append((run.job, threading.get_ident()))
            inside.clear()

        scheduler.every("1h", name=name)(body)

    @scheduler.every("1h")
    async def coroutine() -> None:
        ran.append(("coroutine", threading.get_ident()))

    assert scheduler.tick(inline=True) == []
    clock.advance("1h")
    views = scheduler.tick(inline=True)
    assert sorted(ran) == [(name, threading.get_ident()) for name in ("a", "b", "c", "coroutine")]
    assert [view.status for view in views] == ["succeeded"] * 4


def test_a_tick_carries_out_on_the_callers_loop() -> None:
    clock, seen = ManualClock(), list[Any]()
    scheduler = clock.scheduler()

    @scheduler.every("1h")
    async def coroutine() -> None:
        seen.append((asyncio.get_running_loop(), tenant.get()))

    @scheduler.every("1h")
    def function() -> None:
        seen.append((threading.get_ident(), tenant.get()))

    async def test() -> None:
        tenant.set("acme")
        await scheduler.aio.tick(inline=True)
        clock.advance("1h")
        assert [view.status for view in await scheduler.aio.tick(inline=True)] == ["succeeded"] * 2
        assert set(seen) == {(asyncio.get_running_loop(), "acme"), (threading.get_ident(), "acme")}

    asyncio.run(test())


def test_a_failure_in_a_tick_is_a_view_and_a_retry_waits_for_its_backoff() -> None:
    clock = ManualClock()
    scheduler = clock.scheduler()

    @scheduler.every("1h", retries=1)
    def job(run: Run) -> int:
        return 1 // (run.attempt - 1)

    scheduler.tick(inline=True)
    clock.advance("1h")
    assert [view.status for view in scheduler.tick(inline=True)] == ["failed"]
    clock.advance("2s")
    assert [(view.status, view.attempt) for view in scheduler.tick(inline=True)] == [("succeeded", 2)]


def test_ctrl_c_in_a_body_ends_the_tick_and_the_run_is_on_record() -> None:
    clock = ManualClock()
    scheduler = clock.scheduler()

    @scheduler.every("1h")
    def job() -> None:
        raise KeyboardInterrupt

    scheduler.tick(inline=True)
    clock.advance("1h")
    with pytest.raises(KeyboardInterrupt):
        scheduler.tick(inline=True)
    assert [view.status for view in scheduler.runs("job")] == ["failed"]


# --- a manual clock and fences ---------------------------------------------------------------------------------------


def test_a_clock_that_is_behind_a_fence_is_named(tmp_path: Path) -> None:
    """It used to say that another node had taken over, which sends its reader after a node that does not exist."""
    with closing(sqlite3.connect(tmp_path / "books.db")) as books:
        for start, stale in ((datetime(2027, 1, 1, tzinfo=UTC), False), (datetime(2026, 1, 1, tzinfo=UTC), True)):
            scheduler = ManualClock(start).scheduler()

            @scheduler.every("1h")
            def bill(run: Run) -> None:
                run.guard(books)
                books.commit()

            @scheduler.every("1h")
            async def bill_awaited(run: AsyncRun) -> None:
                await run.guard(books)
                books.commit()

            for job in (bill, bill_awaited):
                if not stale:
                    scheduler.run_now(job)
                    continue
                with pytest.raises(StaleFence) as raised:
                    scheduler.run_now(job)
                books.rollback()
                assert "the clock of the store reads 2026-01-01T00:00:00Z: it is behind" in str(raised.value)
                assert "If it is a ManualClock, start it after that time" in str(raised.value)
                assert "2027-01-01T00:00:00" in str(raised.value)
