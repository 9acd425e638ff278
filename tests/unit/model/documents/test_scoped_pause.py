"""Pauses of many jobs at once, as the namespace's document lists them."""

from __future__ import annotations

from functools import partial

from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import namespace, scoped_pause
from solocron.model.documents.namespace import NAME, Namespace
from solocron.model.documents.scoped_pause import NO_PAUSES, STANDING, Reach, Scope, ScopedPause

ALL, ETL, INVOICES = Scope(Reach.ALL), Scope(Reach.POOL, "etl"), Scope(Reach.MATCH, "invoice:*")
NOWHERE = Absent(Kind.NAMESPACE, NAME)
pause = partial(namespace.pause, identity="server", token="t")


def after(change: Change | None) -> Namespace:
    assert change is not None
    found = namespace.read(change.doc)
    assert found is not None
    return found


def test_each_scope_has_its_own_and_each_is_lifted_alone() -> None:
    found = Namespace(count=1, token="t", identity="server")
    for now, scope in enumerate((ALL, ETL, INVOICES), 10):
        found = after(pause(found.note(), wanted=ScopedPause(scope=scope, at=0, by="ana", note="why"), now=now))
    assert [(str(one.scope), one.at) for one in found.pauses] == [
        ("all jobs", 10), ("pool etl", 11), ("jobs matching invoice:*", 12),
    ]  # fmt: skip
    lifted = namespace.lift_pause(found.note(), scope=ETL, by="bo", now=20)
    left = after(lifted)
    assert [one.scope for one in scoped_pause.standing(left.pauses, 20)] == [ALL, INVOICES]
    ended = next(one for one in left.pauses if one.scope == ETL)
    assert (ended.at, ended.until, ended.lifted_by, ended.by) == (11, 20, "bo", "ana")
    assert namespace.lift_pause(left.note(), scope=ETL, by="bo", now=21) is None
    assert namespace.lift_pause(NOWHERE, scope=ETL, by="bo", now=21) is None


def test_the_same_scope_again_goes_on_with_the_new_note_and_end() -> None:
    first = after(pause(NOWHERE, wanted=ScopedPause(scope=ALL, at=0, note="a"), now=10))
    again = after(pause(first.note(), wanted=ScopedPause(scope=ALL, at=0, note="b", until=99), now=20))
    (one,) = again.pauses
    assert (one.at, one.note, one.until) == (10, "b", 99)
    assert [p.stands(100) for p in again.pauses] == [False]
    new = after(pause(again.note(), wanted=ScopedPause(scope=ALL, at=0), now=100))
    assert [(p.at, p.until) for p in new.pauses] == [(10, 99), (100, None)], "the one that is over stays listed"


def test_a_pause_may_be_the_first_that_is_written_in_a_namespace() -> None:
    made = after(pause(NOWHERE, wanted=ScopedPause(scope=ALL, at=0), now=10))
    assert (made.count, made.identity, made.openness) == (1, "server", "open")
    kept = after(namespace.establish(made.note(), identity="server", token="u"))
    assert kept == made


def test_the_gate_names_the_list_of_pauses() -> None:
    found = Namespace(count=1, token="t", identity="server")
    assert found.gate == f"open 1.t server {NO_PAUSES}"
    one = after(pause(found.note(), wanted=ScopedPause(scope=ALL, at=0), now=10))
    two = after(pause(one.note(), wanted=ScopedPause(scope=ALL, at=0, note="n"), now=11))
    lifted = after(namespace.lift_pause(two.note(), scope=ALL, by=None, now=12))
    assert len({found.gate, one.gate, two.gate, lifted.gate}) == 4
    assert namespace.read(two.note()) == two


def test_a_check_a_restore_and_a_closed_namespace_keep_the_pauses() -> None:
    found = after(pause(NOWHERE, wanted=ScopedPause(scope=ETL, at=0), now=10)).note()
    begun = namespace.begin_check(found, identity="other", known=1, checked="", token="u", now=20)
    closed = namespace.close(found, identity="other", known=1, token="u", now=20)
    restoring = after(namespace.begin_restoring(found, identity="other", token="r", now=20)).note()
    opened = namespace.reopen(restoring, identity="other", restoring="r", token="u", now=20)
    assert [after(change).pauses[0].scope for change in (begun, closed, opened)] == [ETL] * 3


def test_the_list_is_bounded() -> None:
    found: Namespace = Namespace(count=1, token="t", identity="server")
    for n in range(STANDING):
        found = after(pause(found.note(), wanted=ScopedPause(scope=Scope(Reach.POOL, str(n)), at=0), now=n))
    assert pause(found.note(), wanted=ScopedPause(scope=ALL, at=0), now=500) is None
    for n in range(STANDING):
        found = after(namespace.lift_pause(found.note(), scope=Scope(Reach.POOL, str(n)), by=None, now=1000 + n))
    assert len(found.pauses) == 64
    assert min(one.until or 0 for one in found.pauses) == 1000 + STANDING - 64, "the oldest are forgotten"
