"""Spans of runs with the real SDK and an exporter in memory: roots, links, and a trace that crosses a queue."""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import propagate, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from solocron import (
    AsyncRun,
    Backoff,
    ConfigurationError,
    Event,
    Message,
    MissingExtra,
    Run,
    RunFilter,
    Scheduler,
    cron,
)
from solocron.telemetry.tracing import Tracing
from solocron.testing.clock import ManualClock
from tests.unit.telemetry import traced_jobs


class Traces:
    """A provider, and the spans that have ended, by name."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracer = self.provider.get_tracer("test")

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._kept.get_finished_spans() if span.name == name]


@pytest.fixture
def traces() -> Traces:
    return Traces()


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_an_attempt_is_a_trace_of_its_own_and_current_in_its_function(traces: Traces) -> None:
    scheduler, seen = Scheduler("memory://", enabled=True, node="n"), list[str]()
    scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))

    @scheduler.every("365d", name="job", retries=1, backoff=Backoff(first="1ms"))
    def job(run: Run) -> None:
        record = logging.makeLogRecord({})
        RunFilter().filter(record)
        seen.append(f"{record.trace_id} {record.span_id}")
        if run.attempt == 1:
            raise ValueError("not yet")

    with scheduler:
        run = scheduler.trigger("job")
        view = scheduler.wait(run, "10s")
    first, second = traces.spans("run job")
    assert [f"{span.context.trace_id:032x} {span.context.span_id:016x}" for span in (first, second)] == seen
    assert (first.parent, second.parent) == (None, None)
    assert [facts(span)["solocron.outcome"] for span in (first, second)] == ["failed", "succeeded"]
    assert [span.status.status_code for span in (first, second)] == [StatusCode.ERROR, StatusCode.UNSET]
    assert first.status.description == "ValueError: not yet"
    assert [event.name for event in first.events] == ["exception"]
    wanted = {
        "solocron.job.name": "job",
        "solocron.attempt": 1,
        "solocron.run.id": run,
        "solocron.node": "n",
        "solocron.namespace": "default",
        "solocron.origin": "trigger",
        "faas.trigger": "other",
        "code.function.name": scheduler.get_job("job").handler,
        "error.type": "ValueError",
    }
    assert wanted.items() <= facts(first).items()
    assert (facts(second)["solocron.fence"], facts(second)["solocron.slot"]) == (view.fence, view.slot.isoformat())
    assert float(str(facts(second)["solocron.lateness"])) >= 0


def test_a_coroutine_has_the_span_of_its_run_too(traces: Traces) -> None:
    scheduler, seen = Scheduler("memory://", enabled=True), list[int]()
    scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))

    @scheduler.every("365d", name="job")
    async def job() -> None:
        with traces.tracer.start_as_current_span("inner"):
            seen.append(trace.get_current_span().get_span_context().trace_id)

    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")
    (span,), (inner,) = traces.spans("run job"), traces.spans("inner")
    assert seen == [span.context.trace_id]
    assert inner.parent is not None
    assert inner.parent.span_id == span.context.span_id


def test_a_process_of_its_own_continues_the_trace(
    traces: Traces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its spans are exported there, the last batch when the process ends."""
    monkeypatch.setenv(traced_jobs.EXPORTED, str(tmp_path / "exported"))
    scheduler = Scheduler(f"sqlite:///{tmp_path}/jobs.db", enabled=True)
    scheduler.setup("tests.unit.telemetry.traced_jobs:boot")
    scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))
    scheduler.every("365d", name="bill", run_in="process")(traced_jobs.bill)
    with scheduler:
        view = scheduler.wait(scheduler.trigger("bill"), "60s")
    (run,) = traces.spans("run bill")
    assert view.result == f"{run.context.trace_id:032x}", view.error
    exported = [json.loads(line) for line in (tmp_path / "exported").read_text().splitlines()]
    inner, step = (next(span for span in exported if span["name"] == name) for name in ("inner", "step charge"))
    assert {span["context"]["trace_id"] for span in exported} == {f"0x{view.result}"}
    assert inner["parent_id"] == f"0x{run.context.span_id:016x}"
    assert step["parent_id"] == inner["context"]["span_id"]


