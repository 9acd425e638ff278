"""Alarms: what gives cause for one, and that each opens and closes with its cause, at whatever time nodes look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import SECOND
from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents import alarm
from solocron.model.documents.alarm import Bounds, Cause, Turn
from solocron.model.documents.alarm_causes import causes
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job, Last, Missed, Pause
from solocron.model.documents.run import Origin, Status
from solocron.model.documents.scoped_pause import Reach, Scope, ScopedPause
from solocron.model.documents.session import Life, Session

NOW = 1_800_000_000 * SECOND
MINUTE = 60 * SECOND
BOUNDS = Bounds(every=30 * SECOND, late=5 * MINUTE, failing=3, patience=MINUTE)
NODE = Session(name="s", node="n", host="h", pid=1, handlers=("work",), lease=15 * SECOND, expires_at=NOW + 5 * SECOND)
JOB = Job(name="job", incarnation=1, definition=Definition(handler="work", schedule=None), cursor=0)
HOLD = Hold(
    run="job@1", slot=0, origin=Origin.SCHEDULE, attempt=1, tries=0, session="s", node="n", fence=1, claimed_at=0,
    deadline=NOW - MINUTE,
)  # fmt: skip
LAST = Last(
    run="job@0", slot=0, attempt=1, status=Status.FAILED, finished_at=NOW - 20 * MINUTE, error="x\nValueError: y"
)


def found(
    *jobs: Job, sessions: Any = (NODE,), aside: frozenset[str] = frozenset(), tier: str = "A", **bounds: Any
) -> Any:
    given = causes(jobs, sessions, aside=aside, tier=tier, bounds=replace(BOUNDS, **bounds), now=NOW)
    return {name: cause.detail for name, cause in given.items()}


# --- causes ----------------------------------------------------------------------------------------------------------


def test_a_job_that_is_well_gives_no_cause() -> None:
    assert found(replace(JOB, due_at=NOW + MINUTE, failures=2)) == {}


@pytest.mark.parametrize(
    ("change", "name", "detail"),
    [
        ({"due_at": NOW - 6 * MINUTE}, "late:job", "due since 2027-01-15T07:54:00Z, and no node claimed it"),
        ({"failures": 3, "last": LAST}, "failing:job", "3 runs in a row ended badly: ValueError: y"),
        ({"active": (HOLD,)}, "stuck:job", "job@1 runs on n, past its deadline of 2027-01-15T07:59:00Z"),
        (
            {"missed": Missed(at=NOW, first=NOW - 3 * MINUTE, last=NOW - MINUTE, count=3)},
            "missed:job", "3 slots, 2027-01-15T07:57:00Z to 2027-01-15T07:59:00Z",
        ),
        (
            {"missed": Missed(at=NOW - 60 * MINUTE, first=NOW, last=NOW, count=1), "last": None},
            "missed:job", "the slot of 2027-01-15T08:00:00Z",
        ),
        (
            {"definition": Definition(handler="other", schedule=None)},
            "orphaned:job", "no live node of pool default has its handler other",
        ),
        (
            {"definition": Definition(handler="work", schedule=None, pool="gpu")},
            "no node:gpu", "no live node serves this pool, which has job",
        ),
    ],
)  # fmt: skip
def test_each_cause_has_its_name_and_says_why(change: dict[str, Any], name: str, detail: str) -> None:
    assert found(replace(JOB, **change)) == {name: detail}


def test_a_handler_that_two_applications_have_gives_cause() -> None:
    mine = replace(JOB, definition=Definition(handler="work", schedule=None, application="billing"))
    sessions = [replace(NODE, node=name, applications=((name, None),)) for name in ("billing", "reports")]
    assert found(mine, sessions=sessions[:1]) == {}
    told = "it belongs to billing, and reports has its handler from reports"
    assert found(mine, sessions=sessions) == {"two applications:job": told}
    assert set(found(mine, sessions=sessions[1:])) == {"two applications:job", "orphaned:job"}
    assert found(replace(mine, paused=Pause(at=NOW)), sessions=sessions) == {}


def test_a_miss_is_over_when_the_job_has_run_since_and_a_while_has_passed() -> None:
    old = Missed(at=NOW - 30 * MINUTE, first=0, last=0, count=1)
    assert found(replace(JOB, missed=old, last=LAST)) == {}
    assert "missed:job" in found(
        replace(JOB, missed=replace(old, at=NOW - MINUTE), last=replace(LAST, finished_at=NOW))
    )
    assert "missed:job" in found(replace(JOB, missed=old, last=LAST), settle=20 * MINUTE), "it is not yet told"


def test_slots_that_a_later_one_ran_instead_of_are_information_unless_asked_for() -> None:
    left_out = replace(JOB, missed=Missed(at=NOW, first=0, last=NOW - MINUTE, count=3, superseded=True))

    def cause(**more: Any) -> Cause:
        bounds = replace(BOUNDS, **more)
        return causes([left_out], [NODE], aside=frozenset(), tier="A", bounds=bounds, now=NOW)["missed:job"]

    assert cause().info
    assert cause().detail.endswith("; a later slot ran instead")
    assert not cause(missed_latest=True).info


def test_a_miss_says_when_it_was_over() -> None:
    """It is found when the slots are decided, which may be long after the outage that was told."""
    missed = Missed(at=NOW, first=NOW - 3 * MINUTE, last=NOW - MINUTE, count=3)
    ill = replace(JOB, due_at=NOW - 6 * MINUTE, failures=3, missed=missed, active=(HOLD,))
    given = causes([ill], [NODE], aside=frozenset(), tier="A", bounds=BOUNDS, now=NOW)
    assert {cause.kind: cause.ended for cause in given.values()} == {
        "late": None, "missed": NOW - MINUTE, "stuck": None, "failing": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "off", [{"paused": Pause(at=0)}, {"removed": True}, {"definition": replace(JOB.definition, enabled=False)}]
)
def test_what_nobody_wants_to_run_gives_no_cause(off: dict[str, Any]) -> None:
    ill = replace(JOB, due_at=0, failures=9, missed=Missed(at=NOW, first=0, last=0, count=1))
    assert len(found(ill)) == 3
    assert found(replace(ill, **off)) == {}


def test_a_job_that_is_paused_with_others_gives_no_cause_until_that_ends() -> None:
    ill = replace(JOB, due_at=NOW - 6 * MINUTE, failures=3)
    pause = ScopedPause(scope=Scope(Reach.POOL, JOB.definition.pool), at=NOW - MINUTE)

    def kinds(*pauses: ScopedPause) -> list[str]:
        given = causes([ill], [NODE], aside=frozenset(), tier="A", bounds=BOUNDS, now=NOW, pauses=pauses)
        return sorted(cause.kind for cause in given.values())

    assert kinds(pause) == []
    assert kinds(replace(pause, until=NOW)) == ["failing", "late"]
    assert kinds(replace(pause, scope=Scope(Reach.POOL, "other"))) == ["failing", "late"]


def test_a_stuck_body_is_named_even_where_its_job_is_paused() -> None:
    assert list(found(replace(JOB, active=(HOLD,), paused=Pause(at=0)))) == ["stuck:job"]


def test_a_cause_names_the_owner_and_the_runbook_of_its_job_and_a_pool_has_none() -> None:
    owned = Definition(handler="work", schedule=None, owner="billing", runbook="https://wiki.example.com/job")
    ill = replace(JOB, definition=owned, failures=3, due_at=0)
    for sessions, expected in (
        ([NODE], [("billing", owned.runbook)] * 2),
        ([], [("billing", owned.runbook), (None, None)]),
    ):
        given = causes([ill], sessions, aside=frozenset(), tier="A", bounds=BOUNDS, now=NOW)
        assert [(cause.owner, cause.runbook) for cause in given.values()] == expected


def test_a_pool_without_a_node_is_one_alarm_however_many_jobs_it_has() -> None:
    other = replace(JOB, name="other", due_at=0)
    assert found(JOB, other, sessions=()) == {
        "no node:default": "no live node serves this pool, which has 2 jobs: job, other"
    }
    dead = replace(NODE, state=Life.DEAD)
    silent = replace(NODE, expires_at=NOW)
    assert list(found(JOB, sessions=(dead, silent))) == ["no node:default"]


def test_the_tier_is_compared_with_what_was_demanded() -> None:
    asked = replace(BOUNDS, tier="A")
    assert list(causes([], [], aside=frozenset(), tier="B", bounds=asked, now=NOW)) == ["tier:store"]
    assert causes([], [], aside=frozenset(), tier="A", bounds=asked, now=NOW) == {}


def test_a_document_that_was_set_aside_is_not_also_late() -> None:
    assert list(found(replace(JOB, due_at=0), aside=frozenset({"job"}))) == ["set aside:job"]


# --- one alarm -------------------------------------------------------------------------------------------------------

CAUSE = Cause(kind="late", subject="job", detail="why")
NONE = Absent(Kind.ALARM, CAUSE.name)


def opened(doc: SmallDocument | Absent, seen: int, now: int | None = None, **cause: Any) -> Any:
    return alarm.open_(doc, replace(CAUSE, **cause), seen=seen, now=seen if now is None else now)


def closed(doc: SmallDocument | Absent, seen: int, now: int | None = None) -> Any:
    return alarm.close(doc, seen=seen, now=seen if now is None else now)


def test_an_alarm_is_opened_once_and_closed_once() -> None:
    first = opened(NONE, 10)
    assert alarm.is_open(first.doc)
    assert opened(first.doc, 20) is None
    last = closed(first.doc, 30)
    assert not alarm.is_open(last.doc)
    assert closed(last.doc, 40) is None
    assert alarm.is_open(opened(last.doc, 50).doc)


def test_a_look_that_is_older_than_the_last_change_undoes_nothing() -> None:
    first = opened(NONE, 10, now=12)
    assert closed(first.doc, 11) is None
    last = closed(first.doc, 13, now=15)
    assert opened(last.doc, 14) is None


def test_an_alarm_with_patience_waits_and_is_closed_unopened_if_its_cause_goes() -> None:
    waiting = opened(NONE, 10, patience=100)
    assert alarm.is_waiting(waiting.doc)
    assert opened(waiting.doc, 50, patience=100) is None
    assert not alarm.is_waiting(closed(waiting.doc, 60).doc)
    raised = opened(waiting.doc, 110, patience=100)
    assert (alarm.is_open(raised.doc), raised.doc.body["since"]) == (True, 10)


def test_information_that_becomes_an_alarm_is_written_anew_and_keeps_its_beginning() -> None:
    first = opened(NONE, 10, info=True)
    assert opened(first.doc, 20, info=True) is None
    second = opened(first.doc, 20, info=False, detail="worse")
    assert {name: second.doc.body[name] for name in ("info", "detail", "since", "state")} == {
        "info": False, "detail": "worse", "since": 10, "state": "open",
    }  # fmt: skip
    assert opened(second.doc, 15, info=True) is None, "an older look"


def test_a_closed_alarm_is_removed_after_a_while_and_an_open_one_never() -> None:
    first = opened(NONE, 10)
    assert alarm.forget(first.doc, before=10**9) is None
    last = closed(first.doc, 20)
    assert alarm.forget(last.doc, before=20) is None
    assert alarm.forget(last.doc, before=21).doc is None  # type: ignore[union-attr]


def turn(doc: SmallDocument | Absent, now: int, by: str = "a") -> Any:
    return alarm.take_turn(doc, by=by, every=30, now=now)


def test_one_node_looks_for_all_and_the_next_turn_comes_without_it() -> None:
    first = turn(Absent(Kind.ALARM, alarm.TURN), 100)
    assert first.answer == Turn(watched_since=100, away=None)
    assert turn(first.doc, 129, "b") is None
    assert turn(first.doc, 130, "b").answer == Turn(watched_since=100, away=30)
    assert turn(first.doc, 50, "b").answer == Turn(watched_since=50, away=-50), "a clock that stepped back stops none"


def test_a_long_pause_between_looks_begins_the_watch_anew() -> None:
    """The store was away, or every node: what the first look finds may be over in a moment."""
    first = turn(Absent(Kind.ALARM, alarm.TURN), 100)
    second = turn(first.doc, 190)
    assert second.answer.watched_since == 100
    third = turn(second.doc, 281)
    assert third.answer == Turn(watched_since=281, away=91)
    assert turn(third.doc, 311).answer.watched_since == 281


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[bool], list[tuple[int, int, bool]]]:
    """Whether there is cause at each moment; and looks: seen when, written when, or dead before that."""
    world = draw(st.lists(st.booleans(), min_size=2, max_size=40))
    looks = draw(
        st.lists(st.tuples(st.integers(0, len(world) - 1), st.integers(0, 10), st.booleans()), min_size=1, max_size=60)
    )
    return world, looks


@given(histories(), st.sampled_from([0, 3]))
def test_an_alarm_opens_no_oftener_than_its_cause_whichever_node_looks_late_or_dies(
    history: tuple[list[bool], list[tuple[int, int, bool]]], patience: int
) -> None:
    """A complete look at the end brings the alarm in line with the world."""
    world, looks = history
    doc: SmallDocument | Absent = NONE
    opens = 0
    for seen, delay, dies in sorted(looks, key=lambda look: look[0] + look[1]):
        if dies:
            continue
        change = opened(doc, seen, seen + delay, patience=patience) if world[seen] else closed(doc, seen, seen + delay)
        if change is not None:
            opens += alarm.is_open(change.doc) and not alarm.is_open(doc)
            doc = change.doc
    episodes = sum(1 for before, after in zip([False, *world], world, strict=False) if after and not before)
    assert opens <= episodes
    late = len(world) + 100
    change = closed(doc, late) if not world[-1] else opened(doc, late)
    final = doc if change is None else change.doc
    assert alarm.is_open(final) == world[-1]
