"""The house: opening and closing, namespaces, what a store says about itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.run import Status
from solocron.model.documents.session import Life
from solocron.stores.contract import All, HeldBy, HeldByAny, Store, Tier
from solocron.testing.conformance.kit import (
    HOUR,
    Clients,
    counts_of,
    everything,
    get,
    hold,
    job,
    log,
    names,
    note,
    put,
    record,
    session,
    take,
    write,
)
from solocron.testing.conformance.rivals import processes, race

__all__ = ["Keeping"]


class Keeping:
    """Chapter nine."""

    def test_opening_again_changes_nothing(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j"), records=(record("j@1"),))
        a.open()
        clients.new().open()
        assert a.read(All(Kind.JOB)) == (job("j"),)
        assert log(a) == (record("j@1"),)

    def test_any_number_of_clients_may_open_a_new_world_at_once(self, clients: Clients) -> None:
        stores = [clients.unopened() for _ in range(8)]

        def begin(store: Store) -> None:
            store.open()
            put(store, note(Kind.KEY, f"n{stores.index(store)}"))

        race([partial(begin, store) for store in stores])
        assert names(stores[0].read(All(Kind.KEY))) == [f"n{i}" for i in range(8)]

    def test_any_number_of_processes_may_open_a_new_world_at_once(self, clients: Clients) -> None:
        store = clients.unopened()
        if not store.capabilities.shared:
            pytest.skip("this store says that it cannot be shared by processes")

        def begin(me: str) -> None:
            put(clients.new(), note(Kind.KEY, me))

        processes([partial(begin, f"n{i}") for i in range(5)])
        assert names(store.read(All(Kind.KEY))) == [f"n{i}" for i in range(5)]

    def test_a_closed_client_opens_by_itself_and_finds_everything(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j", active=(hold("j@1", "s"),)), records=(record("j@1"),))
        a.close()
        a.close()
        assert names(a.read(HeldBy("s"))) == ["j"]
        a.close()
        put(a, job("k", due_at=a.clock() - SECOND))
        a.close()
        assert take(a, "s") == ["k"]
        assert log(a) == (record("j@1"),)

    def test_closing_one_client_leaves_the_others_alone(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j"))
        a.close()
        assert get(b, Kind.JOB, "j") == job("j")
        put(b, job("k"))

    def test_namespaces_know_nothing_of_each_other(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new("other")
        now = a.clock()
        assert (a.namespace, b.namespace) == ("default", "other")
        mine = (
            job("j", due_at=now - SECOND, active=(hold("j@1", "s"),)),
            session("s", expires_at=now - SECOND),
            session("gone", expires_at=now, state=Life.SWEPT, ended_at=now - HOUR),
            note(Kind.LOCK, "l", by="s"),
        )
        put(a, *mine, records=(record("j@1", at=now), record("j@2", at=now - HOUR, status=Status.LOST)))
        assert all(b.read(All(kind)) == () for kind in Kind)
        assert (
            b.read(everything()) == b.read(HeldBy("s")) == b.read(HeldBy("s", Kind.LOCK)) == b.read(HeldByAny()) == ()
        )
        assert b.names(Kind.JOB) == ()
        assert b.holders() == frozenset()
        assert log(b) == ()
        assert counts_of(b) == {}
        assert b.prune(before=now, limit=10) == 0
        assert write(b, Kind.LOCK, "x", lambda doc, now: Change(note(Kind.LOCK, "x")), session="s").alive is False
        theirs = job("j", payload="theirs")
        put(b, theirs, records=(record("j@1", node="theirs"),))
        write(b, Kind.LOCK, "l", lambda doc, now: Change(None))
        b.update(All(Kind.JOB), _raise)
        assert get(a, Kind.JOB, "j") == mine[0]
        assert a.read(HeldBy("s", Kind.LOCK)) == (mine[3],)
        assert get(a, Kind.SESSION, "gone") is not None
        assert [r.node for r in log(a, run="j@1")] == [None]
        assert not a.blocked()
        assert a.unblock(Kind.JOB, "j") is False
        assert [aside.name for aside in b.blocked()] == ["j"]

    def test_statements_are_counted_by_the_client_that_sent_them(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j"))
        sent, others = Counter(a.statements), Counter(b.statements)
        write(a, Kind.JOB, "j", lambda doc, now: Change(replace(doc, fence=1)))
        wrote = a.statements - sent
        assert wrote["commit"] == 1
        sent = Counter(a.statements)
        a.read(All(Kind.JOB))
        assert sum((a.statements - sent).values()) >= 1
        assert b.statements == others

    def test_it_says_where_it_is_and_what_it_can_be_trusted_with(self, clients: Clients) -> None:
        a = clients.new()
        assert "://" in a.url
        assert isinstance(a.capabilities.tier, Tier)
        assert a.capabilities.why
        checks = list(a.checks())
        assert checks
        assert {check.level for check in checks} <= {"OK", "WARN", "FAIL"}
        assert all(check.name and check.detail for check in checks)
        assert all(check.remedy for check in checks if check.level != "OK")


def _raise(doc: Any, now: int) -> Change:
    raise ValueError("not you")
