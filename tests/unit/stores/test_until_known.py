"""An update is repeated until the outcome of every document is known, and not once more."""

from __future__ import annotations

from typing import Any, cast

import pytest

from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import All, Applied, Gate, HeldBy, Named, Result, Store, Verdict
from solocron.stores.until_known import TRIES, update_until_known

A, D, C, U = Verdict.APPLIED, Verdict.DECLINED, Verdict.CONTENDED, Verdict.UNKNOWN
AB = Named(Kind.JOB, ("a", "b"))


class Script:
    """A store that replies as it is told, and notes what it was asked."""

    def __init__(self, *replies: dict[str, Verdict] | Exception | Applied) -> None:
        self._replies = list(replies)
        self.asked: list[Any] = []
        self.gates: list[Any] = []

    def update(self, which: Any, change: Any, *, session: Any = None, gate: Any = None) -> Applied:
        self.asked.append(which)
        self.gates.append(gate)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Applied):
            return reply
        return Applied(results=tuple(Result(name, verdict) for name, verdict in reply.items()), now=1)


def run(script: Script, which: Any = AB, **more: Any) -> dict[str, Verdict]:
    applied = update_until_known(cast(Store, script), which, lambda doc, now: None, **more)
    return {result.name: result.verdict for result in applied.results}


def test_what_is_known_is_not_asked_for_again() -> None:
    script = Script({"a": A, "b": C}, {"b": U}, {"b": D})
    assert run(script) == {"a": A, "b": D}
    assert [which.names for which in script.asked] == [("a", "b"), ("b",), ("b",)]


def test_each_known_result_is_reported_once() -> None:
    seen: list[tuple[str, Verdict]] = []
    run(Script({"a": A, "b": C}, {"b": A}), each=lambda result: seen.append((result.name, result.verdict)))
    assert seen == [("a", A), ("b", A)]


def test_what_stays_open_is_returned_as_it_is() -> None:
    script = Script({"a": A, "b": C}, {"b": C})
    assert run(script) == {"a": A, "b": C}
    assert len(script.asked) == TRIES


def test_a_store_that_is_away_ends_it() -> None:
    script = Script({"a": A, "b": C}, StoreUnavailable("away"))
    with pytest.raises(StoreUnavailable):
        run(script)
    assert len(script.asked) == 2


def test_a_caller_may_be_more_patient() -> None:
    script = Script(StoreUnavailable("away"), {"a": C, "b": A}, {"a": A})
    assert run(script, again=lambda tries, applied, error: tries < 3) == {"a": A, "b": A}


@pytest.mark.parametrize("shut", [Applied(results=(), now=1, shut=True), Applied(results=(), now=1, alive=False)])
def test_a_shut_gate_and_a_dead_session_end_it(shut: Applied) -> None:
    script = Script(shut)
    assert run(script) == {}
    assert len(script.asked) == 1


def test_a_gate_that_is_asked_for_is_asked_for_at_every_try() -> None:
    gates = iter([Gate(1, ()), Gate(2, ())])
    script = Script({"a": C, "b": A}, {"a": A})
    run(script, gate=lambda: next(gates))
    assert script.gates == [Gate(1, ()), Gate(2, ())]


def test_what_a_session_holds_is_selected_anew_until_nothing_is_left() -> None:
    script = Script({"a": A, "b": C}, {"c": A})
    assert run(script, HeldBy("s")) == {"a": A, "c": A}
    assert script.asked == [HeldBy("s"), HeldBy("s")]


def test_of_what_a_session_holds_a_declined_document_is_open() -> None:
    script = Script({"a": D}, {"a": A})
    assert run(script, HeldBy("s")) == {"a": A}


def test_of_a_page_only_what_is_open_is_asked_for_again_by_name() -> None:
    script = Script({"a": A, "b": C}, {"b": A})
    assert run(script, All(Kind.JOB, limit=2)) == {"a": A, "b": A}
    assert script.asked == [All(Kind.JOB, limit=2), Named(Kind.JOB, ("b",))]
