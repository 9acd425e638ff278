"""What a change wants of the rows, without a database in sight."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.model.change import Absent, Change, Kind
from solocron.model.codec import encode
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Life
from solocron.stores.contract import All, Due, HeldBy, HeldByAny, Named, RecentSessions, Verdict
from solocron.stores.drafts import Draft, Row, draft, is_selected, readable
from solocron.stores.sql.rows import COLUMNS, Batch, as_json
from solocron.testing.conformance.kit import everything, hold, job, note, record, session


def row(doc: Any, version: int = 7) -> Row:
    return Row(doc.name, version, *encode(doc))


def drafted(doc: Any, change: Any, kind: Kind = Kind.JOB) -> Draft:
    one = draft(kind, doc.name, None if isinstance(doc, Absent) else row(doc), change, 100)
    assert one is not None
    return one


def batch(*drafts: Draft) -> Batch:
    return Batch.of("space", drafts[0].kind, drafts)


class TestDefinition:
    def test_a_change_of_the_state_alone_does_not_write_the_definition(self) -> None:
        one = drafted(job("j"), lambda doc, now: Change(replace(doc, fence=3, due_at=9)))
        found = batch(one)
        assert one.fixed is None
        assert (len(found.moved), found.redefined) == (1, [])
        assert len(found.moved[0]) == len(COLUMNS["job_moved"])

    def test_an_equal_definition_that_is_another_object_is_not_written_either(self) -> None:
        copy = Definition.from_json(job("j").definition.to_json())
        assert batch(drafted(job("j"), lambda doc, now: Change(replace(doc, definition=copy)))).redefined == []

    @pytest.mark.parametrize(
        "new",
        [{"revision": 2}, {"source": "x"}, {"zone_data": "2026a"}, {"removed": True}, {"incarnation": 9},
         {"definition": Definition(handler="other", schedule=None)}],
    )  # fmt: skip
    def test_a_change_of_what_is_rarely_written_is_written(self, new: dict[str, Any]) -> None:
        found = batch(drafted(job("j"), lambda doc, now: Change(replace(doc, **new))))
        assert (len(found.redefined), found.moved) == (1, [])
        assert len(found.redefined[0]) == len(COLUMNS["job_redefined"])


class TestVersions:
    def test_a_changed_row_says_which_version_it_was_computed_from(self) -> None:
        found = batch(drafted(job("j"), lambda doc, now: Change(replace(doc, fence=3))))
        assert found.moved[0][-3:] == ("space", "j", 7)

    def test_a_new_document_gets_a_version_that_no_other_of_its_name_had(self) -> None:
        made = {
            batch(drafted(Absent(Kind.JOB, "j"), lambda doc, now: Change(job("j")))).added[0][-1] for _ in range(50)
        }
        assert len(made) == 50

    def test_a_record_alone_still_compares_the_version(self) -> None:
        found = batch(drafted(job("j"), lambda doc, now: Change(doc, (record("j@1"),))))
        assert found.touched == [("space", "j", 7)]
        assert len(found.appended) == 1

    def test_handing_back_the_very_document_writes_nothing(self) -> None:
        assert not drafted(job("j"), lambda doc, now: Change(doc, answer=1)).writes

    def test_deleting_what_is_not_there_writes_no_row(self) -> None:
        one = drafted(Absent(Kind.JOB, "j"), lambda doc, now: Change(None))
        assert one.writes
        assert all(not found for _, found in batch(one).writes())


class TestHolds:
    def test_holders_that_come_and_go_are_written_once_each(self) -> None:
        old = job("j", active=(hold("r1", "a"), hold("r2", "a", fence=2), hold("r3", "b", fence=3)))
        new = (hold("r2", "a", fence=2), hold("r4", "c", fence=4), hold("r5", "c", fence=5))
        found = batch(drafted(old, lambda doc, now: Change(replace(doc, active=new))))
        assert found.held == [("space", "c", "job", "j")]
        assert found.let_go == [("space", "b", "job", "j")]

    def test_a_deleted_document_is_let_go(self) -> None:
        found = batch(drafted(note(Kind.LOCK, "l", by="s"), lambda doc, now: Change(None), Kind.LOCK))
        assert found.let_go == [("space", "s", "lock", "l")]


class TestPoison:
    @pytest.mark.parametrize(
        "change",
        [
            lambda doc, now: 1 / 0,
            lambda doc, now: Change(job("another")),
            lambda doc, now: Change(note(Kind.LOCK, "j")),
            lambda doc, now: Change(replace(doc, extra={"nan": float("nan")})),
        ],
    )
    def test_whatever_is_wrong_with_a_document_stays_with_it(self, change: Any) -> None:
        one = drafted(job("j"), change)
        assert one.error
        assert not one.writes
        assert one.result().verdict is Verdict.BLOCKED

    def test_an_unreadable_row_is_blocked_and_cannot_be_read(self) -> None:
        one = draft(Kind.JOB, "j", Row("j", 1, "{}", "nonsense"), lambda doc, now: Change(doc), 1)
        assert one is not None
        assert one.error
        assert readable(Kind.JOB, Row("j", 1, "{}", "nonsense")) is None

    def test_an_interrupt_is_nobodys_fault(self) -> None:
        def interrupted(doc: Job, now: int) -> Change:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            drafted(job("j"), interrupted)


class TestSelection:
    def test_what_has_left_the_selection_is_not_handed_to_the_change(self) -> None:
        which = Due(handlers=frozenset({"h"}), pools=frozenset({"default"}), limit=1)
        asked: list[Any] = []
        assert (
            draft(Kind.JOB, "j", row(job("j", due_at=200)), lambda doc, now: asked.append(doc), 100, which=which)
            is None
        )
        assert asked == []

    @pytest.mark.parametrize(
        ("which", "doc", "selected"),
        [
            (everything(), job("j", due_at=100), True),
            (everything(), job("j", due_at=101), False),
            (everything(), job("j"), False),
            (everything(), job("j", due_at=100, handler="other"), False),
            (everything(), job("j", due_at=100, pool="other"), False),
            (everything(exclude=("j",)), job("j", due_at=100), False),
            (HeldBy("s"), job("j", active=(hold("r", "s"),)), True),
            (HeldBy("s"), job("j", active=(hold("r", "t"),)), False),
            (HeldBy("s", Kind.LOCK), note(Kind.LOCK, "l", by="s"), True),
            (HeldByAny(), job("j", active=(hold("r", "t"),)), True),
            (HeldByAny(), job("j"), False),
            (RecentSessions(), session("s", expires_at=1), True),
            (RecentSessions(), session("s", expires_at=1, state=Life.SWEPT, ended_at=9), False),
            (RecentSessions(9), session("s", expires_at=1, state=Life.SWEPT, ended_at=9), True),
            (RecentSessions(10), session("s", expires_at=1, state=Life.SWEPT, ended_at=9), False),
            (Named(Kind.JOB, ("j",)), Absent(Kind.JOB, "j"), True),
            (All(Kind.JOB), Absent(Kind.JOB, "j"), False),
            (All(Kind.JOB), job("j"), True),
        ],
    )  # fmt: skip
    def test_whether_a_document_still_belongs_to_a_selection(self, which: Any, doc: Any, selected: bool) -> None:
        assert is_selected(which, doc, 100) is selected


def test_one_row_of_one_table_needs_no_transaction() -> None:
    alone = drafted(session("s", expires_at=9), lambda doc, now: Change(replace(doc, expires_at=10)), Kind.SESSION)
    assert batch(alone).alone
    assert not batch(alone).notifies
    with_log = drafted(job("j"), lambda doc, now: Change(doc, (record("j@1"),)))
    assert not batch(with_log).alone


def test_the_rows_of_a_batch_are_one_json_text() -> None:
    text = as_json("hold_added", [("space", "s", Kind.JOB, 'j"\u2602'), ("space", None, "", 0)])
    assert text == (
        '[{"namespace":"space","session":"s","kind":"job","name":"j\\"\\u2602"},'
        '{"namespace":"space","session":null,"kind":"","name":0}]'
    )


def test_a_column_that_is_null_in_every_row_is_left_out() -> None:
    assert as_json("hold_added", [("space", None, "job", "i"), ("space", None, "job", "j")]) == (
        '[{"namespace":"space","kind":"job","name":"i"},{"namespace":"space","kind":"job","name":"j"}]'
    )


_anything = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.sampled_from([*Kind, *Status]))


@given(st.lists(st.tuples(st.text(), *[_anything] * 3), min_size=1, max_size=5))
def test_any_rows_come_back_from_the_json_text_as_they_were(rows: list[tuple[Any, ...]]) -> None:
    """Also where a column holds what it should not: that is for the database to refuse, document by document."""
    read = json.loads(as_json("hold_added", rows))
    assert [tuple(row.get(name) for name in COLUMNS["hold_added"]) for row in read] == rows
