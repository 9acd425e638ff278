"""The log: appended with the document or not at all, never changed, found again, and pruned without harm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.errors import InvalidError
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.documents.session import Life
from solocron.stores.contract import All, HeldByAny, Named, Query, Verdict
from solocron.testing.conformance.kit import (
    HOUR,
    Clients,
    counts_of,
    get,
    hold,
    job,
    log,
    names,
    put,
    record,
    session,
    verdicts,
    write,
)

__all__ = ["Logbook"]

FULL = Record(
    run="jöb@0123",
    job="jöb",
    attempt=3,
    slot=2**52,
    origin=Origin.BACKFILL,
    status=Status.FAILED,
    key="jöb@2026-01-01T00:00:00Z",
    recorded_at=2**52 + 1,
    reason="why ☂",
    node="n",
    session="s",
    fence=2**52 + 2,
    claimed_at=2**52 + 3,
    started_at=2**52 + 4,
    finished_at=2**52 + 5,
    error="Traceback ' \" \\ \n 🎉" * 500,
    result='{"a": [1, null]}',
    progress='{"done": 1}',
    first=2**52 - 1,
    count=31_536_000,
    asked_by="Ána ' \" \\",
    note="wrong file ☂\n🎉",
)

_SOME = (
    record("j@1", at=10, status=Status.FAILED, node="n"),
    record("i@2", at=20, node="m"),
    record("j@3", at=21, status=Status.FAILED, node="m"),
    record("i@4", at=29, attempt=0, status=Status.MISSED, first=1, count=7),
    record("j@5", at=30, node="n"),
)


class Logbook:
    """Chapter six."""

    def test_a_record_comes_back_as_it_was_written(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        plain = record("jöb@1", at=5)
        put(a, job("jöb"), records=(FULL, plain))
        assert log(b, run=FULL.run) == (FULL,)
        assert log(b, run=plain.run) == (plain,)

    @pytest.mark.invariant("I11: the cursor passes no slot without a record")
    def test_the_records_of_a_document_are_appended_with_it(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("changed"), job("deleted"), job("same"))

        def change(doc: Any, now: int) -> Change:
            records = (record(f"{doc.name}@1"), record(f"{doc.name}@2"))
            if doc.name == "same":
                return Change(doc, records)
            return Change(replace(doc, fence=1) if doc.name == "changed" else None, records)

        applied = a.update(Named(Kind.JOB, ("changed", "deleted", "same")), change)
        assert set(verdicts(applied).values()) == {Verdict.APPLIED}
        assert all(result.duplicates == () for result in applied.results)
        for name in ("changed", "deleted", "same"):
            assert sorted(r.run for r in log(b, job=name)) == [f"{name}@1", f"{name}@2"]

    @pytest.mark.invariant("I6: every slot has exactly one last word")
    def test_a_change_appends_any_number_of_records(self, clients: Clients) -> None:
        """A full queue that is given up is a thousand; a store whose commits are small packs them."""
        a, b = clients.new(), clients.new()
        many = tuple(record(f"j@{i:04}", at=i, attempt=0, status=Status.SKIPPED) for i in range(1_500))
        put(a, job("j"), records=many)
        found, page = list[Record](), b.history(Query(job="j", limit=1_000))
        while True:
            found += page.records
            if page.next is None:
                break
            page = b.history(Query(job="j", limit=1_000, before=page.next))
        assert found == list(many[::-1])
        assert counts_of(b) == {"skipped": 1_500}

    @pytest.mark.invariant("I2: an attempt is claimed at most once, and none after the last word of its run")
    def test_the_first_record_of_an_attempt_stays_and_the_change_stands(self, clients: Clients) -> None:
        """A change that were refused because of its record would be repeated forever."""
        a, b = clients.new(), clients.new()
        first = record("j@1", node="first")
        put(a, job("j"), records=(first,))
        again = (record("j@0"), record("j@1", node="second"), record("j@1", attempt=2))
        (result,) = write(b, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=9), again)).results
        assert (result.verdict, result.duplicates) == (Verdict.APPLIED, (first,))
        assert get(a, Kind.JOB, "j") == job("j", fence=9)
        assert set(log(a)) == {first, again[0], again[2]}
        assert not a.blocked()

    @pytest.mark.invariant("I6: every slot has exactly one last word")
    def test_a_record_never_changes(self, clients: Clients) -> None:
        a = clients.new()
        ended = record("j@1", at=10)
        skipped = record("j@2", attempt=0, status=Status.SKIPPED, at=11)
        put(a, job("j"), records=(ended, skipped))
        late = [
            replace(r, status=Status.LOST, reason="late", progress="late", recorded_at=50) for r in (ended, skipped)
        ]
        put(a, job("j", fence=1), records=tuple(late))
        assert log(a) == (skipped, ended)
        assert counts_of(a) == {"succeeded": 1, "skipped": 1}
        assert log(a, statuses=frozenset({"lost"})) == ()
        assert log(a, job="j") == (skipped, ended)

    def test_the_very_same_record_again_is_no_duplicate(self, clients: Clients) -> None:
        """Its commit may have been repeated, or a node has put back what was not lost."""
        a, b = clients.new(), clients.new()
        put(a, job("j"), records=(FULL,))
        (result,) = write(b, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=9), (FULL,))).results
        assert (result.verdict, result.duplicates) == (Verdict.APPLIED, ())
        assert log(a) == (FULL,)

    def test_of_two_equal_attempts_in_one_update_the_first_is_kept(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("i"), job("j"))
        change = lambda doc, now: Change(replace(doc, fence=1), (record("x@1", node=doc.name),))  # noqa: E731
        applied = a.update(Named(Kind.JOB, ("i", "j")), change)
        assert set(verdicts(applied).values()) == {Verdict.APPLIED}
        (kept,) = log(a)
        assert [result.duplicates for result in applied.results if result.duplicates] == [(kept,)]

    def test_history_is_newest_first_and_asks_by_anything(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        rows = [
            record("i@1", at=10, node="n", session="s", origin=Origin.RERUN),
            record("j@1", at=20, status=Status.FAILED),
            record("j@1", at=20, attempt=2, status=Status.SUCCEEDED),
            record("j@2", at=20, status=Status.FAILED),
            record("j@3", at=30, attempt=0, status=Status.MISSED),
        ]
        put(a, job("j"), records=(*rows[::2], *rows[1::2]))
        newest = rows[::-1]
        assert log(b) == tuple(newest)
        assert log(b, job="j") == tuple(newest[:4])
        assert log(b, job="other") == ()
        assert log(b, run="j@1") == (rows[2], rows[1])
        assert log(b, statuses=frozenset({"failed", "missed"})) == (rows[4], rows[3], rows[1])
        assert log(b, since=20, until=30) == (rows[3], rows[2], rows[1])
        assert log(b, job="j", statuses=frozenset({"failed"}), since=20, limit=1) == (rows[3],)
        assert b.history(Query(limit=2)).records == tuple(newest[:2])
        assert log(b, runs=("i@1", "j@2", "unknown@1")) == (rows[3], rows[0])
        assert log(b, run="j@3", runs=("j@2",)) == (rows[4], rows[3])
        assert log(b, node="n") == log(b, session="s") == log(b, origins=frozenset({"rerun"})) == (rows[0],)
        assert log(b, node="n", statuses=frozenset({"succeeded"}), since=11) == ()

    def test_the_newest_records_of_several_jobs_are_read_together(self, clients: Clients) -> None:
        """As many of each job as were asked for, also where records of one instant lie at the edge."""
        a, b = clients.new(), clients.new()
        busy = [record(f"busy@{at}", at=at) for at in range(1, 30)]
        busy += [record(f"busy@{word}", at=20, attempt=attempt) for word in "xy" for attempt in (1, 2)]
        rare = [record("rare@1", at=5, attempt=0, status=Status.MISSED), record("rare@2", at=40)]
        put(a, job("busy"), records=tuple(busy))
        put(a, job("rare"), records=tuple(rare))
        put(a, job("idle"))
        put(a, job("other"), records=(record("other@1", at=50),))
        for limit in (1, 9, 11, 13, 100):
            found = b.newest(("rare", "idle", "busy"), limit)
            assert found == {"busy": log(b, job="busy", limit=limit), "rare": log(b, job="rare", limit=limit)}
        assert dict(b.newest((), 5)) == dict(b.newest(("idle",), 5)) == {}

    def test_the_shards_of_a_run_are_found_by_its_name(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        shards = [record(f"j@1#{number}", at=number, job="j") for number in range(12)]
        others = [record("j@1", at=5, job="j"), record("j@10#1", at=5, job="j"), record("j@1$", at=5, job="j")]
        again = record("j@1#3", at=20, attempt=2, status=Status.FAILED, job="j")
        put(a, job("j"), records=(*shards, *others, again))
        assert log(b, group="j@1") == (again, *shards[::-1])
        assert log(b, group="j@1", statuses=frozenset({"failed"})) == (again,)
        assert log(b, group="unknown@1") == ()
        b.prune(before=12, limit=100)
        assert log(a, group="j@1") == (again,)

    def test_history_is_read_page_by_page(self, clients: Clients) -> None:
        """Also through an instant at which many ended, and while others are appended."""
        a, b = clients.new(), clients.new()
        statuses = (Status.SUCCEEDED, Status.FAILED, Status.LOST)
        rows = [record(f"j@{i:02}", at=i // 8, status=statuses[i % 3], node=f"n{i % 2}") for i in range(40)]
        put(a, job("j"), records=tuple(rows))
        bad = frozenset({"failed", "lost"})
        queries: list[dict[str, Any]] = [
            {},
            {"job": "j"},
            {"statuses": bad},
            {"node": "n1"},
            {"since": 1, "until": 4},
            {"statuses": bad, "node": "n0"},
        ]
        for query in queries:
            wanted = Query(**query, limit=1_000)
            found, page = list[Record](), b.history(Query(**query, limit=7))
            while True:
                found += page.records
                if page.next is None:
                    break
                put(
                    a,
                    job("j"),
                    records=(
                        record(
                            f"late@{len(found)}-{len(query)}-{bool(query.get('node'))}", at=100 + len(found), job="k"
                        ),
                    ),
                )
                page = b.history(Query(**query, limit=7, before=page.next))
            assert found == sorted(filter(wanted.finds, rows), key=lambda r: (r.recorded_at, r.run), reverse=True)

    def test_a_search_without_an_index_looks_at_a_bounded_part(self, clients: Clients) -> None:
        a = clients.new()
        rows = [record(f"j@{i:02}", at=i, node="rare" if i in (1, 25) else "n") for i in range(30)]
        put(a, job("j"), records=tuple(rows))
        first = a.history(Query(node="rare", limit=2, scan=10))
        assert first.records == (rows[25],)
        assert (first.next, first.looked_back_to) == ((20, "j@20", 1), 20)
        second = a.history(Query(node="rare", limit=2, scan=10, before=first.next))
        assert (second.records, second.looked_back_to) == ((), 10)
        third = a.history(Query(node="rare", limit=2, scan=10, before=second.next))
        assert third.records == (rows[1],)
        assert a.history(Query(node="rare", limit=2)).records == (rows[25], rows[1])

    def test_a_query_alone_gives_the_newest_fifty(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j"), records=tuple(record(f"j@{i:02}", at=i) for i in range(60)))
        assert [r.recorded_at for r in a.history(Query()).records] == list(range(59, 9, -1))

    def test_a_tally_counts_attempts_and_the_slots_of_summaries(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        rows = (
            record("j@1", at=10, status=Status.FAILED),
            record("j@2", at=20),
            record("j@3", at=20, status=Status.FAILED),
            record("j@4", at=21, attempt=0, status=Status.MISSED, first=1, count=1000),
            record("j@5", at=22, attempt=0, status=Status.MISSED, count=7),
        )
        put(a, job("j"), records=rows)
        assert counts_of(b, 20) == {"succeeded": 1, "failed": 1, "missed": 1007}
        assert counts_of(b) == {"succeeded": 1, "failed": 2, "missed": 1007}
        assert counts_of(b, 23) == {}

    def test_a_tally_ends_where_it_was_told_and_knows_one_job(self, clients: Clients) -> None:
        """An hour that is over is counted once and kept: what comes after it must not change its count."""
        a, b = clients.new(), clients.new()
        put(a, job("j"), records=_SOME)
        assert counts_of(b, 20, 30) == {"succeeded": 1, "failed": 1, "missed": 7}
        assert counts_of(b, 20, 20) == {}
        assert counts_of(b, job="i") == {"succeeded": 1, "missed": 7}
        assert counts_of(b, 0, 25, job="i") == {"succeeded": 1}
        assert counts_of(b, job="other") == {}

    def test_a_span_is_counted_in_parts(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j"), records=_SOME)
        parts = b.tally_by_time(9, 31, 10)
        assert {part: _counted(counts) for part, counts in parts.items()} == {
            9: {"failed": 1},
            19: {"succeeded": 1, "failed": 1},
            29: {"missed": 7, "succeeded": 1},
        }
        assert {part: _counted(counts) for part, counts in b.tally_by_time(9, 30, 10, job="i").items()} == {
            19: {"succeeded": 1},
            29: {"missed": 7},
        }
        assert set(b.tally_by_time(0, 1_000, 1)) == {10, 20, 21, 29, 30}
        for bucket in (0, 1):
            with pytest.raises(InvalidError):
                b.tally_by_time(0, 1_001, bucket)

    def test_a_span_is_counted_by_node(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j"), records=_SOME)
        found = b.density(10, 30, 15)
        assert {key: _counted(counts) for key, counts in found.items()} == {
            (10, "n"): {"failed": 1},
            (10, "m"): {"succeeded": 1, "failed": 1},
            (25, None): {"missed": 7},
        }
        with pytest.raises(InvalidError):
            b.density(0, HOUR + 1, HOUR)

    def test_pruning_removes_what_ended_before_then_a_few_at_a_time(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j", active=(hold("j@20", "s"),)), records=tuple(record(f"j@{i}", at=i) for i in range(10)))
        assert b.prune(before=7, limit=4) == 4
        assert len(log(a)) == 6
        assert b.prune(before=7, limit=4) == 3
        assert b.prune(before=7, limit=4) == 0
        assert sorted(r.run for r in log(a)) == ["j@7", "j@8", "j@9"]
        assert [doc.name for doc in a.read(HeldByAny())] == ["j"]

    def test_only_swept_sessions_that_ended_before_then_are_pruned(self, clients: Clients) -> None:
        a = clients.new()
        put(
            a,
            session("live", expires_at=1),
            session("dead", expires_at=1, state=Life.DEAD, ended_at=5),
            session("old", expires_at=1, state=Life.SWEPT, ended_at=5),
            session("new", expires_at=1, state=Life.SWEPT, ended_at=50),
        )
        a.prune(before=50, limit=10)
        assert names(a.read(All(Kind.SESSION))) == ["dead", "live", "new"]


def _counted(counts: Any) -> dict[str, int]:
    return {str(status): count for status, count in counts.items() if count}
