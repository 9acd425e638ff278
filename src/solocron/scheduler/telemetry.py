"""The methods of a scheduler about telemetry: metrics, traces, check-ins and log lines."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from solocron.errors import ConfigurationError, MissingExtra
from solocron.jobs.checks import check_name, check_names
from solocron.model.policy import whole
from solocron.scheduler.core import Core
from solocron.scheduler.serving import clients_of
from solocron.schedules import zone_data_version
from solocron.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider
    from prometheus_client import CollectorRegistry

    from solocron.telemetry.otel_metrics import OtelInstruments

__all__ = ["TelemetryOperations"]

_NOTHING = "Nothing was configured."


def check_slug(slug: str, job: str) -> str:
    """Return the name of a monitor as Sentry takes it, or raise."""
    if not isinstance(slug, str) or not re.fullmatch(r"[a-z0-9_-]{1,50}", slug):
        raise ConfigurationError(
            f"slugs: {slug!r:.60} for {job} is not a slug of Sentry: a-z, 0-9, - and _, at most 50. {_NOTHING}"
        )
    return slug


class TelemetryOperations:
    """The methods of `Scheduler` that connect it to a program's telemetry."""

    _core: Core
    _has_metrics: bool = False
    _has_sentry: bool = False
    _close_fleet: Callable[[], None] | None = None
    """End the connections with which fleet metrics are read."""

    def metrics(
        self,
        registry: CollectorRegistry | None = None,
        *,
        fleet: bool = False,
        by: Literal["job", "handler"] = "job",
        most: int = 1_000,
    ) -> None:
        """Count what this node does in a registry of `prometheus_client`, that of the process if none is given.

        `fleet` adds the metrics of the whole namespace, read from the store when asked: in one process of the fleet, or
        with `solocron metrics` in none. `by="handler"` counts jobs that were added as data under their function. Beyond
        `most` names all further ones are counted as `_other`.
        """
        from solocron.telemetry.fleet import FleetMetrics
        from solocron.telemetry.metrics import FleetCollector, default_registry

        core = self._core
        if self._has_metrics:
            raise ConfigurationError(f"metrics(...) was called before; call it once, before the start. {_NOTHING}")
        if by not in ("job", "handler"):
            raise ConfigurationError(f"by={by!r:.40} is not known; choose job or handler. {_NOTHING}")
        if not whole(most) or most < 1:
            raise ConfigurationError(f"most={most!r:.40}: give a whole number from 1 up. {_NOTHING}")
        registry = default_registry() if registry is None else registry
        # In the multiprocess mode a registry that is asked adds up the files of all processes. It must not have the
        # instruments themselves, or every series is there twice.
        self._count(default_registry() if "PROMETHEUS_MULTIPROC_DIR" in os.environ else registry, by, most)
        if fleet:
            clients = clients_of(core)
            looks = FleetMetrics(
                clients.reading, lambda: core.store.namespace, clock=core.runtime.clock.boot, most=most
            )
            registry.register(FleetCollector(looks.families))
            self._close_fleet = clients.close
        self._has_metrics = True

    def otel(self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None) -> None:
        """Make spans and metrics for OpenTelemetry; without providers, for those of the process.

        Each attempt is a span, current while its function runs; a trigger inside a span is linked to its run. A run
        that a worker picked up is a child of the span of its publication.
        """
        core = self._core
        if core.tracing is not None:
            raise ConfigurationError(f"otel(...) was called before; call it once, before the start. {_NOTHING}")
        try:
            from solocron.telemetry.otel_metrics import OtelInstruments
            from solocron.telemetry.tracing import Tracing, current_traceparent
        except ModuleNotFoundError:
            raise MissingExtra(
                f"otel(...) needs the package 'opentelemetry-api': pip install \"solocron[otel]\". {_NOTHING}"
            ) from None
        core.tracing = Tracing(
            tracer_provider,
            namespace=lambda: core.store.namespace,
            expression_of=core.expression_of,
            carrier_of=core.carrier_of,
        )
        core.events.on("*", core.tracing, wants=core.tracing.wants)

        def keep_trace() -> None:
            core.client.documents.trace = current_traceparent

        keep_trace()
        core.moved.append(keep_trace)
        self._count(OtelInstruments(meter_provider), "job", 1_000)

    def sentry(self, *, slugs: Mapping[str, str] | None = None, exclude: Iterable[str] = ()) -> None:
        """Tell Sentry of the runs by schedule as check-ins, one a run, and of errors with job, run and attempt as tags.

        `slugs` names the monitors of jobs, by default made from their names; the jobs of `exclude` are left out. Call
        `sentry_sdk.init` as ever.
        """
        core = self._core
        if self._has_sentry:
            raise ConfigurationError(f"sentry(...) was called before; call it once, before the start. {_NOTHING}")
        try:
            from solocron.telemetry.sentry import CheckIns
        except ModuleNotFoundError:
            raise MissingExtra(
                f"sentry(...) needs the package 'sentry-sdk': pip install \"solocron[sentry]\". {_NOTHING}"
            ) from None
        given = {check_name(job, "slugs"): check_slug(slug, job) for job, slug in (slugs or {}).items()}
        made = CheckIns(
            namespace=lambda: core.store.namespace, declared=core.registry.jobs,
            late_for=lambda: core.settings.late_for,
            slugs=given, exclude=frozenset(check_names(exclude, "exclude", untouched=_NOTHING) if exclude else ()),
        )  # fmt: skip
        core.events.on("*", made, wants=made.wants)
        self._has_sentry = True

    def logs(self, format: Literal["text", "json"] | None = None, level: str = "info") -> None:
        """Write the log of Solocron to stderr, in a program that has not configured it; else do nothing.

        Without `format`, as `SOLOCRON_LOG` says, or as text.
        """
        from solocron.telemetry.records import handler_for

        chosen = os.environ.get("SOLOCRON_LOG", "text") if format is None else format
        if chosen not in ("text", "json"):
            what = "SOLOCRON_LOG" if format is None else "format"
            raise ConfigurationError(f"{what}={chosen!r:.40} is not known; choose text or json. {_NOTHING}")
        if level not in ("debug", "info", "warning", "error"):
            raise ConfigurationError(
                f"level={level!r:.40} is not known; choose debug, info, warning or error. {_NOTHING}"
            )
        logger = logging.getLogger("solocron")
        if logger.hasHandlers():
            return
        logger.addHandler(handler_for(chosen))
        logger.setLevel(level.upper())

    def _count(
        self, instruments: CollectorRegistry | OtelInstruments, by: Literal["job", "handler"], most: int
    ) -> None:
        """Count events and calls of the store with some instruments."""
        from solocron.telemetry.metrics import NodeMetrics, time_store

        core = self._core
        made = NodeMetrics(
            instruments, namespace=lambda: core.store.namespace, node=lambda: core.settings.node, version=__version__,
            zone_data=zone_data_version(), carriers=lambda: tuple(core.carriers), by=by, most=most,
        )  # fmt: skip
        core.events.on("*", made, wants=made.wants)
        time_store(core.store, made.observe_store)
        core.moved.append(lambda: time_store(core.store, made.observe_store))
