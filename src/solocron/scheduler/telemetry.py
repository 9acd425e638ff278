"""The methods of a scheduler about telemetry: metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from solocron.errors import ConfigurationError
from solocron.model.policy import whole
from solocron.scheduler.core import Core
from solocron.scheduler.serving import clients_of
from solocron.schedules import zone_data_version
from solocron.version import __version__

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["TelemetryOperations"]

_NOTHING = "Nothing was configured."


class TelemetryOperations:
    """The methods of `Scheduler` that connect it to a program's telemetry."""

    _core: Core
    _has_metrics: bool = False
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
        from solocron.telemetry.metrics import FleetCollector, NodeMetrics, default_registry, time_store

        core = self._core
        if self._has_metrics:
            raise ConfigurationError(f"metrics(...) was called before; call it once, before the start. {_NOTHING}")
        if by not in ("job", "handler"):
            raise ConfigurationError(f"by={by!r:.40} is not known; choose job or handler. {_NOTHING}")
        if not whole(most) or most < 1:
            raise ConfigurationError(f"most={most!r:.40}: give a whole number from 1 up. {_NOTHING}")
        registry = default_registry() if registry is None else registry
        made = NodeMetrics(
            registry, namespace=lambda: core.store.namespace, node=lambda: core.settings.node, version=__version__,
            zone_data=zone_data_version(), carriers=lambda: tuple(core.carriers), by=by, most=most,
        )  # fmt: skip
        core.events.on("*", made, wants=made.wants)
        time_store(core.store, made.observe_store)
        core.moved.append(lambda: time_store(core.store, made.observe_store))
        if fleet:
            clients = clients_of(core)
            looks = FleetMetrics(
                clients.reading, lambda: core.store.namespace, clock=core.runtime.clock.boot, most=most
            )
            registry.register(FleetCollector(looks.families))
            self._close_fleet = clients.close
        self._has_metrics = True