def test_a_request_its_hand_over_and_its_run_are_one_linked_trace(traces: Traces, tmp_path: Path) -> None:
    queue, logged = list[dict[str, Any]](), list[str]()

    def body() -> None:
        record = logging.makeLogRecord({})
        RunFilter().filter(record)
        logged.append(record.trace_id)

    class Queue:
        follows = True

        def publish(self, message: Message) -> None:
            assert message.headers["traceparent"] == message.to_json()["traceparent"]
            queue.append(message.to_json())

    schedulers = [Scheduler(f"sqlite:///{tmp_path}/jobs.db", enabled=True, lease="3s") for _ in range(2)]
    for scheduler in schedulers:
        scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))
        scheduler.carrier("queue", Queue())
        scheduler.every("365d", name="job", run_in="queue")(body)
    node, worker = schedulers
    node.tick()
    with traces.tracer.start_as_current_span("GET /bill"):
        node.trigger("job")
    node.tick()
    worker.carry_out(queue[0])
    for scheduler in schedulers:
        scheduler.stop("1s")
    (request,), (publish,), (run,) = traces.spans("GET /bill"), traces.spans("publish queue"), traces.spans("run job")
    assert (publish.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert run.parent is not None
    assert (run.parent.span_id, run.context.trace_id) == (publish.context.span_id, publish.context.trace_id)
    assert logged == [f"{publish.context.trace_id:032x}"], "lines of the body carry the trace"
    for span in (publish, run):
        assert [link.context.span_id for link in span.links] == [request.context.span_id]
    assert facts(publish)["messaging.message.id"] == facts(run)["messaging.message.id"] == queue[0]["id"]
    assert [facts(span)["messaging.operation.type"] for span in (publish, run)] == ["send", "process"]
    assert [facts(span)["messaging.destination.name"] for span in (publish, run)] == ["queue", "queue"]


@pytest.mark.parametrize("theirs", ["same trace", "another trace", "no publication"])
def test_a_run_is_inside_the_span_that_an_instrumentation_of_its_queue_has_made(
    theirs: str, traces: Traces, tmp_path: Path
) -> None:
    """Celery's makes one for each message, as a child of what was current when the message was sent."""
    queue = list[dict[str, Any]]()

    class Queue:
        follows = True

        def publish(self, message: Message) -> None:
            queue.append(message.to_json())

    node, worker = (Scheduler(f"sqlite:///{tmp_path}/jobs.db", enabled=True, lease="3s") for _ in range(2))
    for scheduler in (node, worker):
        if scheduler is worker or theirs != "no publication":
            scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))
        scheduler.carrier("queue", Queue())
        scheduler.every("365d", name="job", run_in="queue")(lambda: None)
    node.tick()
    node.trigger("job")
    node.tick()
    sent = propagate.extract(queue[0]) if theirs == "same trace" else None
    with traces.tracer.start_as_current_span("run/solocron.run", context=sent) as outer:
        worker.carry_out(queue[0])
    for scheduler in (node, worker):
        scheduler.stop("1s")
    (run,) = traces.spans("run job")
    assert run.parent is not None
    if theirs == "another trace":
        (outer,) = traces.spans("publish queue")
    assert run.parent.span_id == outer.get_span_context().span_id


def test_steps_and_keys_are_spans_below_that_of_their_run(traces: Traces) -> None:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))

    def charge() -> str:
        with traces.tracer.start_as_current_span("POST /charges"):
            return "paid"

    @scheduler.every("365d", name="bill", retries=1, backoff=Backoff(first="1ms"))
    def bill(run: Run) -> None:
        run.step("charge").call(charge)
        with run.once("mail") as claim:
            if claim and run.attempt == 1:
                raise ValueError("no mail yet")

    with scheduler:
        run = scheduler.trigger("bill")
        assert scheduler.wait(run, "10s").status == "succeeded"
    runs, steps, keys = traces.spans("run bill"), traces.spans("step charge"), traces.spans("once mail")
    parents = [span.context.span_id for span in runs]
    for spans in (steps, keys):
        assert [span.parent and span.parent.span_id for span in spans] == parents
        assert all(span.kind is SpanKind.INTERNAL for span in spans)
    (inner,) = traces.spans("POST /charges")
    assert inner.parent is not None
    assert inner.parent.span_id == steps[0].context.span_id, "what the step does is below it"
    assert [facts(span) for span in steps] == [
        {"solocron.step.name": "charge", "solocron.step.saved": saved} for saved in (False, True)
    ]
    assert [facts(span) for span in keys] == [{"solocron.key": "mail", "solocron.key.first": True}] * 2
    assert [span.status.status_code for span in keys] == [StatusCode.ERROR, StatusCode.UNSET]
    assert [event.name for event in keys[0].events] == ["exception"]
    assert {facts(span)["solocron.run.key"] for span in runs} == {scheduler.get_run(run).key}


