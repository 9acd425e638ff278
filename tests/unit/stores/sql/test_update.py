"""One update, whatever the database makes of it: conflicts, refused data, commits without an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.errors import InvalidError, StoreRefused, StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.session import Life
from solocron.stores.contract import All, HeldBy, Named, Query, Verdict
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.update import Poisoned, Retry, UnknownOutcome
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import add_hold, everything, get, hold, job, note, put, session, take, verdicts

A, B, C, U = Verdict.APPLIED, Verdict.BLOCKED, Verdict.CONTENDED, Verdict.UNKNOWN


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = make_store(f"sqlite:///{tmp_path}/a.db")
    assert isinstance(store, SQLiteStore)
    store.open()
    put(store, *(job(f"j{i}", due_at=store.clock() - SECOND, active=(hold("r", "h"),)) for i in range(3)))
    yield store
    store.close()


@pytest.fixture
def script(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let the next calls of a verb raise these errors; None lets one through. Afterwards all go through."""

    def write(verb: str, *errors: Exception | None) -> list[str]:
        real, left = getattr(SQLiteStore, verb), list(errors)
        seen: list[str] = []

        def scripted(self: SQLiteStore, link: Any, what: Any, *rest: Any, **more: Any) -> Any:
            error = left.pop(0) if left else None
            seen.append("fails" if error else "works")
            if error is not None:
                raise error
            return real(self, link, what, *rest, **more)

        monkeypatch.setattr(SQLiteStore, verb, scripted)
        return seen

    return write


def touch(doc: Any, now: int) -> Change:
    return Change(replace(doc, failures=doc.failures + 1))


