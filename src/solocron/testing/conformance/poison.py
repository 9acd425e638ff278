"""Poison: a document that fails on its own is set aside, longer each time, and disturbs no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.stores.contract import All, Blocked, HeldBy, Named, Store, Verdict
from solocron.stores.paging import iter_jobs
from solocron.testing.conformance.kit import (
    Clients,
    add_hold,
    everything,
    get,
    hold,
    job,
    log,
    names,
    put,
    record,
    take,
    verdicts,
    write,
)

__all__ = ["Poison"]

A, B = Verdict.APPLIED, Verdict.BLOCKED


class Halt(BaseException):
    """An interrupt: not an error of the document."""


class Poison:
    """Chapter seven."""

    def corrupt(self, store: Store, kind: Kind, name: str) -> bool:
        """Override if it can be done: make the content of this document unreadable, and return True."""
        return False

    @pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
    def test_a_change_that_raises_sets_only_its_document_aside(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        now = a.clock()
        put(a, *(job(f"j{i}", due_at=now - SECOND + i) for i in range(5)))
        applied = a.update(everything(), _poisoned("j0", "j3"))
        assert verdicts(applied) == {"j0": B, "j1": A, "j2": A, "j3": B, "j4": A}
        assert all("not you" in (r.error or "") for r in applied.results if r.verdict is B)
        assert get(a, Kind.JOB, "j0") == job("j0", due_at=now - SECOND)
        found = {aside.name: aside for aside in b.blocked()}
        assert sorted(found) == ["j0", "j3"]
        assert found["j0"].kind is Kind.JOB
        assert found["j0"].times == 1
        assert found["j0"].until > now
        assert "not you" in found["j0"].reason

    @pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
    def test_a_record_that_is_there_already_keeps_no_document_from_its_change(self, clients: Clients) -> None:
        a = clients.new()
        put(a, *(job(f"j{i}", active=(hold(f"j{i}@1", "s"),)) for i in range(4)))
        put(a, job("old"), records=(record("j2@1", node="first"),))

        def end(doc: Any, now: int) -> Change | None:
            return Change(replace(doc, active=()), (record(f"{doc.name}@1"),))

        applied = a.update(HeldBy("s"), end)
        assert verdicts(applied) == {"j0": A, "j1": A, "j2": A, "j3": A}
        assert [result.name for result in applied.results if result.duplicates] == ["j2"]
        assert not a.blocked()
        assert sorted((r.run, r.node) for r in log(a) if r.node) == [("j2@1", "first")]
        assert len(log(a)) == 4
        assert a.read(HeldBy("s")) == ()

    @pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
    def test_what_cannot_be_written_as_json_sets_only_its_document_aside(self, clients: Clients) -> None:
        a = clients.new()

        def change(doc: Any, now: int) -> Change:
            return Change(job(doc.name, payload={"ok": 1, "nan": float("nan"), "odd": object()}.get(doc.name)))

        put(a, *(job(name, payload="old") for name in ("ok", "nan", "odd")))
        assert verdicts(a.update(All(Kind.JOB), change)) == {"nan": B, "odd": B, "ok": A}
        assert [doc.definition.payload for doc in a.read(All(Kind.JOB))] == ["old", "old", 1]  # type: ignore[union-attr]

    @pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
    def test_an_unreadable_document_is_set_aside_alone(self, clients: Clients) -> None:
        a = clients.new()
        put(a, *(job(f"j{i}", due_at=a.clock() - SECOND, active=(hold("r", "s"),)) for i in range(4)))
        if not self.corrupt(a, Kind.JOB, "j1"):
            pytest.skip("this store offers no way to break a document: override `corrupt` if there is one")

        def touch(doc: Any, now: int) -> Change:
            return Change(replace(doc, fence=doc.fence + 1))

        for which in (everything(), HeldBy("s"), Named(Kind.JOB, ("j0", "j1", "j2", "j3")), All(Kind.JOB)):
            assert verdicts(a.update(which, touch)) == {"j0": A, "j1": B, "j2": A, "j3": A}
            assert [aside.name for aside in a.blocked()] == ["j1"]
            assert names(a.read(All(Kind.JOB))) == ["j0", "j2", "j3"]

    @pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
    def test_an_unreadable_document_hides_none_after_its_page(self, clients: Clients) -> None:
        """A page that is not full is the last one: a shorter page would end the listing at the first bad document."""
        a = clients.new()
        put(a, *(job(f"j{i}") for i in range(7)))
        if not all(self.corrupt(a, Kind.JOB, name) for name in ("j1", "j2", "j6")):
            pytest.skip("this store offers no way to break a document: override `corrupt` if there is one")
        assert names(a.read(All(Kind.JOB, limit=2))) == ["j0", "j3"]
        assert names(a.read(All(Kind.JOB, after="j0", limit=1))) == ["j3"]
        assert names(a.read(All(Kind.JOB, after="j4", limit=2))) == ["j5"]
        assert [doc.name for doc in iter_jobs(a, size=2)] == ["j0", "j3", "j4", "j5"]

    def test_what_is_set_aside_is_not_due_until_its_time_is_over(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j", due_at=a.clock() - SECOND), job("k", due_at=a.clock() - SECOND))
        a.update(everything(), _poisoned("j"))
        applied = b.update(everything(), add_hold("s"))
        assert applied.results == ()
        assert applied.next_due is None or applied.next_due > applied.now
        assert b.read(everything()) == ()
        _wait_out(clients, a)
        assert not a.blocked()
        assert take(b, "s") == ["j"]

    def test_each_time_it_is_set_aside_for_longer(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j", due_at=a.clock() - SECOND))
        lengths = []
        for times in (1, 2, 3):
            now = a.clock()
            assert verdicts(a.update(everything(), _poisoned("j"))) == {"j": B}
            (aside,) = a.blocked()
            assert aside.times == times
            lengths.append(aside.until - now)
            _wait_out(clients, a)
        assert lengths[0] >= SECOND
        assert lengths[1] > 1.2 * lengths[0]
        assert lengths[2] > 1.2 * lengths[1]

    def test_unblocking_lets_it_take_part_again(self, clients: Clients) -> None:
        a, b = clients.new(), clients.new()
        put(a, job("j", due_at=a.clock() - SECOND))
        a.update(everything(), _poisoned("j"))
        assert b.unblock(Kind.JOB, "j") is True
        assert not a.blocked()
        assert b.unblock(Kind.JOB, "j") is False
        assert b.unblock(Kind.JOB, "missing") is False
        assert take(b, "s") == ["j"]

    def test_a_document_that_is_written_again_takes_part_again(self, clients: Clients) -> None:
        """A new definition is the usual cure; it must take effect before the old document's backoff is over."""
        a, b = clients.new(), clients.new()
        put(a, job("j", due_at=a.clock() - SECOND))
        a.update(everything(), _poisoned("j"))
        put(b, job("j", due_at=a.clock() - SECOND, payload="cured"))
        assert not a.blocked()
        assert take(a, "s") == ["j"]

    def test_what_is_set_aside_can_still_be_named_and_held(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j", active=(hold("r", "s"),)))
        assert verdicts(write(a, Kind.JOB, "j", _poisoned("j"))) == {"j": B}
        assert names(a.read(HeldBy("s"))) == names(a.read(Named(Kind.JOB, ("j",)))) == ["j"]
        assert verdicts(a.update(HeldBy("s"), lambda doc, now: Change(replace(doc, active=())))) == {"j": A}

    def test_a_change_that_raises_for_a_missing_document_disturbs_nobody(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j"), job("k"))

        def change(doc: Any, now: int) -> Change:
            return Change(replace(doc, fence=1))  # there is nothing to replace in one that is absent

        assert verdicts(a.update(Named(Kind.JOB, ("j", "missing", "k")), change)) == {"j": A, "missing": B, "k": A}
        assert get(a, Kind.JOB, "missing") is None

    def test_an_interrupt_is_not_the_fault_of_a_document(self, clients: Clients) -> None:
        a = clients.new()
        put(a, job("j"), job("k"))

        def change(doc: Any, now: int) -> Change:
            if doc.name == "k":
                raise Halt
            return Change(replace(doc, fence=1))

        with pytest.raises(Halt):
            a.update(Named(Kind.JOB, ("j", "k")), change)
        assert get(a, Kind.JOB, "k") == job("k")
        assert not a.blocked()
        put(a, job("j", fence=2), job("k", fence=2))
        assert [get(a, Kind.JOB, name).fence for name in "jk"] == [2, 2]


def _poisoned(*bad: str) -> Any:
    """Return a claim that fails for these names."""

    def change(doc: Any, now: int) -> Change | None:
        if doc.name in bad:
            raise ValueError("not you")
        return add_hold("s")(doc, now)

    return change


def _wait_out(clients: Clients, store: Store) -> None:
    (aside,) = store.blocked()
    assert isinstance(aside, Blocked)
    clients.advance(aside.until - store.clock() + SECOND)
