"""Log lines of runs: what failed and why, the run's facts on every line inside one, an outage in two lines."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from solocron import AsyncRun, RetryDecision, Run, RunFilter, Scheduler, current_run
from solocron.events import Event
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.scheduler.hooks import core_of
from solocron.stores.contract import Named
from solocron.telemetry.log import EventLog
from solocron.telemetry.records import JsonFormatter, TextFormatter

shop = logging.getLogger("shop")


class Lines(logging.Handler):
    """Keeps every record, and what both formatters make of it."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(RunFilter())
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, event: str) -> list[logging.LogRecord]:
        return [record for record in self.records if getattr(record, "event", None) == event]

    def text(self) -> str:
        return "\n".join(TextFormatter().format(record) for record in self.records)


@pytest.fixture
def lines() -> Iterator[Lines]:
    root, handler = logging.getLogger(), Lines()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


def test_a_run_that_failed_says_so_first_with_its_traceback_once(lines: Lines) -> None:
    scheduler = Scheduler("memory://")

    @scheduler.every("1000d")
    def bill() -> None:
        raise ValueError("no paper")

    with scheduler:
        run = scheduler.trigger("bill")
        scheduler.wait(run, "10s")
    (record,) = lines.of("finished")
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith(f"run failed: ValueError: no paper [job=bill run={run} slot=")
    assert "error=" not in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)
    text = TextFormatter().format(record)
    assert text.count("Traceback") == 1
    said = json.loads(JsonFormatter().format(record))
    assert said["message"] == "run failed: ValueError: no paper"
    assert (said["job"], said["outcome"], said["error"]) == ("bill", "failed", "ValueError: no paper")
    assert said["exception"].endswith("ValueError: no paper")
    assert "[job=" not in JsonFormatter().format(record)


def test_a_run_that_succeeded_or_took_too_long_says_that(lines: Lines) -> None:
    scheduler = Scheduler("memory://")
    scheduler.every("1000d", name="well")(lambda: None)

    @scheduler.every("1000d", timeout="50ms")
    def slow(run: Run) -> None:
        while True:
            run.check()

    with scheduler:
        for job in ("well", "slow"):
            scheduler.wait(scheduler.trigger(job), "10s")
    well, slow_ = [record.getMessage() for record in lines.of("finished")]
    assert well.startswith("run succeeded [job=well ")
    assert slow_.startswith("run timed out: still running at its deadline [job=slow ")


def test_every_line_inside_a_run_carries_its_facts_and_none_outside(lines: Lines) -> None:
    scheduler = Scheduler("memory://", node="here")

    def deep() -> None:
        shop.info("working")

    @scheduler.every("1000d")
    def on_a_thread() -> None:
        deep()
        copied = threading.Thread(target=contextvars.copy_context().run, args=(deep,))
        copied.start()
        copied.join()

    @scheduler.every("1000d")
    async def on_a_loop(run: AsyncRun) -> None:
        assert current_run() is run
        await asyncio.sleep(0)
        await asyncio.to_thread(deep)

    with scheduler:
        deep()
        runs = [scheduler.trigger(job) for job in ("on_a_thread", "on_a_loop")]
        for run in runs:
            assert scheduler.wait(run, "10s").status == "succeeded", scheduler.get_run(run).error
        assert current_run() is None
    said = [record for record in lines.records if record.name == "shop"]
    assert not hasattr(said[0], "run")
    assert sorted(record.run for record in said[1:]) == sorted([runs[0], runs[0], runs[1]])  # type: ignore[attr-defined]
    assert {(record.attempt, record.node) for record in said[1:]} == {(1, "here")}  # type: ignore[attr-defined]
    assert f"shop: working [run={runs[1]} attempt=1]" in lines.text()
    assert json.loads(JsonFormatter().format(said[1]))["job"] == "on_a_thread"


@pytest.mark.parametrize("asynchronous", [False, True], ids=["on a thread", "on a loop"])
def test_lines_of_an_on_retry_carry_the_facts_of_its_run(lines: Lines, asynchronous: bool) -> None:
    """It decides about money after a crash: its lines are the ones that are looked for."""
    scheduler, found = Scheduler("memory://"), list[object]()

    def ask(run: Run) -> RetryDecision:
        shop.info("asking the bank")
        found.append(current_run())
        return RetryDecision.repeat("the bank does not have it")

    async def ask_later(run: AsyncRun) -> RetryDecision:
        await asyncio.sleep(0)
        shop.info("asking the bank")
        found.append(current_run())
        return RetryDecision.repeat("the bank does not have it")

    hook = ask_later if asynchronous else ask
    scheduler.every("1000d", name="pay", retries=1, on_retry=hook)(lambda: shop.info("paying"))

    def crashed(doc: Job, now: int) -> Change:
        (waits,) = doc.waiting_runs
        return Change(replace(doc, waiting_runs=(replace(waits, attempt=2, tries=1, crashed=True),)))

    scheduler.tick()
    run = scheduler.trigger("pay")
    core_of(scheduler).store.update(Named(Kind.JOB, ("pay",)), crashed)
    scheduler.tick()
    said = [record for record in lines.records if record.name == "shop"]
    assert [(record.getMessage(), getattr(record, "run", None)) for record in said] == [
        ("asking the bank", run),
        ("paying", run),
    ]
    assert [getattr(one, "id", None) for one in found] == [run]
    assert current_run() is None


def test_a_thread_is_in_no_run_after_its_body(lines: Lines) -> None:
    """Threads are used again: what they did before must not name a run that is over."""
    scheduler, found = Scheduler("memory://"), list[object]()
    scheduler.every("1000d", name="job")(lambda: None)
    scheduler.on("finished", lambda event: found.append(current_run()))
    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")
    assert found == [None]


def test_an_outage_is_one_line_for_each_cause_and_a_count(lines: Lines) -> None:
    write = EventLog()

    def tell(name: str, **facts: object) -> None:
        if write.wants(name):
            write(Event(name, facts))

    for port in range(50_000, 50_040):
        for loop in ("keeper", "claimer"):
            tell("store error", loop=loop, error=f"db cannot be reached (from port {port})", failures=1)
        tell(
            "renewal failed", node="n", error=f"db cannot be reached (from port {port})", failures=1, trusted_for_s=1.0
        )
    tell("store error", loop="keeper", error="db refused the connection", failures=40)
    assert len(lines.records) == 2
    tell("session renewed", node="n", session="s")
    assert lines.records[-1].getMessage() == "the store answers again [errors_not_logged=119]"
    tell("session renewed", node="n", session="s")
    assert len(lines.records) == 3
    tell("store error", loop="keeper", error="db cannot be reached (from port 1)", failures=1)
    assert len(lines.records) == 4, "a new outage"
    tell("store back", node="n", after=1)
    assert [record.levelname for record in lines.records[4:]] == ["INFO"], "nothing was left unsaid"
