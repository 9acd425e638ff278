"""Node metrics for `prometheus_client`: what the node of this process did, counted from its events.

They are plain counters, gauges and histograms, so that the package's own mode for several processes works as it is. The
label is `job_name`: Prometheus puts its own `job` on every series.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from solocron.errors import MissingExtra
from solocron.events import Event
from solocron.model.transitions.offering import Dropped
from solocron.stores.contract import Store
from solocron.telemetry.families import Family
from solocron.telemetry.fleet_counts import OTHER

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from solocron.telemetry.otel_metrics import OtelInstruments

__all__ = ["FleetCollector", "NodeMetrics", "time_store"]

log = logging.getLogger("solocron")

DURATIONS = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400)
LATENESS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3_600)
PICKUPS = (0.1, 0.5, 1, 5, 30, 60, 300, 1_800)
STORE = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
VERBS = ("clock", "update", "read", "history")

_COUNTED = {
    "held elsewhere": "claim_conflicts",
    "session lost": "sessions_lost",
    "refused": "fence_rejections",
    "store error": "store_errors",
    "not delivered": "deliveries_failed",
}
_RENEWALS = {"session renewed": "renewed", "renewal failed": "failed"}
_HANDED = {
    "handed over": "published",
    "hand-over failed": "failed",
    "not picked up": "lapsed",
    "picked up": "picked_up",
}
_DROPPED = {str(why): why.name.lower() for why in Dropped}

By = Literal["job", "handler"]


class _Instruments:
    """The instruments of one registry; the schedulers of a process share them and differ by their labels."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        own = ("namespace", "node")

        def counter(name: str, help_: str, *labels: str) -> Counter:
            return Counter(f"solocron_{name}", help_, (*own, *labels), registry=registry)

        def histogram(name: str, help_: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"solocron_{name}", help_, (*own, *labels), buckets=buckets, registry=registry)

        self.runs = counter(
            "runs", "Attempts that ended here, or were lost and taken over here.", "job_name", "outcome"
        )
        self.slots = counter("slots", "Slots that this node decided without a run.", "job_name", "outcome")
        self.duration = histogram("run_duration_seconds", "Duration of bodies.", DURATIONS, "job_name")
        self.lateness = histogram(
            "run_lateness_seconds", "Time between a slot and the start of its first attempt.", LATENESS, "job_name"
        )
        self.running = Gauge(
            "solocron_runs_running", "Bodies under a claim of this node.", own, registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.counted = {
            name: counter(name, help_)
            for name, help_ in (
                ("claim_conflicts", "Due jobs that another node claimed first."),
                ("sessions_lost", "Leases that this node could not prove any more."),
                ("takeovers", "Attempts of dead nodes that this node took over."),
                ("fence_rejections", "Ends of runs that the store refused from this node."),
                ("store_errors", "Steps of the node in which the store did not answer."),
                ("deliveries_failed", "Webhooks, pings and notifications that did not reach their target."),
            )
        }
        self.renewals = counter("renewals", "Renewals of the lease.", "result")
        self.handovers = counter("handovers", "Messages of runs, by what became of them.", "carrier", "result")
        self.dropped = counter("messages_dropped", "Messages that started nothing.", "carrier", "result")
        self.pickup = histogram("pickup_wait_seconds", "Time between hand-over and pick-up.", PICKUPS, "carrier")
        self.store = histogram("store_seconds", "Duration of calls of the store.", STORE, "verb")
        self.skew = Gauge(
            "solocron_clock_skew_seconds", "The node's wall clock less the store's clock.", own, registry=registry,
            multiprocess_mode="livemostrecent",
        )  # fmt: skip
        self.build = Gauge(
            "solocron_build_info", "Always 1; the labels tell.", (*own, "version", "zone_data"), registry=registry,
            multiprocess_mode="livemostrecent",
        )  # fmt: skip


_MADE: WeakKeyDictionary[CollectorRegistry, _Instruments] = WeakKeyDictionary()


def _instruments_of(given: CollectorRegistry | OtelInstruments) -> Any:
    """Return the instruments of a registry, made once, or those that are given; both have the same names."""
    if hasattr(given, "counted"):
        return given
    return _MADE.get(given) or _MADE.setdefault(given, _Instruments(given))


class NodeMetrics:
    """Counts the events of one scheduler, in a registry or with the instruments of a meter."""

    def __init__(
        self,
        instruments: CollectorRegistry | OtelInstruments,
        *,
        namespace: Callable[[], str],
        node: Callable[[], str],
        version: str,
        zone_data: str,
        carriers: Callable[[], Iterable[str]] = tuple,
        by: By = "job",
        most: int = 1_000,
    ) -> None:
        self._made = _instruments_of(instruments)
        self._namespace = namespace
        self._node = node
        self._build = version, zone_data
        self._carriers = carriers
        self._by = by
        self._most = most
        self._names: set[str] = set()
        self._running: set[tuple[str, int]] = set()
        self._children: dict[tuple[Any, ...], Any] = {}
        """Instruments with their labels: a run needs several, and a node has few."""

    def __call__(self, event: Event) -> None:
        """Count one event."""
        made, name = self._made, event.name
        if name == "started":
            self._started(event)
        elif name == "finished":
            self._finished(event)
        elif name == "slot passed":
            self._at(made.slots, self._label(event), str(event.outcome)).inc(event.count)
        elif name == "taken over":
            for _ in event.runs:
                self._at(made.runs, self._label(event), "lost").inc()
                self._at(made.counted["takeovers"]).inc()
        elif name == "message dropped":
            self._at(made.dropped, event.carrier or "", _DROPPED.get(event.reason, "other")).inc()
        elif name in _HANDED:
            self._at(made.handovers, event.carrier or "", _HANDED[name]).inc()
            if name == "picked up" and event.waited_s is not None:
                self._at(made.pickup, event.carrier or "").observe(event.waited_s)
        elif name in _RENEWALS:
            self._at(made.renewals, _RENEWALS[name]).inc()
            if event.facts.get("skew_s") is not None:
                self._at(made.skew).set(event.skew_s)
        elif name in _COUNTED:
            self._at(made.counted[_COUNTED[name]]).inc()
            if name == "refused":
                self._over(event)
            elif name == "session lost":
                self._running.clear()
                self._at(made.running).set(0)
        elif name == "session begun":
            self._begun()

    @staticmethod
    def wants(name: str) -> bool:
        """Return whether an event of this name is counted."""
        return name in _WANTED

    def _begun(self) -> None:
        """Make the series that alerts look at: of one that begins with its first event, no increase would be seen."""
        for counter in self._made.counted.values():
            self._at(counter)
        for result in _RENEWALS.values():
            self._at(self._made.renewals, result)
        for carrier in self._carriers():
            for result in _HANDED.values():
                self._at(self._made.handovers, carrier, result)
        self._at(self._made.running).set(len(self._running))
        self._at(self._made.build, *self._build).set(1)

    def _started(self, event: Event) -> None:
        self._running.add((event.run, event.fence))
        self._at(self._made.running).set(len(self._running))
        if event.first and event.lateness_s is not None:
            self._at(self._made.lateness, self._label(event)).observe(event.lateness_s)

    def _finished(self, event: Event) -> None:
        self._over(event)
        label = self._label(event)
        self._at(self._made.runs, label, str(event.outcome)).inc()
        if event.outcome == "handed_over":
            self._at(self._made.handovers, event.carrier or "", "forwarded").inc()
        elif event.duration_s is not None:
            self._at(self._made.duration, label).observe(event.duration_s)

    def _over(self, event: Event) -> None:
        self._running.discard((event.run, event.fence))
        self._at(self._made.running).set(len(self._running))

    def observe_store(self, verb: str, seconds: float) -> None:
        """Count a call of the store."""
        self._at(self._made.store, verb).observe(seconds)

    def _label(self, event: Event) -> str:
        """Return the name under which a job is counted: beyond the most, all further ones share one."""
        name = str(event.facts.get("handler") or event.job) if self._by == "handler" else str(event.job)
        if name in self._names:
            return name
        if len(self._names) < self._most:
            self._names.add(name)
            return name
        if len(self._names) == self._most:
            self._names.add(OTHER)
            log.warning(
                "metrics: more than %d names of jobs; further ones are counted as %s. Jobs that are added as data are "
                'better counted with by="handler"', self._most, OTHER, extra={"event": "many names"},
            )  # fmt: skip
        return OTHER

    def _at(self, instrument: Any, *labels: str) -> Any:
        key = (id(instrument), self._node(), *labels)  # the child of a fork is another node
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = instrument.labels(self._namespace(), self._node(), *labels)
        return child


_WANTED = frozenset(
    (
        *_COUNTED,
        *_RENEWALS,
        *_HANDED,
        "started",
        "finished",
        "slot passed",
        "taken over",
        "message dropped",
        "session begun",
    )
)


class FleetCollector:
    """Puts the fleet metrics of a namespace into a registry; they are read when it is asked."""

    def __init__(self, families: Callable[[], tuple[Family, ...]]) -> None:
        self._families = families

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not ask the store."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the families as the package has them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for family in self._families():
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            made = kind(family.name, family.help, labels=family.labels)
            for labels, value in family.samples.items():
                made.add_metric(labels, value)
            yield made


def default_registry() -> CollectorRegistry:
    """Return the registry of the process."""
    try:
        from prometheus_client import REGISTRY
    except ModuleNotFoundError:
        raise MissingExtra(
            "metrics(...) needs the package 'prometheus-client': pip install \"solocron[metrics]\". Nothing is counted."
        ) from None
    return REGISTRY


def time_store(store: Store, observe: Callable[[str, float], None]) -> None:
    """Measure the calls of a store from now on.

    The verbs are wrapped on the object. A store around the store would be another class to every reader that asks for
    one, and a step more in the calls of those who do not measure.
    """
    for verb in VERBS:
        setattr(store, verb, _timed(getattr(store, verb), verb, observe))


def _timed(call: Callable[..., Any], verb: str, observe: Callable[[str, float], None]) -> Callable[..., Any]:
    def timed(*args: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return call(*args, **options)
        finally:
            observe(verb, time.perf_counter() - begun)

    return timed
