"""Wrong about documents: loses, mixes up, cuts off or makes up what was written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from solocron.model.change import Absent, Change, Kind
from solocron.stores.contract import Applied, ChangeFn, Gate, JobCounts, Named, Result, Verdict, Which
from solocron.stores.drafts import Draft, Row
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Kept, Space
from tests.stores.wrong_stores.registry import breaks


@breaks("test_a_missing_document_is_handed_over_as_absent_and_can_be_created")
class HandsOverNone(MemoryStore):
    """A missing calendar is None instead of Absent."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        def blind(doc: Any, now: int) -> Change | None:
            return change(None if isinstance(doc, Absent) and doc.kind is Kind.CALENDAR else doc, now)

        return super().update(which, blind, session=session, gate=gate)


@breaks(
    "test_a_change_sees_the_document_and_replaces_it",
    "test_a_job_is_due_again_when_it_says_so",
    "test_a_redefined_job_moves_to_its_new_handler_and_pool",
    "test_held_by_follows_claims_ends_and_deletions",
    "test_a_run_is_claimed_finished_and_taken_over",
)
class InsertsOnly(MemoryStore):
    """An existing document is never replaced."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        if new is None or name not in space.docs[kind]:
            super()._put(space, kind, name, new)


@breaks(
    "test_a_deleted_document_is_absent_and_can_be_created_again",
    "test_one_name_in_every_kind_is_as_many_documents",
    "test_plain_documents_are_held_too",
    "test_a_job_that_is_removed_goes_with_its_last_hold",
    "test_requests_change_what_runs",
)
class NeverDeletes(MemoryStore):
    """A deletion is accepted and forgotten."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        if new is not None:
            super()._put(space, kind, name, new)


class _Rewrites(MemoryStore):
    """Gives other results than the reference."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = super().update(which, change, session=session, gate=gate)
        return replace(applied, results=tuple(self.rewritten(each) for each in applied.results))

    def rewritten(self, result: Result) -> Result:
        return result


@breaks("test_a_declined_change_writes_nothing_and_shows_the_document")
class HidesTheDeclined(_Rewrites):
    """A declined document is not shown."""

    def rewritten(self, result: Result) -> Result:
        return replace(result, doc=None) if result.verdict is Verdict.DECLINED else result


@breaks("test_handing_back_the_very_document_is_applied_and_carries_the_answer")
class DropsTheAnswer(MemoryStore):
    """Nothing to write, so nothing to answer."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        def silent(doc: Any, now: int) -> Change | None:
            made = change(doc, now)
            return made if made is None or made.doc is not doc or made.records else None

        return super().update(which, silent, session=session, gate=gate)


@breaks(
    "test_one_name_in_every_kind_is_as_many_documents",
    "test_a_missing_document_is_handed_over_as_absent_and_can_be_created",
)
class MixesKinds(MemoryStore):
    """Locks, keys, steps and calendars lie in one table without their kind."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        plain = (Kind.LOCK, Kind.KEY, Kind.STEP, Kind.CALENDAR)
        for other in plain if kind in plain else (kind,):
            super()._put(space, other, name, new)


@breaks("test_named_answers_in_the_order_of_the_names_each_once")
class SortsNames(MemoryStore):
    """Answers in its own order."""

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        return dict(sorted(super()._select(space, which, now).items()))


@breaks("test_a_thousand_names_in_one_update")
class CutsBatches(MemoryStore):
    """More names than the driver takes parameters: the rest is left out."""

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        return dict(list(super()._select(space, which, now).items())[:999])


@breaks("test_names_are_compared_exactly")
class FoldsNames(MemoryStore):
    """A case-insensitive collation."""

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        if isinstance(which, Named):
            which = Named(which.kind, tuple(self._known(which.kind, which.names)))
        return super().update(which, change, session=session, gate=gate)

    def _known(self, kind: Kind, names: Iterable[str]) -> Iterable[str]:
        with self._locked("collate") as space:
            known = {name.casefold(): name for name in space.docs[kind]}
        for name in names:
            yield known.setdefault(name.casefold(), name)


@breaks("test_names_are_compared_exactly", "test_all_of_a_kind_comes_in_pages_in_the_order_of_names")
class OrdersByLanguage(MemoryStore):
    """ORDER BY name in the collation of some country."""

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        found = super()._select(space, which, now)
        return found if isinstance(which, Named) else dict(sorted(found.items(), key=lambda item: item[0].casefold()))


class _Mangles(MemoryStore):
    """Writes other texts than it was given."""

    def prepare(self, draft: Draft) -> None:
        if draft.fixed is not None:
            draft.fixed = self.mangled(draft.fixed)
        draft.state = draft.state and self.mangled(draft.state)

    def mangled(self, text: str) -> str:
        return text


@breaks("test_strange_texts_come_back_as_they_went_in", "test_payloads_of_64_kilobytes_come_back_whole")
class KnowsOnlyThreeBytes(_Mangles):
    """MySQL's utf8, which is not UTF-8."""

    def mangled(self, text: str) -> str:
        return "".join(char if char < "\U00010000" else "?" for char in text)


@breaks("test_payloads_of_64_kilobytes_come_back_whole")
class CutsTexts(_Mangles):
    """A column that is too short."""

    def mangled(self, text: str) -> str:
        return text if len(text.encode()) < 2**16 else '{"d":{"handler":"h"},"i":1,"body":{}}'


@breaks("test_every_field_of_a_document_is_kept")
class KeepsWhatItKnows(_Mangles):
    """Drops the keys that newer code keeps in a document."""

    def mangled(self, text: str) -> str:
        value: dict[str, Any] = json.loads(text)
        value.pop("newer", None)
        return json.dumps(value)


@breaks(
    "test_shards_are_claimed_finished_and_taken_over_each_by_itself",
    "test_a_part_is_for_its_node_alone",
)
class KnowsTheOldFields(_Mangles):
    """Columns for the fields of a run that there were at first, and none for those that came later."""

    def mangled(self, text: str) -> str:
        value: dict[str, Any] = json.loads(text)
        for key, fields in (("a", 13), ("o", 8)):
            if key in value:
                value[key] = [run[:fields] for run in value[key]]
        return json.dumps(value)


@breaks("test_a_change_that_raises_for_a_missing_document_disturbs_nobody")
class MakesPlaceholders(MemoryStore):
    """A change that fails for a missing name leaves a document behind."""

    def fails_again(self, kind: Kind, name: str, reason: str) -> None:
        with self._locked("placeholder") as space:
            if name not in space.docs[kind]:
                empty = Row(name, 0, '{"d":{"handler":"h"},"i":1}', '{"c":0,"f":0}')
                self._put(space, kind, name, Kept(row=empty))
        super().fails_again(kind, name, reason)


@breaks("test_jobs_are_found_and_counted_by_their_marks")
class CountsMarkedJobsOnly(MemoryStore):
    """The number of all jobs is that of those that bear a mark."""

    def count_jobs(self) -> JobCounts:
        found = super().count_jobs()
        return JobCounts(all=sum(found.marked.values()), marked=found.marked)


@breaks("test_jobs_of_every_pool_are_listed_by_when_they_are_due")
class ListsByName(MemoryStore):
    """What is due first is whatever comes first by name."""

    def due_times(
        self, limit: int = 100, *, after: tuple[int, str] | None = None, until: int | None = None
    ) -> tuple[tuple[int, str], ...]:
        found = super().due_times(10**9, after=after, until=until)
        return tuple(sorted(found, key=lambda one: one[1])[:limit])
