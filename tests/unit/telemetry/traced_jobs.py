"""What a process of its own imports: its tracing, and a function with a span, a step and a key."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from solocron import Run

EXPORTED = "TRACED_JOBS_EXPORTED"
"""The variable that names the file to which spans are exported."""


def boot() -> None:
    """Export spans in batches, the last one when the process ends, as the applications do."""
    file = Path(os.environ[EXPORTED]).open("w")  # noqa: SIM115 - it is open for as long as the process lives
    provider = TracerProvider()
    exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


def bill(run: Run) -> str:
    """Return the trace in which it is called."""
    with trace.get_tracer("shop").start_as_current_span("inner") as inner:
        run.step("charge").call(lambda: "paid")
        return f"{inner.get_span_context().trace_id:032x}"
