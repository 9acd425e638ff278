"""What goes over the wire and what lies in the keys: any text survives it, and a bad one spoils only itself."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import solocron.stores.redis
from solocron.model.change import Change, Kind
from solocron.model.codec import encode
from solocron.model.documents.run import Origin, Record, Status
from solocron.stores.contract import ChangeFn, Query
from solocron.stores.drafts import Draft, Row, draft
from solocron.stores.record_text import may_be_found, record_text, recorded_at
from solocron.stores.redis import records
from solocron.stores.redis.drafts import Spelt, spelt
from solocron.stores.redis.scripts import script
from solocron.stores.redis.wire import pack, spell, unpack
from solocron.testing.conformance.kit import hold, job, note

LUA = Path(solocron.stores.redis.__file__).parent / "lua"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
instants = st.none() | st.integers(0, 2**53)


def test_a_command_is_packed_with_lengths_in_bytes() -> None:
    assert pack(["GET", "", "☂\r\n"]) == "*3\r\n$3\r\nGET\r\n$0\r\n\r\n$5\r\n☂\r\n\r\n".encode()


@given(st.lists(st.tuples(texts, texts, texts, texts), max_size=5))
def test_documents_come_out_of_the_reply_as_they_went_in(rows: list[tuple[str, str, str, str]]) -> None:
    body = b""
    for row in rows:
        texts = [text.encode() for text in row]
        body += struct.pack(">4I", *map(len, texts)) + b"".join(texts)
    fetched = unpack(b"5 - 1 0 7\n" + body)
    assert fetched.rows == [Row(*row) for row in rows]
    assert (fetched.now, fetched.next_due, fetched.live, fetched.more, fetched.commits) == (5, None, True, False, 7)


record_texts = st.none() | texts
a_record = st.builds(
    Record,
    run=texts,
    job=texts,
    attempt=st.integers(0, 10**6),
    slot=st.integers(-(2**53), 2**53),
    origin=st.sampled_from(Origin),
    status=st.sampled_from(Status),
    key=texts,
    recorded_at=st.integers(0, 2**53),
    reason=record_texts,
    node=record_texts,
    session=record_texts,
    fence=st.integers(0, 2**53),
    claimed_at=instants,
    started_at=instants,
    finished_at=instants,
    error=record_texts,
    result=record_texts,
    progress=record_texts,
    first=instants,
    count=st.integers(1, 10**9),
)


@given(a_record, st.booleans(), st.booleans(), st.booleans())
def test_no_record_that_a_query_finds_is_passed_over_unread(
    record: Record, node: bool, session: bool, origin: bool
) -> None:
    query = Query(
        node=record.node if node else None,
        session=record.session if session else None,
        origins=frozenset([record.origin, Origin.TRIGGER] if origin else []),
    )
    assert query.finds(record)
    assert may_be_found(query, record_text(record))
    assert recorded_at(record_text(record)) == record.recorded_at


def test_a_record_without_the_words_of_a_filter_is_not_read() -> None:
    text = record_text(Record(run="j@1", job="j", attempt=1, slot=1, origin=Origin.SCHEDULE, status=Status.SUCCEEDED,
                              key="k", recorded_at=1, node="here", session="s", fence=1))  # fmt: skip
    for query in (Query(node="her"), Query(session="t"), Query(origins=frozenset([Origin.TRIGGER]))):
        assert not may_be_found(query, text)


@given(a_record)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    count, member, status, at, slots, of, text = records.record_words([record])
    assert (count, status, at, slots, of) == (
        *("1", record.status, str(record.recorded_at), str(record.count), record.job),
    )
    assert records.record_of(member, text) == record


def test_members_are_ordered_by_run_and_then_by_attempt() -> None:
    pairs = [("a", 2), ("a", 10), ("a", 1), ("a b", 0), ("b", 0)]
    members = sorted((records.member_of(*pair) for pair in pairs), key=str.encode)
    assert members == [records.member_of(*pair) for pair in [("a", 1), ("a", 2), ("a", 10), ("a b", 0), ("b", 0)]]


@pytest.mark.parametrize("name", [file.stem for file in LUA.glob("*.lua")])
def test_every_script_opens_with_a_sentence(name: str) -> None:
    first = (LUA / f"{name}.lua").read_text().splitlines()[0]
    assert first.startswith("-- ")
    assert first.endswith(".")


def test_a_script_is_called_by_the_digest_under_which_a_server_knows_it() -> None:
    fetch = script("fetch")
    assert fetch.source.startswith((LUA / "common.lua").read_text())
    assert fetch.digest == hashlib.sha1(fetch.source.encode()).hexdigest()
    assert fetch.by_digest("{tag}", "{tag}:ring", ["a"]) == ["EVALSHA", fetch.digest, "2", "{tag}", "{tag}:ring", "a"]
    assert fetch.by_source("{tag}", "{tag}:ring", ["a"]) == ["EVAL", fetch.source, "2", "{tag}", "{tag}:ring", "a"]


def drafted(row: Row, change: ChangeFn) -> Draft:
    """Draft as the store does; what cannot be spelt is the document's own error."""

    def prepare(one: Draft) -> None:
        one.extra = spelt(one)

    made = draft(Kind.JOB, row.name, row, change, 1, prepare=prepare)
    assert made is not None
    return made