def test_steps_and_keys_of_a_coroutine_are_spans_too(traces: Traces, tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path}/jobs.db", enabled=True)
    scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))
    own = sqlite3.connect(tmp_path / "own.db", check_same_thread=False)

    async def charge() -> None:
        raise RuntimeError("declined")

    @scheduler.every("365d", name="bill", retries=0)
    async def bill(run: AsyncRun) -> None:
        async with run.once("mail"):
            pass
        async with run.once("row", connection=own):
            await run.step("charge").call(charge)

    with scheduler:
        assert scheduler.wait(scheduler.trigger("bill"), "10s").status == "failed"
    own.close()
    (run,), (mail,), (row,) = (traces.spans(name) for name in ("run bill", "once mail", "once row"))
    (step,) = traces.spans("step charge")
    wanted = [(mail, run), (row, run), (step, row)]
    assert [span.parent and span.parent.span_id for span, _ in wanted] == [above.context.span_id for _, above in wanted]
    assert step.status.status_code is row.status.status_code is StatusCode.ERROR


def test_a_rerun_and_a_backfill_are_linked_to_their_request_and_have_the_key_of_the_first_run(traces: Traces) -> None:
    clock = ManualClock(datetime(2027, 3, 1, 12, tzinfo=UTC))

    @cron("0 * * * *", name="job", catch_up="all")
    def job() -> None: ...

    scheduler = clock.scheduler(job)
    scheduler.otel(traces.provider, MeterProvider(shutdown_on_exit=False))
    scheduler.tick()
    clock.advance("2h30m")
    first, second = (view.slot for view in scheduler.tick())
    with traces.tracer.start_as_current_span("POST /rerun"):
        scheduler.rerun("job", first)
    with traces.tracer.start_as_current_span("POST /backfill"):
        scheduler.backfill("job", second, second + timedelta(minutes=30))
    assert len(scheduler.tick()) == 2
    runs = {facts(span)["solocron.origin"]: span for span in traces.spans("run job")}
    for origin, request in (("rerun", "POST /rerun"), ("backfill", "POST /backfill")):
        (asked,) = traces.spans(request)
        assert [link.context.span_id for link in runs[origin].links] == [asked.context.span_id]
        assert runs[origin].parent is None
        key = facts(runs[origin])["solocron.run.key"]
        (first,) = [
            span for span in traces.spans("run job")
            if facts(span)["solocron.run.key"] == key and facts(span)["solocron.origin"] == "schedule"
        ]  # fmt: skip
        assert facts(first)["solocron.slot"] == facts(runs[origin])["solocron.slot"]
        assert (facts(first)["faas.trigger"], facts(runs[origin])["faas.trigger"]) == ("timer", "other")
        assert (facts(first)["faas.cron"], facts(runs[origin]).get("faas.cron")) == ("0 * * * *", None)


def test_the_node_that_took_over_ends_what_a_dead_one_could_not(traces: Traces) -> None:
    tracing = Tracing(
        traces.provider, namespace=lambda: "default", expression_of=lambda job: None, carrier_of=lambda job: None
    )
    tracing(Event("taken over", {"job": "j", "runs": ({"run": "j@1", "attempt": 2, "node": "dead", "final": True},)}))
    (span,) = traces.spans("run j")
    assert {"solocron.outcome": "lost", "solocron.node": "dead", "solocron.attempt": 2}.items() <= facts(span).items()
    assert span.status.status_code is StatusCode.ERROR


def test_instruments_count_what_the_node_did(traces: Traces) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    scheduler = Scheduler("memory://", enabled=True, node="n")
    scheduler.otel(traces.provider, provider)
    scheduler.every("365d", name="job")(lambda: None)
    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")
        data = reader.get_metrics_data()
    assert data is not None
    found = {one.name: one for part in data.resource_metrics for scope in part.scope_metrics for one in scope.metrics}
    (point,) = found["solocron.runs"].data.data_points
    assert point.value == 1  # type: ignore[union-attr]
    assert dict(point.attributes or {}) == {
        "solocron.namespace": "default", "solocron.node": "n", "solocron.job.name": "job",
        "solocron.outcome": "succeeded",
    }  # fmt: skip
    assert found["solocron.run.duration"].unit == "s"
    provider.shutdown()


def test_a_second_call_and_a_missing_package_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.otel()
    with pytest.raises(ConfigurationError, match="was called before"):
        scheduler.otel()
    for name in [name for name in sys.modules if name.startswith(("opentelemetry", "solocron.telemetry.tracing"))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"solocron\[otel\]"):
        Scheduler("memory://", enabled=True).otel()
