"""A claimer asks a schedule once for the jobs that stand at the same slot, and shares the answer with no other."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from solocron.clock import SECOND
from solocron.model._fast.next_slots import NextSlots
from solocron.model.timetable import Timetable
from solocron.model.transitions.claimant import Claimant
from solocron.schedules import At, Every, Schedule
from solocron.schedules.instants import after as real_after
from tests.unit.model.one_job import T0

MINUTE = 60 * SECOND
asked: list[int] = []


@pytest.fixture(autouse=True)
def _count_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    def after(schedule: Schedule, us: int) -> int | None:
        asked.append(us)
        return real_after(schedule, us)

    asked.clear()
    monkeypatch.setattr("solocron.schedules.instants.after", after)


def test_the_same_question_is_answered_without_the_schedule() -> None:
    slots, claimer = Timetable(Every("1m")), NextSlots()
    first = claimer.after(slots, T0)
    assert first == claimer.after(slots, T0) == (T0 + MINUTE, T0 + 2 * MINUTE, None)
    assert asked == [T0, T0 + MINUTE]


def test_another_cursor_and_another_timetable_are_other_questions() -> None:
    slots, claimer = Timetable(Every("1m")), NextSlots()
    claimer.after(slots, T0)
    assert claimer.after(slots, T0 + MINUTE)[0] == T0 + 2 * MINUTE
    assert claimer.after(Timetable(Every("1h")), T0 + MINUTE)[0] == T0 + 60 * MINUTE


def test_two_claimers_share_nothing() -> None:
    slots = Timetable(Every("1m"))
    one, two = (Claimant(session=name, node=name, late_for=SECOND) for name in "ab")
    one.next_slots.after(slots, T0)
    asked.clear()
    two.next_slots.after(slots, T0)
    assert asked == [T0, T0 + MINUTE]


def test_a_schedule_that_has_ended_has_no_next_slot() -> None:
    assert NextSlots().after(Timetable(cast(Any, At(datetime.fromisoformat("2020-01-01T00:00Z")))), T0) == (
        None,
        None,
        None,
    )


def test_a_schedule_of_the_users_own_is_asked_every_time() -> None:
    class Own:
        def after(self, at: datetime) -> datetime:
            return at + timedelta(minutes=1)

    slots, claimer = Timetable(cast(Schedule, Own())), NextSlots()
    for _ in range(2):
        claimer.after(slots, T0)
    assert asked == [T0, T0 + MINUTE] * 2
