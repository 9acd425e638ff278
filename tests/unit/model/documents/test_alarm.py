"""Alarms: what gives cause for one, and that each is raised once and cleared once, whoever looks and whoever dies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import SECOND
from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents import alarm
from solocron.model.documents.alarm import Bounds, Cause, causes
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job, Last, Missed, Pause
from solocron.model.documents.run import Origin, Status
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
            "no node:gpu", "job and whatever else is in it cannot run",
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


@pytest.mark.parametrize(
    "off", [{"paused": Pause(at=0)}, {"removed": True}, {"definition": replace(JOB.definition, enabled=False)}]
)
def test_what_nobody_wants_to_run_gives_no_cause(off: dict[str, Any]) -> None:
    ill = replace(JOB, due_at=0, failures=9, missed=Missed(at=NOW, first=0, last=0, count=1))
    assert len(found(ill)) == 3
    assert found(replace(ill, **off)) == {}


def test_a_stuck_body_is_named_even_where_its_job_is_paused() -> None:
    assert list(found(replace(JOB, active=(HOLD,), paused=Pause(at=0)))) == ["stuck:job"]


def test_a_pool_without_a_node_is_one_alarm_however_many_jobs_it_has() -> None:
    other = replace(JOB, name="other", due_at=0)
    assert list(found(JOB, other, sessions=())) == ["no node:default"]
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


def opened(doc: SmallDocument | Absent, seen: int, now: int | None = None, patience: int = 0) -> Any:
    return alarm.open_(doc, replace(CAUSE, patience=patience), seen=seen, now=seen if now is None else now, token="t")


def closed(doc: SmallDocument | Absent, seen: int, now: int | None = None) -> Any:
    return alarm.close(doc, seen=seen, now=seen if now is None else now, token="c")


def test_an_alarm_is_opened_once_and_closed_once() -> None:
    first = opened(NONE, 10)
    assert first.answer == "raised"
    assert opened(first.doc, 20) is None
    last = closed(first.doc, 30)
    assert last.answer == "cleared"
    assert closed(last.doc, 40) is None
    assert opened(last.doc, 50).answer == "raised"


def test_a_look_that_is_older_than_the_last_change_undoes_nothing() -> None:
    first = opened(NONE, 10, now=12)
    assert closed(first.doc, 11) is None
    last = closed(first.doc, 13, now=15)
    assert opened(last.doc, 14) is None


def test_an_alarm_with_patience_waits_and_is_forgotten_without_a_word() -> None:
    waiting = opened(NONE, 10, patience=100)
    assert waiting.answer == "waiting"
    assert opened(waiting.doc, 50, patience=100) is None
    assert closed(waiting.doc, 60).answer == "forgotten"
    raised = opened(waiting.doc, 110, patience=100)
    assert (raised.answer, raised.doc.body["since"]) == ("raised", 10)


def test_a_closed_alarm_is_removed_after_a_while_and_an_open_one_never() -> None:
    first = opened(NONE, 10)
    assert alarm.forget(first.doc, before=10**9) is None
    last = closed(first.doc, 20)
    assert alarm.forget(last.doc, before=20) is None
    assert alarm.forget(last.doc, before=21).doc is None  # type: ignore[union-attr]


def test_one_node_looks_for_all_and_the_next_turn_comes_without_it() -> None:
    absent = Absent(Kind.ALARM, alarm.TURN)
    first = alarm.take_turn(absent, by="a", every=30, now=100)
    assert first is not None
    assert isinstance(first.doc, SmallDocument)
    assert alarm.take_turn(first.doc, by="b", every=30, now=129) is None
    assert alarm.take_turn(first.doc, by="b", every=30, now=130) is not None
    assert alarm.take_turn(first.doc, by="b", every=30, now=50) is not None, "a clock that stepped back stops nobody"


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[bool], list[tuple[int, int, bool]]]:
    """Whether there is cause at each moment; and looks: seen when, written when, or dead before that."""
    world = draw(st.lists(st.booleans(), min_size=2, max_size=40))
    looks = draw(
        st.lists(st.tuples(st.integers(0, len(world) - 1), st.integers(0, 10), st.booleans()), min_size=1, max_size=60)
    )
    return world, looks


@given(histories(), st.sampled_from([0, 3]))
def test_raised_and_cleared_alternate_whoever_looks_late_or_dies(
    history: tuple[list[bool], list[tuple[int, int, bool]]], patience: int
) -> None:
    """Never more alarms than there were causes; a complete look at the end brings the alarm in line with the world."""
    world, looks = history
    doc: SmallDocument | Absent = NONE
    told: list[str] = []
    for seen, delay, dies in sorted(looks, key=lambda look: look[0] + look[1]):
        if dies:
            continue
        change = opened(doc, seen, seen + delay, patience) if world[seen] else closed(doc, seen, seen + delay)
        if change is not None:
            doc = change.doc
            told += [change.answer] if change.answer in ("raised", "cleared") else []
    assert told == ["raised", "cleared"] * (len(told) // 2) + ["raised"] * (len(told) % 2)
    episodes = sum(1 for before, after in zip([False, *world], world, strict=False) if after and not before)
    assert told.count("raised") <= episodes
    assert alarm.is_open(doc) == (len(told) % 2 == 1)
    late = len(world) + 100
    change = closed(doc, late) if not world[-1] else opened(doc, late, late, 0)
    final = doc if change is None else change.doc
    assert alarm.is_open(final) == world[-1]
