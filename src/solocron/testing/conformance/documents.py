"""Documents: created, replaced, deleted, left alone; what is written is read back, by every client, as it was."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import audit
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import (
    Back,
    Hold,
    Job,
    Last,
    Missed,
    Pause,
    Request,
    Resume,
    Told,
    WaitingRange,
    WaitingRun,
)
from solocron.model.documents.run import Origin, Status
from solocron.model.documents.session import Life, RefusedEnd, SelfReport, Session
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.stores.contract import All, Doc, JobCounts, Mark, Named, Verdict
from solocron.testing.conformance.kit import Clients, get, job, kind_of, names, note, put, session, write

__all__ = ["Documents"]

PLAIN = (Kind.LOCK, Kind.KEY, Kind.STEP, Kind.CALENDAR, Kind.ALARM, Kind.AUDIT)
STRANGE = ("Zürich ☂ 東京 🎉", "quote ' \" ` \\ % _ ; --", "a b\tc\nd", "ערב")


def one_of_each(name: str) -> list[Doc]:
    """Return a document of every kind."""
    return [job(name), session(name, expires_at=1), *(note(kind, name, {"kind": kind}) for kind in PLAIN)]


class Documents:
    """Chapter one."""

    def test_a_missing_document_is_handed_over_as_absent_and_can_be_created(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        for new in one_of_each("n"):
            seen: list[Any] = []

            def create(doc: Any, now: int, new: Doc = new, seen: list[Any] = seen) -> Change:
                seen.append(doc)
                return Change(new, answer="made")

            (result,) = write(a, kind_of(new), "n", create).results
            assert seen[-1] == Absent(kind_of(new), "n")
            assert (result.verdict, result.doc, result.answer) == (Verdict.APPLIED, new, "made")
            assert get(b, kind_of(new), "n") == new

    def test_a_change_sees_the_document_and_replaces_it(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        for old in one_of_each("n"):
            put(a, old)
            new = _altered(old)
            seen: list[Any] = []

            def change(doc: Any, now: int, new: Doc = new, seen: list[Any] = seen) -> Change:
                seen.append(doc)
                return Change(new)

            (result,) = write(b, kind_of(old), "n", change).results
            assert seen == [old]
            assert (result.verdict, result.doc) == (Verdict.APPLIED, new)
            assert get(a, kind_of(old), "n") == new

    def test_a_deleted_document_is_absent_and_can_be_created_again(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        for doc in one_of_each("n"):
            kind = kind_of(doc)
            put(a, doc, *([replace(doc, name="other")] if isinstance(doc, Job) else []))
            (result,) = write(a, kind, "n", lambda doc, now: Change(None, answer="gone")).results
            assert (result.verdict, result.doc, result.answer) == (Verdict.APPLIED, Absent(kind, "n"), "gone")
            assert get(b, kind, "n") is None
            put(b, doc)
            assert get(a, kind, "n") == doc
        assert get(a, Kind.JOB, "other") is not None

    def test_a_declined_change_writes_nothing_and_shows_the_document(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("there"))
        applied = a.update(Named(Kind.JOB, ("there", "missing")), lambda doc, now: None)
        assert [(r.verdict, r.doc) for r in applied.results] == [
            (Verdict.DECLINED, job("there")),
            (Verdict.DECLINED, Absent(Kind.JOB, "missing")),
        ]
        assert a.read(All(Kind.JOB)) == (job("there"),)

    def test_handing_back_the_very_document_is_applied_and_carries_the_answer(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("n", fence=3))
        (result,) = write(a, Kind.JOB, "n", lambda doc, now: Change(doc, answer={"known": True})).results
        assert (result.verdict, result.doc, result.answer) == (Verdict.APPLIED, job("n", fence=3), {"known": True})
        assert get(a, Kind.JOB, "n") == job("n", fence=3)

    def test_one_name_in_every_kind_is_as_many_documents(self, clients: Clients) -> None:
        a = clients.new()
        docs = one_of_each("n")
        put(a, *docs)
        write(a, Kind.LOCK, "n", lambda doc, now: Change(None))
        assert [get(a, kind_of(doc), "n") for doc in docs] == [None if kind_of(d) is Kind.LOCK else d for d in docs]

    def test_named_answers_in_the_order_of_the_names_each_once(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("b"), job("d"))
        asked: list[str] = []

        def change(doc: Any, now: int) -> None:
            asked.append(doc.name)

        applied = a.update(Named(Kind.JOB, ("d", "a", "c", "b", "a")), change)
        assert [result.name for result in applied.results] == ["d", "a", "c", "b"]
        assert sorted(asked) == ["a", "b", "c", "d"]
        assert names(a.read(Named(Kind.JOB, ("d", "a", "b")))) == ["d", "b"]
        assert a.update(Named(Kind.JOB, ()), change).results == ()

    def test_a_thousand_names_in_one_update(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        many = tuple(f"job-{i:04}" for i in range(1000))
        applied = a.update(Named(Kind.JOB, many), lambda doc, now: Change(job(doc.name, fence=int(doc.name[4:]))))
        assert [(r.name, r.verdict) for r in applied.results] == [(name, Verdict.APPLIED) for name in many]
        assert b.read(Named(Kind.JOB, many)) == tuple(job(name, fence=i) for i, name in enumerate(many))
        applied = b.update(Named(Kind.JOB, many), lambda doc, now: None if doc.fence % 2 else Change(None))
        assert {r.verdict for r in applied.results[1::2]} == {Verdict.DECLINED}
        assert names(a.read(All(Kind.JOB))) == list(many[1::2])

    def test_names_are_compared_exactly(self, clients: Clients) -> None:
        a = clients.new()
        # Case, accents, their composition, trailing spaces and wildcards: collations have opinions, a store has none.
        alike = ("job", "Job", "JOB", "job ", "jób", "jo\u0301b", "j%", "j_b", "ﬁ", "fi", "ss", "ß")
        for kind in (Kind.JOB, Kind.KEY):
            docs = [job(n) if kind is Kind.JOB else note(kind, n, {"is": n}) for n in alike]
            put(a, *docs)
            assert a.read(Named(kind, alike)) == tuple(docs)
            assert names(a.read(All(kind))) == sorted(alike)

    def test_strange_texts_come_back_as_they_went_in(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        for text in STRANGE:
            payload: dict[str, Any] = {text: [text, None, True, -0.5, 1e300, 2**53 - 1, "", {}, []]}
            docs: list[Doc] = [job(text, payload=payload), *(note(kind, text, payload, by=text) for kind in PLAIN)]
            put(a, *docs)
            assert [get(b, kind_of(doc), text) for doc in docs] == docs

    def test_jobs_are_found_and_counted_by_their_marks(self, clients: Clients) -> None:
        """A page that lists the paused jobs of ten thousand must not read ten thousand."""
        a, b = clients.new(), clients.new()
        off = Definition(handler="h", schedule=None, enabled=False)
        put(
            a,
            job("plain"),
            job("paused", paused=Pause(at=1)),
            job("both", paused=Pause(at=1), failures=2),
            job("failing", failures=1),
            job("off", definition=off),
            job("gone", removed=True),
        )
        assert b.marked(Mark.PAUSED) == ("both", "paused")
        assert b.marked(Mark.FAILING) == ("both", "failing")
        assert b.marked(Mark.FAILING | Mark.DISABLED) == ("both", "failing", "off")
        assert b.marked(Mark.PAUSED | Mark.FAILING, after="both", limit=1) == ("failing",)
        assert b.marked(Mark.REMOVED) == ("gone",)
        marked = {Mark.PAUSED: 2, Mark.FAILING: 2, Mark.DISABLED: 1, Mark.REMOVED: 1}
        assert b.count_jobs() == JobCounts(all=6, marked=marked)
        write(b, Kind.JOB, "both", lambda doc, now: Change(replace(doc, failures=0)))
        write(b, Kind.JOB, "paused", lambda doc, now: Change(replace(doc, paused=None, fence=1)))
        write(b, Kind.JOB, "off", lambda doc, now: Change(job("off")))
        write(b, Kind.JOB, "failing", lambda doc, now: Change(None))
        assert a.marked(Mark.PAUSED | Mark.FAILING | Mark.DISABLED) == ("both",)
        assert a.count_jobs() == JobCounts(all=5, marked=dict.fromkeys(Mark, 0) | {Mark.PAUSED: 1, Mark.REMOVED: 1})
        assert clients.new("other").count_jobs().all == 0

    def test_jobs_of_every_pool_are_listed_by_when_they_are_due(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(
            a,
            job("late", due_at=5, pool="x"),
            job("never"),
            job("b", due_at=20),
            job("a", due_at=20, pool="x"),
            job("c", due_at=30, handler="other"),
        )
        assert b.due_times() == ((5, "late"), (20, "a"), (20, "b"), (30, "c"))
        assert b.due_times(2, after=(20, "a")) == ((20, "b"), (30, "c"))
        assert b.due_times(until=20) == ((5, "late"),)
        write(b, Kind.JOB, "late", lambda doc, now: Change(replace(doc, due_at=None)))
        assert a.due_times(1) == ((20, "a"),)

    def test_the_audit_is_read_newest_first_and_the_old_is_found_behind_one_name(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        now = a.clock()
        entries = [note(Kind.AUDIT, audit.name_of(now - i, f"{i % 3}"), {"at": now - i}) for i in range(12)]
        put(a, *entries[::2], *entries[1::2])
        assert b.read(All(Kind.AUDIT)) == tuple(entries)
        assert b.read(All(Kind.AUDIT, after=entries[3].name, limit=2)) == tuple(entries[4:6])
        assert b.read(All(Kind.AUDIT, after=audit.name_before(now - 7))) == tuple(entries[8:])

    def test_payloads_of_64_kilobytes_come_back_whole(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        big = {"text": "ä☂🎉x" * 6554}
        put(a, job("n", payload=big), note(Kind.STEP, "n", big))
        assert get(b, Kind.JOB, "n").definition.payload == big
        assert get(b, Kind.STEP, "n").body == big
        write(b, Kind.JOB, "n", lambda doc, now: Change(replace(doc, fence=7)))
        assert get(a, Kind.JOB, "n") == job("n", payload=big, fence=7)

    def test_every_field_of_a_document_is_kept(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        for full in (full_job("n"), full_session("n")):
            assert [f.name for f in fields(full) if getattr(full, f.name) == f.default] == []  # it is full indeed
            put(a, full)
            assert get(b, kind_of(full), "n") == full


def _altered(doc: Doc) -> Doc:
    if isinstance(doc, Job):
        return replace(doc, fence=9, due_at=5)
    if isinstance(doc, Session):
        return replace(doc, expires_at=77, running=2)
    return replace(doc, body={"new": [1]})


def full_job(name: str) -> Job:
    """Return a job in which nothing has its default."""
    definition = Definition(
        handler="h",
        schedule={"kind": "every", "period": "1m"},
        pool="p",
        payload={"a": [1, None]},
        timeout=7,
        retries=3,
        backoff=Backoff("2s", 3, "9m", 0.5),
        on_crash="fail",
        on_lost="finish",
        on_stuck="abandon",
        overlap=Overlap("allow", 3),
        catch_up=CatchUp("all", 5, 6),
        start_within=8,
        run_in="thread",
        enabled=False,
        tags=("eu", "money"),
        owner="billing",
        runbook="https://wiki.example.com/n",
    )
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    waiting_run = WaitingRun(
        run="n@2", slot=20, origin=Origin.TRIGGER, ready_at=21, attempt=2, tries=1, request="r", payload={"x": 1},
        trace=trace,
    )  # fmt: skip
    active = Hold(
        run="n@1",
        slot=10,
        origin=Origin.BACKFILL,
        attempt=2,
        tries=1,
        session="s",
        node="m",
        fence=2**52,
        claimed_at=11,
        deadline=12,
        request="q",
        payload=[1],
        cancel="because",
        asked_at=13,
        final=True,
        asked_by="ána",
        note="why ☂",
        trace=trace,
    )
    return Job(
        name=name,
        incarnation=2**52 + 1,
        definition=definition,
        revision=4,
        source="src",
        zone_data="2025b",
        place="shop.jobs:42",
        defined_at=10,
        defined_by="ána",
        defined_note="why ☂",
        resumed=Resume(at=11, by="ána", note="over ☂"),
        removed=True,
        cursor=2**52,
        nominal="2026-03-08T02:30",
        due_at=2**52 + 2,
        paused=Pause(at=1, by="me", note="why", until=2),
        fence=2**52 + 3,
        active=(active, replace(active, run="n@3", fence=5, session="t")),
        waiting_runs=(waiting_run, replace(waiting_run, run="n@4", request=None, payload=None)),
        waiting_ranges=(
            WaitingRange(
                first=1,
                last=9,
                count=3,
                origin=Origin.RERUN,
                request="z",
                schedule={"kind": "at"},
                pace=5,
                total=7,
                trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ),
        ),
        requests=(Request(id="r", answer="n@2"), Request(id="ü", answer="!full")),
        accepted=(1, 2, 3),
        failures=6,
        paced=8,
        last=Last(run="n@0", slot=0, attempt=1, status=Status.TIMED_OUT, finished_at=5, error="e"),
        missed=Missed(at=9, first=1, last=3, count=2, superseded=True),
        back=Back(epoch="1.t", fence=2**52, cursor=3, told=(Told(run="n@5", attempt=2, slot=4, shards=2),)),
        extra={"newer": {"code": "keeps this"}},
    )


def full_session(name: str) -> Session:
    """Return a session in which nothing has its default."""
    return Session(
        name=name,
        node="n",
        host="h",
        pid=2**22,
        pools=("a", "b"),
        handlers=("f", "g"),
        applications=(("shop", ("f",)),),
        version="9.9",
        fingerprint="ff",
        revision=7,
        zone_data="2025b",
        lease=15_000_000,
        keep=86_400_000_000,
        started_at=2**52,
        expires_at=2**52 + 1,
        running=4,
        max_running=32,
        features=("offers",),
        progress=(("j@1", 7, '{"done":1}'),),
        beats=5,
        epoch="1.t",
        state=Life.DEAD,
        ended_at=2**52 + 2,
        reason="why",
        report=SelfReport(
            skew=-3_000,
            late_by=2**40,
            late_at=2**52,
            refused=(RefusedEnd(run="j@1", fence=2**52, at=2**52 + 1, outcome="succeeded"),),
        ),
        buried_by="m",
    )