class TestConflicts:
    @pytest.mark.parametrize("verb", ["select", "commit"])
    def test_a_conflict_is_tried_again(self, store: SQLiteStore, script: Callable[..., list[str]], verb: str) -> None:
        seen = script(verb, Retry("deadlock"), Retry("deadlock"))
        assert verdicts(store.update(All(Kind.JOB, limit=9), touch)) == {"j0": A, "j1": A, "j2": A}
        assert seen == ["fails", "fails", "works"]
        assert [doc.failures for doc in store.read(All(Kind.JOB))] == [1, 1, 1]  # type: ignore[union-attr]

    def test_a_conflict_that_never_ends_is_contended_for_those_named(
        self, store: SQLiteStore, script: Callable[..., list[str]]
    ) -> None:
        script("select", *[Retry("locked")] * 99)
        assert verdicts(store.update(Named(Kind.JOB, ("j0", "j9")), touch)) == {"j0": C, "j9": C}

    @pytest.mark.invariant("I5: no slot is lost")
    def test_a_sweep_that_saw_nothing_is_not_told_that_there_is_nothing(
        self, store: SQLiteStore, script: Callable[..., list[str]]
    ) -> None:
        script("select", *[Retry("locked")] * 99)
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            store.update(HeldBy("h"), touch)

    def test_what_was_selected_and_kept_conflicting_is_contended(
        self, store: SQLiteStore, script: Callable[..., list[str]]
    ) -> None:
        script("commit", *[Retry("deadlock")] * 99)
        assert verdicts(store.update(HeldBy("h"), touch)) == {"j0": C, "j1": C, "j2": C}

    def test_conflicts_are_not_tried_for_longer_than_a_fifth_of_the_lease(
        self, store: SQLiteStore, script: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ticks = iter(range(0, 1000, 2))  # each look at the clock is two seconds later; the lease is 15 s
        monkeypatch.setattr(store, "boot", lambda: float(next(ticks)))
        seen = script("commit", *[Retry("rows stayed locked")] * 99)
        store.update(Named(Kind.JOB, ("j0",)), touch)
        assert len(seen) == 2


class TestUnknown:
    @pytest.mark.invariant("I7: nothing starts without an acknowledged claim")
    def test_every_document_of_a_commit_without_an_answer_is_unknown_and_no_other(
        self, store: SQLiteStore, script: Callable[..., list[str]]
    ) -> None:
        script("commit", UnknownOutcome("cut"))

        def some(doc: Any, now: int) -> Change | None:
            return None if doc.name == "j1" else touch(doc, now)

        applied = store.update(All(Kind.JOB, limit=9), some)
        assert verdicts(applied) == {"j0": U, "j1": C, "j2": U}
        assert all(result.answer is None for result in applied.results)

    def test_a_write_outside_an_update_that_got_no_answer_says_so(
        self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def cut(*args: Any) -> int:
            raise UnknownOutcome("cut")

        monkeypatch.setattr("solocron.stores.sql.sqlite.link.SQLiteLink.run", cut)
        with pytest.raises(StoreUnavailable, match="may or may not have happened"):
            store.prune(before=1, limit=1)


class TestPoison:
    @pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
    def test_a_refused_batch_is_repeated_one_by_one(self, store: SQLiteStore, script: Callable[..., list[str]]) -> None:
        seen = script("commit", Poisoned("bad"), None, Poisoned("really bad"))
        applied = store.update(All(Kind.JOB, limit=9), touch)
        assert verdicts(applied) == {"j0": A, "j1": B, "j2": A}
        assert seen == ["fails", "works", "fails", "works"]
        assert [(aside.name, aside.reason) for aside in store.blocked()] == [("j1", "really bad")]

    def test_a_name_that_the_database_cannot_even_look_for_is_blocked_alone(self, store: SQLiteStore) -> None:
        assert verdicts(store.update(Named(Kind.JOB, ("j0", "\ud800")), touch)) == {"j0": A, "\ud800": B}

    def test_a_selection_that_the_database_refuses_as_a_whole_is_an_error(
        self, store: SQLiteStore, script: Callable[..., list[str]]
    ) -> None:
        script("select", Poisoned("what?"))
        with pytest.raises(StoreRefused, match="nothing was written"):
            store.update(HeldBy("h"), touch)

    def test_a_question_that_cannot_be_asked_is_invalid(self, store: SQLiteStore) -> None:
        with pytest.raises(InvalidError, match="nothing was written"):
            store.history(Query(job="\ud800"))

    def test_a_document_that_cannot_be_set_aside_is_still_told_as_blocked(
        self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def away(*args: Any) -> None:
            raise StoreUnavailable("away")

        monkeypatch.setattr(SQLiteStore, "put_aside", away)
        with caplog.at_level(logging.WARNING):
            assert verdicts(store.update(Named(Kind.JOB, ("j0",)), lambda doc, now: 1 / 0)) == {"j0": B}
        assert [record.message for record in caplog.records] == ["document not set aside"]


class TestSession:
    def test_a_session_that_dies_between_two_rounds_keeps_what_was_written(
        self, store: SQLiteStore, script: Callable[..., list[str]]
    ) -> None:
        """Written while it lived: `alive` must not deny it."""
        put(store, session("s", expires_at=store.clock() + 60 * SECOND))

        def claim(doc: Any, now: int) -> Change | None:
            return add_hold("s")(replace(doc, active=()), now)

        script("commit", Poisoned("one of them"))
        buried: list[Any] = []
        real = store.select

        def select(link: Any, which: Any, by: str | None, **more: Any) -> Any:
            if isinstance(which, Named) and which.names == ("j1",) and not buried:
                buried.append(1)
                put(store, session("s", expires_at=1, state=Life.DEAD, ended_at=1))
            return real(link, which, by, **more)

        store.select = select  # type: ignore[method-assign]
        applied = store.update(everything(), claim, session="s")
        assert applied.alive
        assert verdicts(applied) == {"j0": A, "j1": C, "j2": C}


class TestPages:
    def test_all_of_a_kind_is_written_page_by_page(self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SQLiteStore, "portion", 4)
        put(store, *(note(Kind.KEY, f"n{i:02}", {"count": 0}) for i in range(10)))
        before = store.statements["commit"]
        applied = store.update(All(Kind.KEY), lambda doc, now: Change(replace(doc, body={"count": 1})))
        assert set(verdicts(applied).values()) == {A}
        assert len(applied.results) == 10
        assert store.statements["commit"] - before == 3

    def test_documents_that_vanish_on_the_way_do_not_end_it_early(
        self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SQLiteStore, "portion", 2)
        put(store, *(note(Kind.KEY, f"n{i}") for i in range(6)))
        gone: list[str] = []

        def change(doc: Any, now: int) -> Change:
            if doc.name == "n1" and not gone:
                gone.append("n1")
                store.update(Named(Kind.KEY, ("n1",)), lambda doc, now: Change(None))
            return Change(replace(doc, body={"seen": True}))

        applied = store.update(All(Kind.KEY), change)
        assert [result.name for result in applied.results] == ["n0", "n2", "n3", "n4", "n5"]
        assert get(store, Kind.KEY, "n5").body == {"seen": True}

    def test_nothing_is_written_for_a_session_that_is_not_there(self, store: SQLiteStore) -> None:
        applied = store.update(All(Kind.JOB), touch, session="nobody")
        assert (applied.alive, applied.results) == (False, ())
        assert store.update(All(Kind.STEP), touch).results == ()


def test_a_conflict_outside_an_update_is_tried_again(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [Retry("deadlock"), Retry("deadlock")]

    def work(link: Any) -> str:
        if left:
            raise left.pop()
        return "done"

    assert store.call(work) == "done"
    left[:] = [Retry("deadlock")] * 99
    with pytest.raises(StoreUnavailable, match="kept the rows locked"):
        store.call(work)
    assert take(store, "s", Named(Kind.JOB, ("j0",))) == []
