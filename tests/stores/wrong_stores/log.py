"""Wrong about the log: a second step, a second record, a second end; or it forgets what still matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solocron.model.change import Change, Kind
from solocron.model.documents.run import Entry, Op, Record, Status
from solocron.model.documents.session import Life
from solocron.stores.contract import Query, Result
from solocron.stores.memory import Draft, MemoryStore
from solocron.stores.memory_state import LogKey, Row, Space
from tests.stores.wrong_stores.registry import breaks


@breaks(
    "test_a_second_record_of_an_attempt_is_refused_with_its_document",
    "test_a_duplicate_record_sets_only_its_document_aside",
)
class LogsInASecondStep(MemoryStore):
    """The document is written first; if the log then refuses, the claim stands without a record."""

    def _commit(self, space: Space, kind: Kind, draft: Draft, now: int) -> Result:
        if draft.change is None:
            return super()._commit(space, kind, draft, now)
        super()._commit(space, kind, replace(draft, change=Change(draft.change.doc)), now)
        return super()._commit(space, kind, draft, now)


@breaks(
    "test_the_entries_of_a_document_are_written_with_it",
    "test_progress_is_noted_while_it_runs_and_kept_when_it_ends",
    "test_a_run_is_claimed_finished_and_taken_over",
)
class ForgetsEntriesAlone(MemoryStore):
    """The document is the same, so nothing is written, not even its entries."""

    def _commit(self, space: Space, kind: Kind, draft: Draft, now: int) -> Result:
        if draft.change is not None and draft.change.doc is draft.doc:
            draft = replace(draft, change=replace(draft.change, entries=()))
        return super()._commit(space, kind, draft, now)


@breaks("test_the_entries_of_a_document_are_written_with_it", "test_a_job_that_is_removed_goes_with_its_last_hold")
class ForgetsLastEntries(MemoryStore):
    """A deleted document takes its entries along."""

    def _commit(self, space: Space, kind: Kind, draft: Draft, now: int) -> Result:
        if draft.change is not None and draft.change.doc is None:
            draft = replace(draft, change=replace(draft.change, entries=()))
        return super()._commit(space, kind, draft, now)


@breaks("test_a_record_can_be_opened_and_closed_in_one_step")
class SeesOnlyWhatLies(MemoryStore):
    """What an update opens, it cannot close."""

    def _records(self, space: Space, entries: tuple[Entry, ...]) -> dict[LogKey, Record]:
        opened = super()._records(space, tuple(entry for entry in entries if entry.op is Op.OPEN))
        return super()._records(space, tuple(entry for entry in entries if entry.op is not Op.OPEN)) | opened


class _Records(MemoryStore):
    """Makes other records of the entries."""

    def _records(self, space: Space, entries: tuple[Entry, ...]) -> dict[LogKey, Record]:
        made = super()._records(space, entries)
        for entry in entries:
            key = (entry.record.run, entry.record.attempt)
            if (new := self.instead(entry, space.log.get(key), made.get(key))) is not None:
                made[key] = new
        return made

    def instead(self, entry: Entry, old: Record | None, new: Record | None) -> Record | None:
        return new


@breaks(
    "test_a_second_record_of_an_attempt_is_refused_with_its_document",
    "test_a_duplicate_record_sets_only_its_document_aside",
)
class OverwritesRecords(MemoryStore):
    """A second record of an attempt replaces the first."""

    def _records(self, space: Space, entries: tuple[Entry, ...]) -> dict[LogKey, Record]:
        opened = {(e.record.run, e.record.attempt): e.record for e in entries if e.op is Op.OPEN}
        return opened | super()._records(space, tuple(e for e in entries if e.op is not Op.OPEN))


@breaks("test_what_has_ended_is_never_rewritten")
class RewritesTheEnd(_Records):
    """A late holder closes what somebody else has closed."""

    def instead(self, entry: Entry, old: Record | None, new: Record | None) -> Record | None:
        ended = old is not None and old.status is not Status.RUNNING
        return entry.record if ended and entry.op is Op.CLOSE else new


@breaks("test_what_has_ended_is_never_rewritten")
class NotesAfterTheEnd(_Records):
    """Progress of a run that is over."""

    def instead(self, entry: Entry, old: Record | None, new: Record | None) -> Record | None:
        return replace(old, progress=entry.record.progress) if old and entry.op is Op.NOTE else new


@breaks(
    "test_closing_ends_a_running_record_and_keeps_how_it_began",
    "test_progress_is_noted_while_it_runs_and_kept_when_it_ends",
)
class ReplacesOnClosing(_Records):
    """Closing writes the whole record anew, so that it moves in the history and loses its progress."""

    def instead(self, entry: Entry, old: Record | None, new: Record | None) -> Record | None:
        return entry.record if new and entry.op is Op.CLOSE else new


@breaks("test_a_record_comes_back_as_it_was_written")
class KeepsNoFirst(_Records):
    """A summary does not know where it began."""

    def instead(self, entry: Entry, old: Record | None, new: Record | None) -> Record | None:
        return new and replace(new, first=None)


@breaks("test_history_is_newest_first_and_asks_by_anything", "test_a_query_alone_gives_the_newest_fifty")
class OldestFirst(MemoryStore):
    """The first pages of a long history are its oldest."""

    def history(self, query: Query) -> tuple[Record, ...]:
        return super().history(replace(query, limit=10**9))[::-1][: query.limit]


@breaks("test_history_is_newest_first_and_asks_by_anything")
class IncludesTheEnd(MemoryStore):
    """`until` counts twice, here and on the next page."""

    def history(self, query: Query) -> tuple[Record, ...]:
        return super().history(replace(query, until=None if query.until is None else query.until + 1))


@breaks("test_a_tally_counts_attempts_and_the_slots_of_summaries", "test_requests_change_what_runs")
class CountsRecords(MemoryStore):
    """A year of missed slots is one."""

    def tally(self, since: int) -> dict[str, int]:
        with self._locked("tally") as space:
            found = [record.status for record in space.log.values() if record.recorded_at >= since]
        return {status: found.count(status) for status in found}


@breaks("test_pruning_removes_what_ended_before_then_a_few_at_a_time")
class PrunesEverything(MemoryStore):
    """One delete of a year's history, and the store stands still for a minute."""

    def prune(self, before: int, limit: int) -> int:
        return super().prune(before, 10**9)


@breaks("test_pruning_never_removes_what_still_runs")
class PrunesWhatRuns(MemoryStore):
    """A long run loses its record before it has ended."""

    def prune(self, before: int, limit: int) -> int:
        with self._locked("prune") as space:
            old: list[Any] = [key for key, record in space.log.items() if record.recorded_at < before][:limit]
            for key in old:
                del space.log[key]
        return len(old)


@breaks("test_only_swept_sessions_that_ended_before_then_are_pruned")
class PrunesTheDead(MemoryStore):
    """A dead session whose holds nobody has taken over yet is gone."""

    def prune(self, before: int, limit: int) -> int:
        with self._locked("prune") as space:
            for row in list(space.rows[Kind.SESSION].values()):
                if row.life is Life.DEAD and (row.ended_at or 0) < before:
                    self._put(space, Kind.SESSION, row.name, None)
        return super().prune(before, limit)


@breaks("test_only_swept_sessions_that_ended_before_then_are_pruned")
class KeepsTheSwept(MemoryStore):
    """A session for every start of every node, for ever."""

    def _put(self, space: Space, kind: Kind, name: str, new: Row | None) -> None:
        if new is not None or kind is not Kind.SESSION:
            super()._put(space, kind, name, new)
