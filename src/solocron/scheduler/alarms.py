"""The methods of a scheduler about alarms: thresholds, notification targets, what is open, silences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from solocron.duration import parse_duration, to_us
from solocron.engine.alarms import AlarmSettings
from solocron.errors import ConfigurationError, StoreError
from solocron.jobs.checks import check_name
from solocron.jobs.options import Span
from solocron.model.documents.alarm import Bounds
from solocron.model.policy import parse_quota, whole
from solocron.scheduler.auditing import audited
from solocron.scheduler.core import Core
from solocron.stores.contract import Tier
from solocron.stores.url import Secret
from solocron.views import AlarmsView, SilenceView

if TYPE_CHECKING:
    from solocron.engine.node import Node
    from solocron.telemetry.delivery import Deliveries
    from solocron.telemetry.messages import Notify, Webhook

__all__ = ["AlarmOperations"]

_LEAST_SECRET = 16
_NOTHING = "Nothing was configured."


class AlarmOperations:
    """The methods of `Scheduler` about alarms."""

    _core: Core
    _deliveries: Deliveries | None = None

    def alarms(
        self,
        *,
        every: Span = "30s",
        late: Span = "5m",
        failing: int = 3,
        patience: Span = "1m",
        tier: str | None = None,
        missed_latest: bool = False,
        settle: Span = "1m",
        rate: str = "3/h",
        webhook: str | None = None,
        secret: str | None = None,
        notify: str | Sequence[str] = (),
        pings: Mapping[str, str] | None = None,
        allow_private: bool = False,
    ) -> None:
        """Check regularly, in turns with the other nodes, for jobs that should have run and did not.

        All alarms of a kind are one message, raised once and cleared once in the fleet, as the events `alarm` and
        `alarm cleared`. Call this once, before the start, with the same thresholds on every node.
        """
        # Imported here: a scheduler without alarms does not pay for HTTP and TLS.
        from solocron.telemetry.delivery import Deliveries
        from solocron.telemetry.https import Target
        from solocron.telemetry.messages import Notify, Pings, Webhook

        core = self._core
        if core.alarm_settings is not None:
            raise ConfigurationError(f"alarms(...) was called before; call it once, before the start. {_NOTHING}")
        if not whole(failing) or failing < 1:
            raise ConfigurationError(f"failing={failing!r}: give a whole number from 1 up. {_NOTHING}")
        if tier is not None and tier not in set(Tier):
            raise ConfigurationError(f"tier={tier!r:.20} is not known; choose {', '.join(Tier)}. {_NOTHING}")
        if not isinstance(missed_latest, bool):
            raise ConfigurationError(f"missed_latest={missed_latest!r:.20}: give True or False. {_NOTHING}")
        bounds = Bounds(
            every=_span("every", every),
            late=_span("late", late),
            failing=failing,
            patience=_span("patience", patience, zero=True),
            tier=tier,
            missed_latest=missed_latest,
            settle=_span("settle", settle, zero=True),
            rate=parse_quota(rate, what="rate", untouched=_NOTHING),
        )
        deliveries = Deliveries(core.events)
        if (webhook is None) != (secret is None):
            raise ConfigurationError(f"webhook= and secret= belong together: messages are signed. {_NOTHING}")
        subscribers: list[Webhook | Notify] = []
        if webhook is not None and secret is not None:
            if not isinstance(secret, str) or len(secret) < _LEAST_SECRET:
                raise ConfigurationError(
                    f"secret= is shorter than {_LEAST_SECRET} characters; take a random one. {_NOTHING}"
                )
            target = Target(webhook, "webhook", allow_private)
            subscribers.append(Webhook(target, Secret(secret), core.store.namespace, deliveries))
        if notify:
            subscribers.append(Notify([notify] if isinstance(notify, str) else list(notify), deliveries))
        targets = {
            check_name(job, "pings"): Target(url, f"the ping URL of {job}", allow_private)
            for job, url in (pings or {}).items()
        }
        core.alarm_settings, self._deliveries = AlarmSettings(bounds, deliveries.outcome), deliveries
        for subscriber in subscribers:
            for name in ("alarm", "alarm cleared"):
                core.events.on(name, subscriber)
        if targets:
            for name in ("started", "finished", "taken over"):
                core.events.on(name, Pings(targets, deliveries))

    def open_alarms(self) -> AlarmsView:
        """Return the open alarms, what was told of them, and the silences."""
        return self._core.open(read_only=True).open_alarms()

    def silence(self, what: str, *, until: datetime, note: str | None = None, by: str | None = None) -> SilenceView:
        """Tell nothing of some alarms until an instant: a kind, a pattern of jobs, or `kind:pattern`."""
        with audited(self._core, "silence", what, by=by, note=note):
            return self._core.open().silence(what, until=until, note=note, by=by)

    def lift_silence(self, what: str, *, note: str | None = None, by: str | None = None) -> None:
        """End a silence now; what is still wrong is told."""
        with audited(self._core, "lift", what, by=by, note=note):
            self._core.open().lift_silence(what)

    def _deliver_the_rest(self, node: Node | None) -> None:
        """Deliver the waiting messages when the scheduler stops, and record what became of them."""
        if self._deliveries is not None and self._deliveries.close() and node is not None and node.alarms is not None:
            with suppress(StoreError):
                node.alarms.record_deliveries()


def _span(what: str, value: Span, *, zero: bool = False) -> int:
    found = to_us(parse_duration(value, what=what))
    if not found and not zero:
        raise ConfigurationError(f"{what}={value!r}: give a time above zero. {_NOTHING}")
    return found