class TestDrafts:
    def row(self, doc: Any) -> Row:
        return Row(doc.name, "1.5  ", *encode(doc))

    def test_a_claim_sends_no_definition(self) -> None:
        made = drafted(self.row(job("j")), lambda doc, now: Change(replace(doc, fence=7)))
        assert made.extra.words.text.startswith("$5\r\nstate\r\n")
        assert "handler" not in made.extra.words.text

    @given(st.lists(a_record, max_size=3), texts, st.none() | st.integers(0, 2**53), st.integers(0, 2))
    def test_what_is_spelt_by_hand_is_spelt_like_everything_else(
        self, of: list[Record], holder: str, due: int | None, failures: int
    ) -> None:
        """In whatever language: lengths are in bytes."""
        name, written = "j", tuple(of)
        new = {"due_at": due, "active": (hold("r", holder),), "failures": failures}
        row = self.row(job(name, due_at=9, failures=1))
        made = drafted(row, lambda doc, now: Change(replace(doc, **new), written))
        assert made.error is None
        wakes = "1" if due is not None and due < 9 else "0"
        marks = "" if failures else "0"  # it failed before: the mark is sent when it goes
        at, holders = "" if due is None else str(due), f"{len(holder.encode())}:{holder}"
        words = ["state", name, row.mark, wakes, made.state, at, holders, marks, *records.record_words(written)]
        assert made.extra == Spelt(spell(words), f" {at} {holders}")

    def test_a_new_definition_is_sent_with_pool_and_handler(self) -> None:
        new = job("j", handler="other", pool="gpu", due_at=5, active=(hold("r", "s"), hold("r2", "été")))
        made = drafted(self.row(job("j")), lambda doc, now: Change(new))
        assert made.fixed is not None
        words = ["job", "j", "1.5  ", "1", made.fixed, made.state, "5", "1:s5:été", "gpu", "other", "", "0"]
        assert made.extra.words == spell(words)

    def test_nothing_to_write_is_not_spelt(self) -> None:
        for change in (lambda doc, now: None, lambda doc, now: Change(doc, answer=1)):
            assert drafted(self.row(job("j")), change).extra is None

    def test_a_document_that_cannot_be_read_says_why(self) -> None:
        assert "JSON" in (drafted(Row("j", "1", "{}", "{"), lambda doc, now: None).error or "")

    @pytest.mark.parametrize(
        "new",
        [job("other"), note(Kind.KEY, "j"), job("j", payload="\ud800"), job("j", active=(hold("r", "\ud800"),))],
    )
    def test_a_change_that_cannot_be_written_says_so(self, new: Any) -> None:
        assert drafted(self.row(job("j")), lambda doc, now: Change(new)).error is not None

    def test_text_that_utf8_cannot_carry_is_found_before_it_is_sent(self) -> None:
        spell(["fine", "☂"])
        with pytest.raises(UnicodeEncodeError):
            spell(["fine", "\ud800"])
