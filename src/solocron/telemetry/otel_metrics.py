"""The node metrics as instruments of OpenTelemetry: the same facts, names with dots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import metrics

from solocron.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

__all__ = ["OtelInstruments"]


class _Child:
    """An instrument with its attributes, under the names of methods that `NodeMetrics` calls."""

    def __init__(self, instrument: Any, attributes: dict[str, str]) -> None:
        self._instrument = instrument
        self._attributes = attributes

    def inc(self, by: float = 1) -> None:
        self._instrument.add(by, self._attributes)

    def observe(self, value: float) -> None:
        self._instrument.record(value, self._attributes)

    def set(self, value: float) -> None:
        self._instrument.set(value, self._attributes)


class _Labelled:
    def __init__(self, instrument: Any, *labels: str) -> None:
        self._instrument = instrument
        self._names = tuple(f"solocron.{name}" for name in ("namespace", "node", *labels))

    def labels(self, *values: str) -> _Child:
        return _Child(self._instrument, dict(zip(self._names, values, strict=True)))


class OtelInstruments:
    """The instruments of one meter."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter("solocron", __version__, provider)

        def counter(name: str, *labels: str) -> _Labelled:
            return _Labelled(meter.create_counter(f"solocron.{name}"), *labels)

        def histogram(name: str, *labels: str) -> _Labelled:
            return _Labelled(meter.create_histogram(f"solocron.{name}", unit="s"), *labels)

        def gauge(name: str, unit: str, *labels: str) -> _Labelled:
            return _Labelled(meter.create_gauge(f"solocron.{name}", unit=unit), *labels)

        self.runs = counter("runs", "job.name", "outcome")
        self.slots = counter("slots", "job.name", "outcome")
        self.duration = histogram("run.duration", "job.name")
        self.lateness = histogram("run.lateness", "job.name")
        self.running = gauge("runs.running", "{run}")
        self.counted = {
            name: counter(name.replace("_", "."))
            for name in (
                "claim_conflicts", "sessions_lost", "takeovers", "fence_rejections", "store_errors",
                "deliveries_failed",
            )
        }  # fmt: skip
        self.renewals = counter("renewals", "result")
        self.handovers = counter("handovers", "carrier", "result")
        self.dropped = counter("messages.dropped", "carrier", "result")
        self.pickup = histogram("pickup.wait", "carrier")
        self.store = histogram("store.duration", "verb")
        self.skew = gauge("clock.skew", "s")
        self.build = gauge("build.info", "1", "version", "zone_data")
