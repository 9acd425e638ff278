"""Wrong in races: reads and then writes, revives, gives up, or lets a dead session write."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from solocron.errors import StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.stores import drafts
from solocron.stores.contract import Applied, Capabilities, ChangeFn, Gate, Named, Which
from solocron.stores.drafts import Draft
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Kept, Space
from tests.stores.wrong_stores.registry import a_moment, breaks


@breaks(
    "test_of_twenty_clients_one_gets_the_slot",
    "test_of_twenty_clients_one_creates_a_document",
    "test_of_many_clients_one_takes_the_step_of_a_message",
    "test_no_write_is_lost",
    "test_a_change_in_between_is_not_overwritten",
    "test_what_was_deleted_in_between_does_not_come_back",
    "test_a_document_deleted_and_made_anew_is_another_document",
    "test_a_due_job_that_another_took_in_between_is_not_claimed_again",
    "test_many_due_jobs_are_shared_out_each_to_one",
    "test_batches_in_opposite_orders_all_get_through",
    "test_one_client_serves_many_threads",
    "test_a_renewal_of_a_buried_session_is_refused",
    "test_a_renewal_never_makes_a_session",
)
class ReadsThenWrites(MemoryStore):
    """Compares nothing: the last writer wins."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        waited: list[bool] = []

        def slow(doc: Any, now: int) -> Change | None:
            if not waited:
                waited.append(True)
                a_moment()
            return change(doc, now)

        return super().update(which, slow, session=session, gate=gate)

    def _is_current(self, space: Space, draft: Draft) -> bool:
        return True


@breaks("test_what_was_deleted_in_between_does_not_come_back", "test_a_renewal_never_makes_a_session")
class Upserts(MemoryStore):
    """INSERT ... ON CONFLICT UPDATE: a late renewal brings back what was pruned."""

    def _is_current(self, space: Space, draft: Draft) -> bool:
        return draft.name not in space.docs[draft.kind] or super()._is_current(space, draft)


@breaks("test_a_document_deleted_and_made_anew_is_another_document")
class CountsVersionsAnew(MemoryStore):
    """A document made anew has the version of the one that was deleted."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        old = space.docs[kind].get(name)
        mark = old.row.mark + 1 if old else 1
        super()._put(space, kind, name, new and replace(new, row=new.row._replace(mark=mark)))


@breaks("test_what_was_lost_to_another_is_tried_again")
class GivesUp(MemoryStore):
    """One lost race, and the caller comes back empty-handed."""

    rounds = 1


@breaks("test_a_due_job_that_another_took_in_between_is_not_claimed_again")
class HandsOverWhatIsTaken(MemoryStore):
    """Tries a lost document again though it has left the selection."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drafts, "is_selected", lambda which, doc, now: True)
            return super().update(which, change, session=session, gate=gate)


@breaks("test_a_renewal_never_says_that_a_session_holds_nothing_while_it_does")
class SaysThatNothingIsHeld(MemoryStore):
    """Tells every session that it holds nothing."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        return replace(super().update(which, change, session=session, gate=gate), holds=False)


@breaks("test_a_sweep_passes_over_nothing_that_is_just_being_changed")
class SkipsWhatIsLocked(MemoryStore):
    """SKIP LOCKED in a sweep: the hold that was passed over is never ended."""

    locked: ClassVar[set[str]] = set()

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        mine = set(which.names) if isinstance(which, Named) else set()
        self.locked.update(mine)
        try:
            return super().update(which, change, session=session, gate=gate)
        finally:
            self.locked.difference_update(mine)

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        found = super()._select(space, which, now)
        return {name: row for name, row in found.items() if isinstance(which, Named) or name not in self.locked}


_TABLE: dict[str, threading.Lock] = {}


@breaks("test_batches_in_opposite_orders_all_get_through")
class Deadlocks(MemoryStore):
    """Locks rows in the order in which they were named."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        if not (isinstance(which, Named) and which.kind is Kind.KEY):
            return super().update(which, change, session=session, gate=gate)
        locked = []
        try:
            for name in which.names:
                lock = _TABLE.setdefault(name, threading.Lock())
                if not lock.acquire(timeout=0.1):
                    raise StoreUnavailable("deadlock detected; nothing was written. Repeat it.")
                locked.append(lock)
                if len(locked) == 1:
                    a_moment()
            return super().update(which, change, session=session, gate=gate)
        finally:
            for lock in locked:
                lock.release()


@breaks("test_one_client_serves_many_threads")
class HasOneConnection(MemoryStore):
    """A second thread on the same client finds the connection in use."""

    busy = False

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        if self.busy:
            raise StoreUnavailable("the connection is in use; nothing was written. Use another client.")
        self.busy = True
        try:
            a_moment()
            return super().update(which, change, session=session, gate=gate)
        finally:
            self.busy = False


@breaks(
    "test_processes_share_out_due_jobs_each_to_one",
    "test_a_client_that_was_forked_goes_on_in_both_processes",
    "test_a_signal_reaches_other_processes",
    "test_any_number_of_processes_may_open_a_new_world_at_once",
)
class SaysThatItIsShared(MemoryStore):
    """Every process has a world of its own: the disaster that this library is about."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, shared=True)


@breaks(
    "test_a_session_that_is_not_live_writes_nothing",
    "test_a_session_writes_its_own_documents_under_its_own_condition",
    "test_a_run_is_claimed_finished_and_taken_over",
    "test_a_permit_is_not_taken_by_a_dead_session",
)
class IgnoresSessions(MemoryStore):
    """A claim is granted to every client that asks."""

    def _is_live(self, space: Space, session: str) -> bool:
        return True


@breaks(
    "test_no_claim_is_committed_after_the_burial_that_came_in_between",
    "test_no_claim_is_committed_after_a_burial_at_the_same_time",
)
class ChecksSessionsTooSoon(MemoryStore):
    """The session is looked at before the change is computed, not in the commit: its holds have no live session."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        with self._locked("session") as space:
            if session is not None and not self._is_live(space, session):
                return Applied(results=(), now=self.world.now(), alive=False)
        if session is not None:
            a_moment()
        return super().update(which, change)


@breaks("test_a_session_writes_its_own_documents_under_its_own_condition")
class TiesJobsAlone(MemoryStore):
    """Steps, keys and locks of a dead session are still written."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        plain = isinstance(which, Named) and which.kind is not Kind.JOB
        return super().update(which, change, session=None if plain else session)


@breaks("test_a_live_session_writes_also_when_it_has_expired")
class BuriesByTheClock(MemoryStore):
    """Expiry ends a session, so one step of the clock ends them all."""

    def _is_live(self, space: Space, session: str) -> bool:
        row = space.row(Kind.SESSION, session)
        expires_at = json.loads(row.state)["expires_at"] if row else 0
        return super()._is_live(space, session) and bool(expires_at > self.world.now())


@breaks("test_claims_and_renewals_of_one_session_do_not_hinder_each_other")
class ComparesTheSessionsVersion(MemoryStore):
    """A claim fails because its session was renewed meanwhile."""

    seen: tuple[str | None, int | None] = (None, None)

    def _is_live(self, space: Space, session: str) -> bool:
        row = space.row(Kind.SESSION, session)
        now = (session, row.mark if row else None)
        if self.seen[0] != session:
            self.seen = now
        return super()._is_live(space, session) and self.seen == now
