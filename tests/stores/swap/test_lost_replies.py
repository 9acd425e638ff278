"""A commit whose reply is lost is found out about, or called off; only what cannot be learnt stays unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.session import renew
from solocron.stores.contract import Named, Verdict
from solocron.stores.swap.key_store import Condition, Lost, Stale, Swapped
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.stores.swap.store import SwapStore
from solocron.testing.conformance.kit import add_hold, get, job, log, note, put, record, session, take, verdicts, write

Sent = Callable[[], Swapped | Stale]


class CutKeys(MemoryKeys):
    """Loses replies: `cut` gets each commit of documents and decides when it arrives, if at all."""

    cut: Callable[[Sent], None] | None = None
    away = False

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        def send() -> Swapped | Stale:
            return super(CutKeys, self).commit(checks, writes, look=look, also=also, server=server)

        if self.away:
            raise StoreUnavailable("away")
        if self.cut is not None:
            cut, self.cut = self.cut, None
            cut(send)
            raise Lost("cut")
        return send()

    def fetch(self, *args: Any, **more: Any) -> Any:
        if self.away:
            raise StoreUnavailable("away")
        return super().fetch(*args, **more)


@pytest.fixture
def keys() -> CutKeys:
    return CutKeys(SharedKeys())


@pytest.fixture
def store(keys: CutKeys) -> SwapStore:
    store = SwapStore(keys, lease=timedelta(seconds=0.3))
    store.open()
    return store


def test_a_commit_that_arrived_is_applied(keys: CutKeys, store: SwapStore) -> None:
    put(store, job("i", due_at=1), job("j", due_at=1))
    put(store, session("s", expires_at=store.clock() + SECOND))
    keys.cut = lambda send: None if isinstance(send(), Swapped) else pytest.fail("it was refused")
    assert take(store, "s", session="s") == ["i", "j"]
    assert [hold.session for hold in get(store, Kind.JOB, "i").active] == ["s"]


def test_a_commit_that_never_arrived_is_tried_again(keys: CutKeys, store: SwapStore) -> None:
    put(store, job("i", due_at=1), job("j", due_at=1))
    keys.cut = lambda send: None
    assert take(store, "s") == ["i", "j"]


def test_a_late_commit_is_called_off(keys: CutKeys, store: SwapStore) -> None:
    """A claim that is believed not to be made must not arrive a minute later."""
    other = SwapStore(MemoryKeys(keys.shared))
    put(store, job("j", due_at=1))
    late: list[Sent] = []
    keys.cut = late.append
    store.rounds = 1  # type: ignore[misc]
    applied = store.update(Named(Kind.JOB, ("j",)), add_hold("s"))
    assert verdicts(applied) == {"j": Verdict.CONTENDED}
    assert isinstance(late[0](), Stale)
    assert take(other, "t") == ["j"]
    assert [hold.session for hold in get(store, Kind.JOB, "j").active] == ["t"]


def test_calling_off_changes_nothing_but_the_mark(keys: CutKeys, store: SwapStore) -> None:
    put(store, job("j", due_at=5), records=(record("j@1"),))
    before = {key: item.value for key, item in keys.world.items.items() if key != "notify"}
    late: list[Sent] = []
    keys.cut = late.append
    store.rounds = 1  # type: ignore[misc]
    write(store, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=9)))
    assert {key: item.value for key, item in keys.world.items.items() if key != "notify"} == before
    assert isinstance(late[0](), Stale)


def test_what_was_to_be_created_stays_unknown(keys: CutKeys, store: SwapStore) -> None:
    """There is no mark to change: a creation can arrive at any time."""
    late: list[Sent] = []
    keys.cut = late.append
    applied = write(store, Kind.LOCK, "l", lambda doc, now: Change(note(Kind.LOCK, "l")))
    assert verdicts(applied) == {"l": Verdict.UNKNOWN}
    assert isinstance(late[0](), Swapped)


def test_a_server_that_stays_away_leaves_it_unknown_in_time(keys: CutKeys, store: SwapStore) -> None:
    put(store, job("j"))

    def gone(send: Sent) -> None:
        keys.away = True

    keys.cut = gone
    applied = write(store, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=9)))
    assert verdicts(applied) == {"j": Verdict.UNKNOWN}


def test_a_record_alone_is_told_by_its_document(keys: CutKeys, store: SwapStore) -> None:
    """The document stays as it is; whether the record was appended shows in its header."""
    put(store, job("j"))
    for arrives in (True, False):
        keys.cut = lambda send, arrives=arrives: send() if arrives else None  # type: ignore[misc]
        (result,) = write(store, Kind.JOB, "j", lambda doc, now: Change(doc, (record(f"j@{now}"),))).results
        assert (result.verdict, result.duplicates) == (Verdict.APPLIED, ())
    assert len(log(store)) == 2


def test_a_renewal_whose_reply_was_lost_goes_on(keys: CutKeys, store: SwapStore) -> None:
    put(store, session("s", expires_at=store.clock() + SECOND))
    for arrives in (True, False, True):
        keys.cut = lambda send, arrives=arrives: send() if arrives else None  # type: ignore[misc]
        renewed = write(store, Kind.SESSION, "s", lambda doc, now: renew(doc, now=now))
        assert verdicts(renewed) == {"s": Verdict.APPLIED}
    assert get(store, Kind.SESSION, "s").beats == 3
