"""Readers ask the document first, then the log: a run that ends between the two looks is never missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.model._fast.values import replace
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.session import Session, begin
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import claim
from solocron.model.transitions.finishing import Outcome, finish
from solocron.stores.contract import Named
from solocron.stores.memory import MemoryStore

LATE = 25 * SECOND


class Ends:
    """A run that is claimed, and ends as soon as a client has read a document or the log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scheduler = Scheduler("memory://", enabled=True)
        scheduler.every("1000d", name="data")(lambda: None)
        scheduler.tick()
        self.client = scheduler.open()
        store = self.client.store
        assert isinstance(store, MemoryStore)
        self.store = store
        self.resolve = scheduler.registry.resolve
        mine = Session(name="s", node="n", host="h", pid=1, lease=15 * SECOND)
        store.update(Named(Kind.SESSION, ("s",)), lambda doc, now: begin(doc, mine, now=now))
        self.run = self.client.trigger("data", key="k")
        self.hold = self._change(lambda doc, now: claim(doc, now=now, by=self._me(), resolve=self.resolve))
        assert isinstance(self.hold, Hold)
        for verb in ("read", "history"):
            monkeypatch.setattr(store, verb, self._then_end(getattr(store, verb)))

    def _me(self) -> Claimant:
        return Claimant(session="s", node="n", late_for=LATE)

    def _change(self, change: Callable[[Job | Absent, int], Change | None]) -> Any:
        return self.store.update(Named(Kind.JOB, ("data",)), change).results[0].answer

    def _then_end(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            found = verb(*args)
            hold = self.hold
            self._change(
                lambda doc, now: finish(
                    doc, run=hold.run, fence=hold.fence, outcome=Outcome.succeeded(), now=now, resolve=self.resolve
                )
            )
            return found

        return called


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    return Ends(monkeypatch)


def test_a_run_that_ends_between_two_looks_is_found(ends: Ends) -> None:
    assert ends.client.get_run(ends.run).status == "succeeded"


def test_a_listing_shows_it_once_as_it_ended(ends: Ends) -> None:
    assert [(view.run, view.status) for view in ends.client.runs()] == [(ends.run, "succeeded")]
    assert [view.status for view in ends.client.runs("data")] == ["succeeded"]


def test_its_attempts_show_it_once(ends: Ends) -> None:
    assert [view.status for view in ends.client.attempts(ends.run)] == ["succeeded"]


def test_waiting_for_it_ends(ends: Ends) -> None:
    assert ends.client.wait(ends.run, timeout=5).status == "succeeded"


def test_the_same_key_is_the_same_run_also_when_the_document_has_forgotten_it(ends: Ends) -> None:
    def forget(doc: Any, now: int) -> Change:
        return Change(replace(doc, requests=()))

    ends.store.update(Named(Kind.JOB, ("data",)), forget)
    assert ends.client.trigger("data", key="k") == ends.run
    doc = ends.store.read(Named(Kind.JOB, ("data",)))[0]
    assert isinstance(doc, Job)
    assert doc.waiting == 0, "no second run"
