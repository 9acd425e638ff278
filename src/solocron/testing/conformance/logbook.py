"""The log: written with the document or not at all, closed once, found again, and pruned without harm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.model.change import Change, Kind
from solocron.model.documents.run import Entry, Op, Origin, Record, Status
from solocron.model.documents.session import Life
from solocron.stores.contract import All, Named, Query, Verdict
from solocron.testing.conformance.kit import (
    HOUR,
    Clients,
    get,
    job,
    log,
    names,
    opened,
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
)


class Logbook:
    """Chapter six."""

    def test_a_record_comes_back_as_it_was_written(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        plain = record("jöb@1", at=5)
        put(a, job("jöb"), entries=opened(FULL, plain))
        assert log(b, run=FULL.run) == (FULL,)
        assert log(b, run=plain.run) == (plain,)

    @pytest.mark.invariant("I11: the cursor passes no slot without a record")
    def test_the_entries_of_a_document_are_written_with_it(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("changed"), job("deleted"), job("same"))

        def change(doc: Any, now: int) -> Change:
            entries = opened(record(f"{doc.name}@1"), record(f"{doc.name}@2"))
            if doc.name == "same":
                return Change(doc, entries)
            return Change(replace(doc, fence=1) if doc.name == "changed" else None, entries)

        applied = a.update(Named(Kind.JOB, ("changed", "deleted", "same")), change)
        assert set(verdicts(applied).values()) == {Verdict.APPLIED}
        for name in ("changed", "deleted", "same"):
            assert sorted(r.run for r in log(b, job=name)) == [f"{name}@1", f"{name}@2"]

    @pytest.mark.invariant("I2: an attempt is claimed at most once, and none after the last word of its run")
    def test_a_second_record_of_an_attempt_is_refused_with_its_document(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        first = record("j@1", node="first")
        put(a, job("j"), entries=opened(first))
        again = opened(record("j@0"), record("j@1", node="second"))
        (result,) = write(b, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=9), again)).results
        assert result.verdict is Verdict.BLOCKED
        assert result.error
        assert get(a, Kind.JOB, "j") == job("j")
        assert log(a) == (first,)
        put(a, job("other"), entries=opened(record("j@1", attempt=2)))
        assert len(log(a, run="j@1")) == 2

    def test_closing_ends_a_running_record_and_keeps_how_it_began(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        begun = record("j@1", at=10, node="n", session="s", fence=4, claimed_at=10, first=1)
        put(a, job("j"), entries=opened(begun, record("j@2", at=11)))
        end = replace(
            begun,
            status=Status.FAILED,
            recorded_at=99,
            reason="r",
            started_at=12,
            finished_at=99,
            error="e",
            result="7",
            progress="p",
        )
        put(b, job("j"), entries=(Entry(Op.CLOSE, end),))
        assert log(a, run="j@1") == (replace(end, recorded_at=10),)
        assert [r.status for r in log(a, run="j@2")] == [Status.RUNNING]

    @pytest.mark.invariant("I6: every slot has exactly one last word")
    def test_what_has_ended_is_never_rewritten(self, clients: Clients) -> None:
        a = clients.new()
        ended = record("j@1", status=Status.SUCCEEDED, at=10)
        skipped = record("j@2", attempt=0, status=Status.SKIPPED, at=11)
        put(a, job("j"), entries=opened(ended, skipped))
        for op in (Op.CLOSE, Op.NOTE):
            late = [replace(r, status=Status.LOST, reason="late", progress="late") for r in (ended, skipped)]
            entries = tuple(Entry(op, each) for each in (*late, record("j@3", status=Status.LOST)))
            put(a, job("j", fence=1), entries=entries)
        assert log(a) == (skipped, ended)

    def test_progress_is_noted_while_it_runs_and_kept_when_it_ends(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        begun = record("j@1", at=10, node="n")
        put(a, job("j"), entries=opened(begun))
        noted = replace(begun, progress="half", recorded_at=50, node="changed")
        (result,) = write(a, Kind.JOB, "j", lambda doc, now: Change(doc, (Entry(Op.NOTE, noted),))).results
        assert result.verdict is Verdict.APPLIED
        assert log(b) == (replace(begun, progress="half"),)
        end = replace(begun, status=Status.SUCCEEDED, finished_at=60)
        put(b, job("j"), entries=(Entry(Op.CLOSE, end),))
        assert log(a) == (replace(end, progress="half"),)

    def test_a_record_can_be_opened_and_closed_in_one_step(self, clients: Clients) -> None:
        a = clients.new()
        begun = record("j@1", at=10)
        end = replace(begun, status=Status.SUCCEEDED, finished_at=10)
        put(a, job("j"), entries=(*opened(begun), Entry(Op.CLOSE, end)))
        assert log(a) == (end,)

    def test_history_is_newest_first_and_asks_by_anything(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        rows = [
            record("i@1", at=10),
            record("j@1", at=20, status=Status.FAILED),
            record("j@1", at=20, attempt=2, status=Status.SUCCEEDED),
            record("j@2", at=20, status=Status.FAILED),
            record("j@3", at=30, attempt=0, status=Status.MISSED),
        ]
        put(a, job("j"), entries=opened(*rows[::2], *rows[1::2]))
        newest = rows[::-1]
        assert log(b) == tuple(newest)
        assert log(b, job="j") == tuple(newest[:4])
        assert log(b, job="other") == ()
        assert log(b, run="j@1") == (rows[2], rows[1])
        assert log(b, statuses=frozenset({"failed", "missed"})) == (rows[4], rows[3], rows[1])
        assert log(b, since=20, until=30) == (rows[3], rows[2], rows[1])
        assert log(b, job="j", statuses=frozenset({"failed"}), since=20, limit=1) == (rows[3],)
        assert b.history(Query(limit=2)) == tuple(newest[:2])

    def test_a_query_alone_gives_the_newest_fifty(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j"), entries=opened(*(record(f"j@{i:02}", at=i) for i in range(60))))
        assert [r.recorded_at for r in a.history(Query())] == list(range(59, 9, -1))

    def test_a_tally_counts_attempts_and_the_slots_of_summaries(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        rows = (
            record("j@1", at=10, status=Status.FAILED),
            record("j@2", at=20),
            record("j@3", at=20, status=Status.FAILED),
            record("j@4", at=21, attempt=0, status=Status.MISSED, first=1, count=1000),
            record("j@5", at=22, attempt=0, status=Status.MISSED, count=7),
        )
        put(a, job("j"), entries=opened(*rows))
        assert _counted(b.tally(20)) == {"running": 1, "failed": 1, "missed": 1007}
        assert _counted(b.tally(0)) == {"running": 1, "failed": 2, "missed": 1007}
        assert _counted(b.tally(23)) == {}

    def test_pruning_removes_what_ended_before_then_a_few_at_a_time(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        ended = [record(f"j@{i}", at=1, status=Status.SUCCEEDED, finished_at=i) for i in range(10)]
        put(a, job("j"), entries=opened(*ended))
        assert b.prune(before=7, limit=4) == 4
        assert len(log(a)) == 6
        assert b.prune(before=7, limit=4) == 3
        assert b.prune(before=7, limit=4) == 0
        assert sorted(r.run for r in log(a)) == ["j@7", "j@8", "j@9"]

    @pytest.mark.invariant("I12: what was recorded stays recorded")
    def test_pruning_never_removes_what_still_runs(self, clients: Clients) -> None:
        a = clients.new()
        runs = record("j@1", at=1)
        put(a, job("j"), entries=opened(runs, record("j@2", at=2, attempt=0, status=Status.SKIPPED)))
        assert a.prune(before=a.clock() + HOUR, limit=100) == 1
        assert log(a) == (runs,)
        assert get(a, Kind.JOB, "j") == job("j")

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


def _counted(tally: Any) -> dict[str, int]:
    return {str(status): count for status, count in tally.items() if count}
