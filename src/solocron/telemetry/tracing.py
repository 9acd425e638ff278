"""Spans of runs and hand-overs for OpenTelemetry, from the events of a scheduler.

A run is a trace of its own: its schedule has no caller. It is linked to the request for it, and is the child of the
publication if a worker picked it up. Steps and keys are spans below it. There is no convention for scheduled jobs, so
the attributes are `solocron.*`, and those of messages and functions where conventions exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace import Status as SpanStatus

from solocron import spans
from solocron.dispatch.carrier import Carriage, Message
from solocron.events import Event
from solocron.model.documents.run import BAD
from solocron.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider
    from opentelemetry.util.types import AttributeValue

__all__ = ["Tracing", "current_traceparent"]

_WANTED = ("started", "finished", "refused", "taken over", "session lost")
_ARRIVED = 1_000
"""Messages that are remembered until their runs start."""

Key = tuple[str, int]


def current_traceparent() -> str | None:
    """Return the trace that the caller is in; None outside of spans that are recorded."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent")


class Tracing:
    """Makes the spans of one scheduler. Safe to call from any thread."""

    def __init__(
        self,
        provider: TracerProvider | None,
        *,
        namespace: Callable[[], str],
        expression_of: Callable[[str], str | None],
        carrier_of: Callable[[str], str | None],
    ) -> None:
        self._tracer: Tracer = trace.get_tracer("solocron", __version__, provider)
        self._make = spans.make_spans(self._tracer)
        self._namespace = namespace
        self._expression_of = expression_of
        self._carrier_of = carrier_of
        self._lock = Lock()
        self._open: dict[Key, Span] = {}
        """Spans of runs whose end is not known, by run and fence."""
        self._arrived: dict[Key, Message] = {}
        """Messages that workers of this process have got, by run and attempt."""

    def __call__(self, event: Event) -> None:
        """Follow one event."""
        if event.name == "started":
            self._started(event)
        elif event.name == "finished":
            self._finished(event)
        elif event.name == "refused":
            self._end((event.run, event.fence), "refused")
        elif event.name == "taken over":
            for lost in event.runs:
                self._lost(event, lost)
        elif event.name == "session lost":
            with self._lock:
                keys = list(self._open)
            for key in keys:
                self._end(key, "lost", error="the node lost its lease")

    @staticmethod
    def wants(name: str) -> bool:
        """Return whether an event of this name concerns a span."""
        return name in _WANTED

    # --- runs --------------------------------------------------------------------------------------------------------

    def _started(self, event: Event) -> None:
        with self._lock:
            message = self._arrived.pop((event.run, event.attempt), None)
        parent = None if message is None or message.trace is None else _extracted(message.trace)
        facts: dict[str, AttributeValue | None] = {
            "solocron.job.name": event.job,
            "solocron.run.id": event.run,
            "solocron.slot": event.slot.isoformat(),
            "solocron.attempt": event.attempt,
            "solocron.fence": event.fence,
            "solocron.origin": event.origin,
            "solocron.node": event.node,
            "solocron.namespace": self._namespace(),
            "solocron.lateness": event.lateness_s,
            "code.function.name": event.handler,
            "faas.trigger": "timer" if event.origin == "schedule" else "other",
            "faas.cron": self._expression_of(event.job) if event.origin == "schedule" else None,
        }
        if message is not None:
            facts |= {
                "messaging.system": "solocron",
                "messaging.operation.type": "process",
                "messaging.destination.name": self._carrier_of(event.job),
                "messaging.message.id": message.id,
            }
        span = self._tracer.start_span(
            f"run {event.job}",
            context=context.Context() if parent is None else parent,
            kind=SpanKind.INTERNAL if message is None else SpanKind.CONSUMER,
            attributes=_given(facts),
            links=_links(event.trace),
        )
        with self._lock:
            self._open[event.run, event.fence] = span

    def _finished(self, event: Event) -> None:
        with self._lock:
            span = self._open.get((event.run, event.fence))
        if span is not None and event.exception is not None:
            span.record_exception(event.exception)
            span.set_attribute("error.type", type(event.exception).__qualname__)
        self._end((event.run, event.fence), str(event.outcome), error=event.error or event.reason)

    def _end(self, key: Key, outcome: str, *, error: str | None = None) -> None:
        with self._lock:
            span = self._open.pop(key, None)
        if span is None:
            return
        span.set_attribute("solocron.outcome", outcome)
        if outcome in BAD:
            span.set_status(SpanStatus(StatusCode.ERROR, (error or outcome).strip().rpartition("\n")[2][:300]))
        span.end()

    def _lost(self, event: Event, lost: Mapping[str, Any]) -> None:
        """Make the span that a dead process could not end; it has no length."""
        facts = {
            "solocron.job.name": event.job, "solocron.run.id": lost["run"], "solocron.attempt": lost["attempt"],
            "solocron.node": lost["node"], "solocron.namespace": self._namespace(), "solocron.outcome": "lost",
        }  # fmt: skip
        span = self._tracer.start_span(f"run {event.job}", context=context.Context(), attributes=facts)
        span.set_status(SpanStatus(StatusCode.ERROR, f"{lost['node']} died, or could not renew its lease"))
        span.end()

    def inside(self, run: Any, body: Callable[[], Any], *, is_async: bool) -> Callable[[], Any]:
        """Return the body with the span of its run as the current one."""
        span = self._span_of(run)
        if span is None:
            return body
        if is_async:  # called in the task of the body, whose context ends with it
            context.attach(trace.set_span_in_context(span))
            spans.maker.set(self._make)
            return body

        def call() -> Any:
            token, made = context.attach(trace.set_span_in_context(span)), spans.maker.set(self._make)
            try:
                return body()
            finally:
                spans.maker.reset(made)
                context.detach(token)

        return call

    def traceparent(self, run: Any) -> str | None:
        """Return the trace of a run, for a process of its own."""
        span = self._span_of(run)
        if span is None:
            return None
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        return carrier.get("traceparent")

    def _span_of(self, run: Any) -> Span | None:
        """Return the span of a run, with the key that all attempts and reruns of its slot have in common."""
        with self._lock:
            span = self._open.get((run.id, run.fence))
        if span is not None:
            span.set_attribute("solocron.run.key", run.key)
        return span

    # --- hand-over ---------------------------------------------------------------------------------------------------

    def arrived(self, message: Message) -> None:
        """Remember the message of a run that is about to be picked up here.

        An instrumentation of the queue may have made a span for the message: then the run belongs inside that one.
        """
        current = current_traceparent()
        if current is not None and (message.trace is None or _trace_id(current) == _trace_id(message.trace)):
            message = replace(message, trace=current)
        with self._lock:
            self._arrived[message.run, message.attempt] = message
            while len(self._arrived) > _ARRIVED:
                del self._arrived[next(iter(self._arrived))]

    def carriages(self, some: Mapping[str, Carriage]) -> dict[str, Carriage]:
        """Return the carriers with a span around each publication."""
        return {
            name: TracedCarriage(name=one.name, carrier=one.carrier, pickup=one.pickup, tracer=self._tracer)
            for name, one in some.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCarriage(Carriage):
    """A carrier whose messages carry the trace of their publication."""

    tracer: Tracer

    def publish(self, message: Message) -> None:
        """Publish it inside a span, whose trace the worker continues."""
        facts: dict[str, AttributeValue] = {
            "messaging.system": "solocron", "messaging.operation.type": "send",
            "messaging.destination.name": self.name, "messaging.message.id": message.id,
            "solocron.job.name": message.job, "solocron.run.id": message.run, "solocron.attempt": message.attempt,
        }  # fmt: skip
        links = _links(message.trace)
        with self.tracer.start_as_current_span(
            f"publish {self.name}", context=context.Context(), kind=SpanKind.PRODUCER, attributes=facts, links=links
        ):
            Carriage.publish(self, replace(message, trace=current_traceparent() or message.trace))


def _extracted(traceparent: str) -> context.Context:
    return propagate.extract({"traceparent": traceparent})


def _trace_id(traceparent: str) -> str:
    return traceparent.partition("-")[2].partition("-")[0]


def _links(traceparent: str | None) -> list[Link]:
    """Return a link to the span of a request, if it is one."""
    found = None if traceparent is None else trace.get_current_span(_extracted(traceparent)).get_span_context()
    return [Link(found)] if found is not None and found.is_valid else []


def _given(facts: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    return {name: value for name, value in facts.items() if value is not None}
