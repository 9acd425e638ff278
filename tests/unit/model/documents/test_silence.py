"""Silences: what one covers, that it ends by itself, and that every one is found."""

from __future__ import annotations

import pytest

from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.silence import (
    Silence,
    document_of,
    expire,
    lift,
    read_silences,
    silence,
    silenced_by,
)


def made(what: str, until: int = 100) -> Silence:
    return Silence(what=what, until=until, at=1, by="ann", note="deploy")


def written(what: str, until: int = 100) -> SmallDocument:
    doc = silence(Absent(Kind.ALARM, document_of(what)), made(what, until)).doc
    assert isinstance(doc, SmallDocument)
    return doc


@pytest.mark.parametrize(
    ("what", "kind", "subject", "covered"),
    [
        ("late", "late", "anything", True),
        ("late", "missed", "anything", False),
        ("billing-*", "late", "billing-eu", True),
        ("billing-*", "failing", "billing-eu", True),
        ("billing-*", "late", "mail", False),
        ("late:billing-*", "late", "billing-eu", True),
        ("late:billing-*", "failing", "billing-eu", False),
        ("no node:gpu", "no node", "gpu", True),
        ("eu:mail", "late", "eu:mail", True),
        ("EU:mail", "late", "eu:mail", False),
    ],
)
def test_a_silence_names_a_kind_or_a_pattern_or_both(what: str, kind: str, subject: str, covered: bool) -> None:
    assert made(what).covers(kind, subject, now=50) is covered


def test_a_silence_covers_nothing_from_its_end_on_and_is_removed_then() -> None:
    assert made("late").covers("late", "job", now=99)
    assert not made("late").covers("late", "job", now=100)
    assert expire(written("late"), now=99) is None
    change = expire(written("late"), now=100)
    assert change is not None
    assert change.doc is None


def test_silences_are_read_back_as_they_were_written_the_first_to_end_first() -> None:
    docs = [written("late", 300), written("billing-*", 200)]
    docs.append(SmallDocument(kind=Kind.ALARM, name="late:job", body={"state": "open"}))
    assert read_silences(docs) == [made("billing-*", 200), made("late", 300)]
    found = silenced_by(read_silences(docs), "late", "billing-eu", now=50)
    assert found == made("late", 300), "the one that lasts longest says until when"


def test_a_silence_is_lifted_once() -> None:
    change = lift(written("late"))
    assert change is not None
    assert change.doc is None
    assert lift(Absent(Kind.ALARM, document_of("late"))) is None
