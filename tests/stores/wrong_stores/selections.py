"""Wrong about selections: too early, too many, too few, in the wrong order, or not where they belong any more."""

from __future__ import annotations

from dataclasses import replace

from solocron.clock import MILLISECOND
from solocron.model.change import Kind
from solocron.stores.contract import (
    All,
    Applied,
    ChangeFn,
    Doc,
    Due,
    Gate,
    HeldBy,
    HeldByAny,
    RecentSessions,
    Verdict,
    Which,
)
from solocron.stores.documents import QUEUES, kind_of
from solocron.stores.drafts import readable
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Kept, Space
from tests.stores.wrong_stores.registry import breaks


@breaks("test_nothing_is_selected_before_it_is_due")
class ComesEarly(MemoryStore):
    """Looks a millisecond ahead, as a node whose own clock decides would."""

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        return super()._select(space, which, now + (MILLISECOND if isinstance(which, Due) else 0))


@breaks("test_due_jobs_come_oldest_first_up_to_the_limit")
class NewestFirst(MemoryStore):
    """Without ORDER BY, or with the wrong one."""

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        found = super()._select(space, which, now)
        return dict(reversed(found.items())) if isinstance(which, Due) else found


@breaks(
    "test_only_jobs_of_these_handlers_and_pools_are_due",
    "test_next_due_is_the_earliest_instant_of_what_was_not_returned",
    "test_next_due_knows_handlers_and_pools",
)
class IgnoresHandlers(MemoryStore):
    """Every job is due here."""

    def _fits(self, which: Due, kept: Kept) -> bool:
        return kept.pool in which.pools and kept.row.name not in which.exclude


@breaks("test_only_jobs_of_these_handlers_and_pools_are_due", "test_next_due_knows_handlers_and_pools")
class IgnoresPools(MemoryStore):
    """Jobs of other pools are due here too."""

    def _fits(self, which: Due, kept: Kept) -> bool:
        return kept.handler in which.handlers and kept.row.name not in which.exclude


@breaks("test_excluded_jobs_are_left_out_and_make_room")
class ExcludesAfterTheLimit(MemoryStore):
    """What is excluded still takes a place of the limit: n of them starve all others."""

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        if not isinstance(which, Due):
            return super()._select(space, which, now)
        found = super()._select(space, replace(which, exclude=frozenset()), now)
        return {name: row for name, row in found.items() if name not in which.exclude}


@breaks("test_next_due_is_the_earliest_instant_of_what_was_not_returned")
class ForgetsWhatTheLimitCut(MemoryStore):
    """The next instant is looked for in the future alone."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = super().update(which, change, session=session, gate=gate)
        late = applied.next_due is not None and applied.next_due <= applied.now
        return replace(applied, next_due=None) if late else applied


@breaks("test_next_due_is_the_earliest_instant_of_what_was_not_returned")
class CountsWhatItReturned(MemoryStore):
    """The next instant is that of a job which was just handed over and declined: the caller spins."""

    def _next_due(self, space: Space, which: Due) -> int | None:
        return super()._next_due(space, replace(which, exclude=frozenset()))


@breaks(
    "test_a_job_is_due_again_when_it_says_so",
    "test_a_redefined_job_moves_to_its_new_handler_and_pool",
    "test_held_by_follows_claims_ends_and_deletions",
)
class NeverReindexes(MemoryStore):
    """The columns are written with the first version of a document and then forgotten."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        old = space.docs[kind].get(name)
        if old and new:
            new = replace(new, due_at=old.due_at, holders=old.holders, handler=old.handler, pool=old.pool)
        super()._put(space, kind, name, new)


@breaks("test_a_declined_job_stays_due")
class SetsTheDeclinedAside(MemoryStore):
    """What one node declines, no node gets."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = super().update(which, change, session=session, gate=gate)
        for result in applied.results:
            if result.verdict is Verdict.DECLINED:
                self.fails_again(kind_of(which), result.name, "declined")
        return applied


@breaks(
    "test_held_by_finds_every_job_that_names_the_session",
    "test_holders_names_every_session_that_holds_anything",
)
class KnowsOneHolder(MemoryStore):
    """The index has room for one holder of a document."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        super()._put(space, kind, name, new and replace(new, holders=frozenset(sorted(new.holders)[:1])))


