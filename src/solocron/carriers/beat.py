"""Celery beat on as many machines as you like: `celery -A shop beat -S solocron`.

Each entry of `beat_schedule` is a job that is forwarded to Celery, and so is each row of django-celery-beat, if that is
installed. Every slot is sent by one of the beats, and a beat that dies is taken over within a lease. The store is
`app.conf.solocron_store`, else `SOLOCRON_STORE`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from solocron.carriers.celery import CeleryCarrier
from solocron.carriers.parts import missing
from solocron.carriers.periodic_tasks import PeriodicTaskTables, installed
from solocron.dispatch.carrier import Message
from solocron.errors import ConfigurationError, InvalidError, SolocronError
from solocron.importers.celery import read_beat_entry
from solocron.importers.converted import foreign_zone_name
from solocron.scheduler import Scheduler
from solocron.schedules import load_zone

try:
    from celery import beat  # type: ignore[import-untyped]
except ImportError:
    raise missing("BeatScheduler", "celery") from None

__all__ = ["BeatScheduler", "plain_name"]

log = logging.getLogger("solocron")

CARRIER = "celery-beat"
LOOK_AGAIN = 5.0
"""Seconds between two calls of `tick`, which has nothing to do: the node has loops of its own."""
LOOK_AT_TABLES = 1.5
"""Seconds between two looks at the change marker of django-celery-beat: with the reading, a change counts in two."""
OPTIONS = ("catch_up", "overlap", "start_within", "tags", "owner", "runbook")
"""Options of Solocron that an entry may have under `options["solocron"]`."""


class BeatScheduler(beat.Scheduler):  # type: ignore[misc]
    """A scheduler of Celery beat in whose process a node of Solocron runs."""

    def setup_schedule(self) -> None:
        """Start; what cannot be used is told in one line, and ends the beat.

        An error would reach the log as a traceback in hundreds of records: Celery has put its log in the place of
        stderr, a record for each write.
        """
        try:
            self._start()
        except SolocronError as error:
            log.critical("%s", error, extra={"event": "beat refused"})
            raise SystemExit(1) from error

    def _start(self) -> None:
        """Declare a job for each entry, and start the node."""
        app = self.app
        url = getattr(app.conf, "solocron_store", None) or os.environ.get("SOLOCRON_STORE")
        if not url:
            raise ConfigurationError(
                "this beat needs a store that all beats share: set app.conf.solocron_store or SOLOCRON_STORE. Nothing "
                "was started."
            )
        namespace = getattr(app.conf, "solocron_namespace", None) or plain_name(app.main or "celery")
        lease = getattr(app.conf, "solocron_lease", None) or "15s"
        self.solocron = Scheduler(url, namespace=namespace, lease=lease, enabled=True)
        self._carrier = CeleryCarrier(app)
        self._carrier.serve(namespace, self.solocron)
        self.solocron.carrier(CARRIER, self._send)
        self.install_default_entries(app.conf.beat_schedule or {})
        entries = {**self.data, **(app.conf.beat_schedule or {})}
        for name, entry in entries.items():
            self._declare(str(name), entry)
        self._tables: PeriodicTaskTables | None = None
        if installed():
            taken = frozenset(map(str, entries))
            self._tables = PeriodicTaskTables(self.solocron, carrier=CARRIER, tz=self._zone(), taken=taken)
            self._tables.refresh()
        self.solocron.start()

    def _declare(self, name: str, entry: Any) -> None:
        """Declare the job of one entry, which is forwarded to its task."""
        given = entry if isinstance(entry, Mapping) else _mapping(entry)
        options = dict(given.get("options") or {})
        own = options.pop("solocron", {})
        try:
            unknown = sorted(set(own) - set(OPTIONS))
            if unknown:
                raise InvalidError(f"{unknown[0]!r} is not one of {', '.join(OPTIONS)}. Nothing was started.")
            found = read_beat_entry({**given, "options": options}, tz=self._zone())
            payload = {"args": found.args, "kwargs": found.kwargs}
            self.solocron.forward(
                plain_name(name), CARRIER, found.task, found.schedule, payload=payload, hand_over=options,
                **{"start_within": self.app.conf.beat_cron_starting_deadline, **own},
            )  # fmt: skip
        except InvalidError as error:
            raise InvalidError(f"beat entry {name!r}: {error}") from None
        if getattr(given.get("schedule"), "relative", False):
            log.warning(
                "relative=True has no effect: the period of an entry is anchored, so that all beats agree on its slots",
                extra={"event": "relative ignored", "job": plain_name(name)},
            )

    def _zone(self) -> str:
        return load_zone(foreign_zone_name(self.app.timezone)).name

    def _send(self, message: Message) -> None:
        """Send the task of an entry; return when the broker has confirmed it."""
        payload = dict(message.payload or {})
        row, one_off, repeats = payload.pop("row", None), payload.pop("one_off", False), payload.pop("repeats", False)
        self._carrier.send(str(message.target), message, **payload)
        if row is not None and self._tables is not None:
            self._tables.sent(row, one_off=one_off, repeats=repeats)

    def tick(self, *args: Any, **more: Any) -> float:
        """Return when to be called again; the node sends what is due, and here the tables are looked at."""
        if self._tables is None:
            return LOOK_AGAIN
        try:
            self._tables.refresh()
        except Exception as error:  # noqa: BLE001 - whatever keeps the tables away, what is known goes on
            log.warning("the tables of django-celery-beat could not be read: %s", error, extra={"event": "no tables"})
        return LOOK_AT_TABLES

    def close(self) -> None:
        """Drain the node."""
        self._carrier.close()  # first: it may be about to make runs due, which opens the store
        self.solocron.stop()
        self._carrier.close()


def _mapping(entry: Any) -> dict[str, Any]:
    """Return a `ScheduleEntry` of Celery as the mapping that it was made from."""
    return {name: getattr(entry, name) for name in ("task", "schedule", "args", "kwargs", "options")}


def plain_name(name: str) -> str:
    """Return a name that a store can keep: what it cannot is replaced, and a digest keeps such names apart."""
    if re.fullmatch(r"[A-Za-z0-9_.:-]{1,128}", name):
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_.:-]+', '-', name)[:100]}-{digest}"
