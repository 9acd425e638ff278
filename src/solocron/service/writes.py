"""Every write of the service, in one place: what the client is asked to do, and in whose name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, cast

from solocron.client import Client
from solocron.client.audit import Audited
from solocron.client.backfill import BackfillChoice
from solocron.doctor import repair
from solocron.effects.locks.listing import LockView, force_release, list_locks
from solocron.errors import NotFoundError
from solocron.jobs.options import AddOptions
from solocron.model.change import Kind
from solocron.model.documents.audit import Act
from solocron.runtime import Threads
from solocron.schedules import Schedule
from solocron.stores.contract import Store
from solocron.views import BackfillView, JobView, RunView, SilenceView

__all__ = ["Writes"]


class Writes:
    """Asks the client to change something. Every call can be repeated without harm."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._ask = client

    @property
    def _client(self) -> Client:
        return self._ask()

    @property
    def _store(self) -> Store:
        return self._ask().store

    @property
    def place(self) -> tuple[str, str]:
        """The masked URL of the store and the namespace; nothing is opened for it."""
        return self._store.url, self._store.namespace

    def audited(self, act: Act) -> AbstractContextManager[Audited]:
        """Put an act on record before its body runs."""
        return self._client.audited(act)

    def trigger(
        self,
        job: str,
        payload: Any,
        *,
        at: datetime | None,
        shard: int | str | None,
        key: str,
        by: str,
        note: str | None,
    ) -> RunView:
        """Schedule a run, and return it as it stands; the same key is the same run."""
        run = self._client.trigger(job, payload, at=at, key=key, shard=shard, by=by, note=note)
        return self._client.get_run(run)

    def pause(self, job: str, *, by: str, note: str | None, until: datetime | None) -> JobView:
        """Pause a job."""
        return self._client.pause(job, by=by, note=note, until=until)

    def resume(self, job: str, *, by: str, note: str | None = None) -> JobView:
        """Resume a job."""
        return self._client.resume(job, by=by, note=note)

    def rerun(
        self, job: str, *, slot: datetime | None, failed_since: datetime | None, key: str, by: str, note: str | None
    ) -> list[str]:
        """Run a slot again, or all that failed since then; return the ids."""
        if slot is not None:
            return [self._client.rerun(job, slot, key=key, by=by, note=note)]
        assert failed_since is not None
        return self._client.rerun(job, failed_since=failed_since, key=key, by=by, note=note)

    def backfill(
        self,
        job: str,
        start: datetime,
        end: datetime,
        *,
        limit: int | None,
        rate: str | None,
        only: BackfillChoice,
        key: str,
        by: str,
        note: str | None,
    ) -> BackfillView:
        """Run every slot of a range; the same key is the same backfill."""
        return self._client.backfill(job, start, end, limit=limit, rate=rate, only=only, key=key, by=by, note=note)

    def cancel(self, run: str, *, by: str, note: str | None) -> str:
        """Stop a run; return `asked`, `cancelled`, or the status in which it had ended."""
        return self._client.cancel(run, by=by, note=note)

    def add(
        self,
        job: str,
        handler: str,
        schedule: str | Schedule,
        options: Mapping[str, Any],
        *,
        by: str,
        note: str | None,
    ) -> JobView:
        """Add a job as data, or change it."""
        return self._client.add(job, handler, schedule, by=by, note=note, **cast("AddOptions", options))

    def remove(self, job: str, *, by: str, note: str | None) -> None:
        """Remove a job that no live code declares."""
        self._client.remove(job, by=by, note=note)

    def silence(self, what: str, *, until: datetime, by: str, note: str | None) -> SilenceView:
        """Tell nothing of some alarms until an instant."""
        return self._client.silence(what, until=until, by=by, note=note)

    def lift_silence(self, what: str) -> None:
        """End a silence."""
        self._client.lift_silence(what)

    def repair(self) -> list[str]:
        """Do what a sweeper does by itself, and return what was done. It may watch a silent node for a whole lease."""
        return repair(self._store, Threads())

    def lock(self, name: str) -> LockView:
        """Return one lock; raise if there is none."""
        for view in list_locks(self._store):
            if view.name == name:
                return view
        raise NotFoundError(f"there is no lock {name!r:.210}. Nothing was changed.")

    def release(self, name: str, *, reason: str, by: str) -> LockView:
        """Take a lock from its holder."""
        return force_release(self._store, Threads(), name, reason=reason, by=by)

    def unblock(self, kind: Kind, name: str) -> None:
        """Let a document that was set aside be tried again."""
        if not self._store.unblock(kind, name):
            raise NotFoundError(f"{kind} {name!r:.210} is not set aside. Nothing was changed.")
