"""The tables of django-celery-beat as jobs: what people edit there is what the beats send, within two seconds.

Every beat looks at the change marker of the tables and makes the jobs of the store equal to the rows. Two beats that
do so at once write the same. What was sent is written back into the row, as the scheduler of those tables does.
"""

from __future__ import annotations

import logging
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from solocron.errors import InvalidError, SolocronError
from solocron.importers.celery import read_beat_entry
from solocron.jobs.forwarded import Forwarded
from solocron.jobs.job_spec import JobSpec
from solocron.model.documents.definition import TARGET
from solocron.scheduler import Scheduler

__all__ = ["HANDLER", "PeriodicTaskTables", "installed"]

log = logging.getLogger("solocron")

HANDLER = "periodic-task"
"""The handler of every job that comes from a row."""
WITHIN = "task:"
"""Prefix of the jobs that come from rows."""
_FIELDS = (
    *("name", "task", "interval", "crontab", "solar", "clocked", "args", "kwargs", "headers", "queue", "exchange"),
    *("routing_key", "priority", "expires", "expire_seconds", "start_time", "enabled"),
)


def installed() -> bool:
    """Return whether this program has the tables: Django is set up, and they are among its applications."""
    try:
        from django.apps import apps
    except ImportError:
        return False
    return bool(apps.ready and apps.is_installed("django_celery_beat"))


class PeriodicTaskTables:
    """Keeps the jobs of a store equal to the rows that are enabled. `taken` are names that `beat_schedule` has."""

    def __init__(self, scheduler: Scheduler, *, carrier: str, tz: str, taken: frozenset[str]) -> None:
        self._scheduler = scheduler
        self._carrier = carrier
        self._tz = tz
        self._taken = taken
        self._marker: datetime | None = None
        self._looked = False
        self._told: set[tuple[str, str]] = set()
        scheduler.register(Forwarded(HANDLER, "the task of its row", __name__), name=HANDLER)

    def refresh(self) -> bool:
        """Look at the change marker; make the jobs equal to the rows if it has moved, and return whether it has."""
        from django.db import close_old_connections
        from django_celery_beat.models import PeriodicTask, PeriodicTasks

        close_old_connections()
        try:
            marker = PeriodicTasks.last_change()
            if self._looked and marker == self._marker:
                return False
            rows = PeriodicTask.objects.filter(enabled=True)
            rows = rows.select_related("interval", "crontab", "solar", "clocked").order_by("name")
            found = [(row, job) for row in rows if (job := self._job(row)) is not None]
        finally:
            close_old_connections()
        self._scheduler.sync([job for _, job in found], within=WITHIN)
        for row, job in found:
            if row.clocked is not None:
                self._make_up(job.name, row.clocked.clocked_time)
        self._marker, self._looked = marker, True
        return True

    def _make_up(self, job: str, at: datetime) -> None:
        """Request the run of a clocked time that had passed when its row was first seen: such a task is sent at once.

        A job whose instant was over when it was made has no slot, now or later. Every beat may ask: the key is one run.
        """
        view = self._scheduler.get_job(job)
        idle = view.next is None and not view.running and not view.waiting
        if idle and view.paused is None and view.cursor >= at and view.last_status is None:
            self._scheduler.trigger(job, key=f"clocked {at.isoformat()}", note="its time had passed")

    def _job(self, row: Any) -> JobSpec | None:
        """Return the job of a row; None, told once, for a row that cannot be one."""
        from solocron.carriers.beat import plain_name

        if row.name in self._taken:
            self._tell(row.name, "beat_schedule has an entry of the same name, which is sent instead")
            return None
        given = SimpleNamespace(**{name: getattr(row, name) for name in _FIELDS}, one_off=False)
        try:
            entry = read_beat_entry(given, tz=self._tz)
            payload = {"args": entry.args, "kwargs": entry.kwargs, "row": row.name, "one_off": bool(row.one_off)}
            payload["repeats"] = row.clocked is None
            options: dict[str, Any] = dict(entry.bounds)
            hand_over = {**entry.options, TARGET: entry.task}
            return JobSpec(
                WITHIN + plain_name(row.name), HANDLER, entry.schedule, run_in=self._carrier, payload=payload,
                hand_over=hand_over, **options,
            )  # fmt: skip
        except InvalidError as error:
            self._tell(row.name, str(error))
            return None

    def _tell(self, row: str, why: str) -> None:
        if (row, why) not in self._told:
            self._told.add((row, why))
            log.warning("a periodic task is not sent: %s", why, extra={"event": "row left out", "row": row})

    def sent(self, row: str, *, one_off: bool, repeats: bool) -> None:
        """Write back that the task of a row was sent; one that is to be sent once is switched off with it.

        Its job is removed at once where its schedule goes on: the beats look at the tables every two seconds, and a
        slot that is due before would be sent as well.
        """
        from django.db import close_old_connections
        from django.db.models import F
        from django.utils import timezone
        from django_celery_beat.models import PeriodicTask, PeriodicTasks

        from solocron.carriers.beat import plain_name

        close_old_connections()
        try:
            values: dict[str, Any] = {"last_run_at": timezone.now(), "total_run_count": F("total_run_count") + 1}
            PeriodicTask.objects.filter(name=row).update(**values, **({"enabled": False} if one_off else {}))
            if one_off:
                PeriodicTasks.update_changed()
        except Exception as error:  # noqa: BLE001 - the message is out: a table that is away must not send it again
            log.warning("what was sent could not be written into its row: %s", error, extra={"row": row})
        finally:
            close_old_connections()
        if one_off and repeats:
            try:
                self._scheduler.remove_all([WITHIN + plain_name(row)])
            except SolocronError as error:
                log.warning("a task that is to be sent once may be sent again: %s", error, extra={"row": row})
