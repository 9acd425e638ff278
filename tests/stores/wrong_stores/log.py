"""Wrong about the log: a second step, a second record, a second end; or it forgets what still matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from solocron.model.change import Change, Kind
from solocron.model.documents.run import Record
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import All, Named, Page, Query
from solocron.stores.drafts import Draft
from solocron.stores.log import divided, parts_within
from solocron.stores.memory import MemoryStore
from solocron.stores.memory_state import Kept, Space
from tests.stores.wrong_stores.registry import breaks


@breaks(
    "test_the_first_record_of_an_attempt_stays_and_the_change_stands",
    "test_an_end_that_is_on_record_already_ends_its_hold_all_the_same",
    "test_a_record_that_is_there_already_keeps_no_document_from_its_change",
)
class RefusesTheSecond(MemoryStore):
    """A record that is there already keeps its document from being written: the end is repeated forever."""

    def prepare(self, draft: Draft) -> None:
        with self._locked("look") as space:
            for record in () if draft.change is None else draft.change.records:
                if space.log.get((record.run, record.attempt), record) != record:
                    raise ValueError("duplicate record")


@breaks(
    "test_the_first_record_of_an_attempt_stays_and_the_change_stands",
    "test_an_end_that_is_on_record_already_ends_its_hold_all_the_same",
    "test_a_record_that_is_there_already_keeps_no_document_from_its_change",
    "test_of_two_equal_attempts_in_one_update_the_first_is_kept",
)
class SaysNothingOfTheSecond(MemoryStore):
    """No client learns that an attempt ended twice."""

    def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
        super()._append(space, records)
        return ()


@breaks("test_a_change_appends_any_number_of_records")
class AppendsAThousand(MemoryStore):
    """As many as one commit holds; the rest is gone without a word."""

    def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
        return super()._append(space, records[:1_000])


@breaks("test_the_very_same_record_again_is_no_duplicate")
class CallsEveryRepeatADuplicate(MemoryStore):
    """A commit that was repeated raises an alarm."""

    def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
        firsts = tuple(space.log[key] for r in records if (key := (r.run, r.attempt)) in space.log)
        super()._append(space, records)
        return firsts


@breaks("test_the_records_of_a_document_are_appended_with_it")
class ForgetsRecordsAlone(MemoryStore):
    """The document is the same, so nothing is written, not even its records."""

    def _write(self, space: Space, draft: Draft) -> tuple[Record, ...]:
        assert draft.change is not None
        return () if draft.change.doc is draft.doc else super()._write(space, draft)


@breaks("test_the_records_of_a_document_are_appended_with_it", "test_a_job_that_is_removed_goes_with_its_last_hold")
class ForgetsLastRecords(MemoryStore):
    """A deleted document takes its records along."""

    def _write(self, space: Space, draft: Draft) -> tuple[Record, ...]:
        if draft.change is not None and draft.change.doc is None:
            draft = replace(draft, change=replace(draft.change, records=()))
        return super()._write(space, draft)


@breaks(
    "test_the_first_record_of_an_attempt_stays_and_the_change_stands",
    "test_a_record_never_changes",
    "test_an_end_that_is_on_record_already_ends_its_hold_all_the_same",
)
class OverwritesRecords(MemoryStore):
    """A second record of an attempt replaces the first."""

    def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
        firsts = super()._append(space, records)
        space.log.update({(record.run, record.attempt): record for record in records})
        return firsts


@breaks("test_a_record_comes_back_as_it_was_written")
class KeepsNoFirst(MemoryStore):
    """A summary does not know where it began."""

    def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
        return super()._append(space, tuple(replace(record, first=None) for record in records))


@breaks("test_history_is_newest_first_and_asks_by_anything", "test_a_query_alone_gives_the_newest_fifty")
class OldestFirst(MemoryStore):
    """The first pages of a long history are its oldest."""

    def history(self, query: Query) -> Page:
        page = super().history(replace(query, limit=10**9))
        return Page(page.records[::-1][: query.limit], page.next)


@breaks("test_history_is_newest_first_and_asks_by_anything")
class IncludesTheEnd(MemoryStore):
    """`until` counts twice, here and on the next page."""

    def history(self, query: Query) -> Page:
        return super().history(replace(query, until=None if query.until is None else query.until + 1))


@breaks("test_history_is_read_page_by_page")
class PagesByTimeAlone(MemoryStore):
    """The rest of an instant is not on the next page."""

    def history(self, query: Query) -> Page:
        return super().history(query if query.before is None else replace(query, until=query.before[0], before=None))


@breaks("test_a_search_without_an_index_looks_at_a_bounded_part")
class LooksAtEverything(MemoryStore):
    """A filter that finds nothing reads a year."""

    def history(self, query: Query) -> Page:
        return super().history(replace(query, scan=10**9))


@breaks("test_the_shards_of_a_run_are_found_by_its_name")
class FindsNamesThatBeginAlike(MemoryStore):
    """The shards of another run whose name begins alike are found too."""

    def history(self, query: Query) -> Page:
        if query.group is None:
            return super().history(query)
        found = super().history(replace(query, group=None, limit=10**9)).records
        return Page(tuple(record for record in found if record.run.startswith(query.group)))


@breaks("test_a_tally_counts_attempts_and_the_slots_of_summaries", "test_requests_change_what_runs")
class CountsRecords(MemoryStore):
    """A year of missed slots is one."""

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        records = [replace(record, count=1) for record in self.records()]
        return parts_within(divided(since, until, bucket, job=job), bucket, records)


@breaks("test_a_tally_ends_where_it_was_told_and_knows_one_job")
class CountsWhatFollows(MemoryStore):
    """An hour that is over is counted with all that came after it."""

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        return parts_within(Query(since=since, job=job), bucket, self.records())


@breaks("test_a_tally_ends_where_it_was_told_and_knows_one_job", "test_a_span_is_counted_in_parts")
class CountsEveryJob(MemoryStore):
    """The page of a job shows the counts of all of them."""

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        return super().tally_by_time(since, until, bucket)


@breaks("test_a_span_is_counted_in_parts")
class BeginsPartsAtZero(MemoryStore):
    """The first part begins before the span."""

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        return super().tally_by_time(since - since % bucket, until, bucket, job=job)


@breaks("test_a_span_is_counted_by_node")
class CountsNodesTogether(MemoryStore):
    """The lanes of all nodes show the same."""

    def density(self, since: int, until: int, bucket: int) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
        return {(part, None): counts for part, counts in self.tally_by_time(since, until, bucket).items()}


@breaks("test_pruning_removes_what_ended_before_then_a_few_at_a_time")
class PrunesEverything(MemoryStore):
    """One delete of a year's history, and the store stands still for a minute."""

    def prune(self, before: int, limit: int) -> int:
        return super().prune(before, 10**9)


@breaks("test_only_swept_sessions_that_ended_before_then_are_pruned")
class PrunesTheDead(MemoryStore):
    """A dead session whose holds are not taken over yet is gone."""

    def prune(self, before: int, limit: int) -> int:
        dead = [doc for doc in self.read(All(Kind.SESSION)) if isinstance(doc, Session) and doc.state is Life.DEAD]
        names = tuple(doc.name for doc in dead if (doc.ended_at or 0) < before)
        self.update(Named(Kind.SESSION, names), lambda doc, now: Change(None))
        return super().prune(before, limit)


@breaks("test_only_swept_sessions_that_ended_before_then_are_pruned")
class KeepsTheSwept(MemoryStore):
    """A session for every start of every node, forever."""

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        if new is not None or kind is not Kind.SESSION:
            super()._put(space, kind, name, new)


@breaks("test_the_newest_records_of_several_jobs_are_read_together")
class ReadsAllJobsTogether(MemoryStore):
    """The newest of all of them: a busy job leaves a rare one without any."""

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        found: dict[str, tuple[Record, ...]] = {}
        for record in self.history(Query(limit=limit)).records:
            if record.job in jobs:
                found[record.job] = (*found.get(record.job, ()), record)
        return found