@breaks("test_a_run_in_a_queue_is_found_with_what_is_held")
class ForgetsQueues(MemoryStore):
    """Only sessions are holders here: what waits in a queue is in no listing of what is under way."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        super()._put(space, kind, name, new and replace(new, holders=new.holders - {QUEUES}))


@breaks("test_held_by_follows_claims_ends_and_deletions", "test_plain_documents_are_held_too")
class ForgetsHoldersOnUpdate(MemoryStore):
    """A second write of a document loses it from the index, though it is still held."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        again = name in space.docs[kind]
        super()._put(space, kind, name, new and replace(new, holders=frozenset()) if again else new)


@breaks("test_held_by_follows_claims_ends_and_deletions", "test_holders_names_every_session_that_holds_anything")
class KeepsOldHolders(MemoryStore):
    """Who once held a document holds it forever."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        old = space.docs[kind].get(name)
        super()._put(space, kind, name, replace(new, holders=new.holders | old.holders) if old and new else new)


@breaks("test_an_update_of_what_is_held_reaches_all_of_it", "test_an_unreadable_document_is_set_aside_alone")
class SweepsAFew(MemoryStore):
    """A sweep that passes over some documents leaves holds that no node will ever end."""

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        found = super()._select(space, which, now)
        return dict(list(found.items())[:3]) if isinstance(which, HeldBy) else found


@breaks(
    "test_plain_documents_are_held_too",
    "test_holders_names_every_session_that_holds_anything",
    "test_a_permit_has_one_holder_and_goes_with_its_session",
)
class IndexesJobsAlone(MemoryStore):
    """Locks and keys have holders too."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        held = kind is Kind.JOB or new is None
        super()._put(space, kind, name, new if held else replace(new, holders=frozenset()))  # type: ignore[type-var]


@breaks("test_holders_names_every_session_that_holds_anything")
class NamesKnownHolders(MemoryStore):
    """Only sessions that exist are named; holds of missing ones stay forever."""

    def holders(self) -> frozenset[str]:
        with self._locked("holders") as space:
            known = space.docs[Kind.SESSION].keys()
        return super().holders() & known


@breaks(
    "test_held_is_everything_that_any_session_holds",
    "test_what_runs_is_in_the_document_and_what_has_ended_in_the_log",
)
class HoldsNothingAnyMore(MemoryStore):
    """What was held once counts as held."""

    def _selects(self, space: Space, which: Which, name: str, now: int) -> bool:
        return isinstance(which, HeldByAny) or super()._selects(space, which, name, now)

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        if isinstance(which, HeldByAny):
            return {name: row for name, row in sorted(space.docs[which.kind].items()) if row is not None}
        return super()._select(space, which, now)


@breaks("test_the_sessions_of_a_span_are_found_without_those_swept_before_it")
class KeepsAllSessionsInSight(MemoryStore):
    """Every session of the last month is read for a picture of the last hour."""

    def _selects(self, space: Space, which: Which, name: str, now: int) -> bool:
        return isinstance(which, RecentSessions) or super()._selects(space, which, name, now)


@breaks("test_names_come_in_pages_without_their_documents")
class NamesWithoutEnd(MemoryStore):
    """A page of names is all of them."""

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        return super().names(kind, after, 10**9)


@breaks(
    "test_all_of_a_kind_comes_in_pages_in_the_order_of_names",
    "test_an_update_of_a_page_touches_that_page_alone",
)
class RepeatsTheLastName(MemoryStore):
    """Pages overlap by one."""

    def _selects(self, space: Space, which: Which, name: str, now: int) -> bool:
        return (isinstance(which, All) and name == which.after) or super()._selects(space, which, name, now)


@breaks("test_an_unreadable_document_hides_none_after_its_page")
class CutsPagesShort(MemoryStore):
    """Drops what it cannot read after it has counted the page, so that the page looks like the last one."""

    def read(self, which: Which) -> tuple[Doc, ...]:
        rows = self.select(which).rows.values()
        found = [readable(kind_of(which), row) for row in rows if row is not None]
        return tuple(doc for doc in found if doc is not None)


@breaks("test_the_audit_is_read_newest_first_and_the_old_is_found_behind_one_name")
class ReadsTheOldestEntriesFirst(MemoryStore):
    """The audit begins with last year."""

    def read(self, which: Which) -> tuple[Doc, ...]:
        found = super().read(which)
        return found[::-1] if isinstance(which, All) and which.kind is Kind.AUDIT else found
