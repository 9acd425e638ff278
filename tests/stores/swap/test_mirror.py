"""A mirror makes the index keys of documents and records itself, and forgets them with what they follow from."""

from __future__ import annotations

from solocron.model.change import Kind
from solocron.stores.swap.key_store import Span
from solocron.stores.swap.layout import Header, document_key, is_derived, log_keys, packed
from solocron.stores.swap.mirror import Mirror
from solocron.testing.conformance.kit import record


def _index(mirror: Mirror) -> list[str]:
    (page,) = mirror.fetch((), [Span("", "\U0010ffff", bare=True)], "").pages
    return [item.key for item in page if is_derived(item.key)]


def _job(due: int | None, *held: str) -> str:
    return packed(Header(due=due, pool="p", handler="h", held=held), "fixed", "state")


def test_the_index_follows_the_header_of_a_document() -> None:
    mirror = Mirror()
    key = document_key(Kind.JOB, "j")
    mirror.put(key, _job(5, "s"), 1)
    assert _index(mirror) == [f"due/p/{5:016}/j", "held/job/s/j"]
    mirror.put(key, _job(7), 2)
    assert _index(mirror) == [f"due/p/{7:016}/j"]
    assert mirror.fetch([f"due/p/{7:016}/j"], (), "").items[f"due/p/{7:016}/j"].value == "h"
    mirror.delete(key, 3)
    assert _index(mirror) == []
    assert mirror.gone == {}


def test_the_index_follows_a_record_of_the_log() -> None:
    mirror = Mirror()
    first, *index = log_keys(one := record("j@1", at=9)).items()
    mirror.put(*first, 1)
    assert _index(mirror) == sorted(key for key, _ in index)
    assert {key: mirror.items[key].value for key, _ in index} == dict(index)
    mirror.delete(first[0], 2)
    assert _index(mirror) == [], one


def test_a_broken_value_has_no_index_and_stops_no_other_key() -> None:
    mirror = Mirror()
    mirror.put(document_key(Kind.JOB, "j"), "{broken", 1)
    mirror.put("run/j@1", "{broken", 2)
    mirror.put(document_key(Kind.JOB, "k"), _job(5), 3)
    assert _index(mirror) == [f"due/p/{5:016}/k"]


def test_a_deletion_is_kept_where_the_server_compares_with_it() -> None:
    mirror = Mirror()
    mirror.put("k", "v", 1)
    mirror.delete("k", 2, compared=True)
    assert mirror.gone == {"k": 2}
    mirror.put("k", "v", 3)
    assert mirror.gone == {}


def test_notifications_that_were_missed_are_told() -> None:
    mirror = Mirror()
    mirror.notify("a 1", 4)
    mirror.put("k", "v", 9)  # of a commit whose notification is still on its way
    place, values = mirror.news(0, 0.0, lambda: False)
    assert (place, values) == (4, ["a 1"])
    mirror.notify(None, 9)
    mirror.notify("b 1", 9)
    assert mirror.news(place, 0.0, lambda: False) == (9, [None, "b 1"])
