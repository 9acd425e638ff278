"""The seam for spans inside a body: steps and keys announce themselves here, and tracing, where there is any, listens.

The maker of spans is part of the context of the body, as the current span is: on a thread or a task that does not
inherit that context there is no span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["MakeSpan", "Note", "make_spans", "maker", "span"]

Note = Callable[[str, str | bool], None]
"""Adds a fact to the span."""
MakeSpan = Callable[[str, Mapping[str, str]], AbstractContextManager[Note]]

maker: ContextVar[MakeSpan | None] = ContextVar("solocron spans", default=None)


@contextmanager
def span(name: str, facts: Mapping[str, str]) -> Iterator[Note]:
    """Make a span of the block, where there is tracing; what the block raises is recorded."""
    make = maker.get()
    if make is None:
        yield _nowhere
        return
    with make(name, facts) as note:
        yield note


def make_spans(tracer: Any) -> MakeSpan:
    """Return a maker of spans by a tracer of OpenTelemetry, which is not imported here."""

    @contextmanager
    def make(name: str, facts: Mapping[str, str]) -> Iterator[Note]:
        with tracer.start_as_current_span(name, attributes=facts) as made:
            yield made.set_attribute

    return make


def _nowhere(name: str, value: str | bool) -> None:
    """Add the fact nowhere: there is no span."""
