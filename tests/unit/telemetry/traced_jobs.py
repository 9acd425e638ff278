"""A function that a process of its own imports."""

from __future__ import annotations

from opentelemetry import trace


def where() -> str:
    """Return the trace in which it is called."""
    return f"{trace.get_current_span().get_span_context().trace_id:032x}"
