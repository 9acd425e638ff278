"""Nodes may know different rules for one zone; a nominal local time is decided once all the same.

Paris stands for a zone with summer time, Algiers for the same zone after a government gave it up: equal in winter, an
hour apart in summer. `node_of` gives each node its own rules for one and the same stored schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import SECOND, to_us
from solocron.model.timetable import EMPTY, Resolve, Timetable
from solocron.schedules import Cron
from tests.unit.model.one_job import T0, OneJob

HOUR = 3600


def node_of(tz: str) -> Resolve:
    """How a node with these rules reads a stored schedule."""

    def resolve(spec: Mapping[str, Any] | None) -> Timetable:
        return EMPTY if spec is None else Timetable(Cron(spec["expression"], tz=tz))

    return resolve


SUMMER, NO_SUMMER = node_of("Europe/Paris"), node_of("Africa/Algiers")
JULY = (to_us(datetime(2026, 7, 16, tzinfo=UTC)) - T0) / SECOND
"""Midnight UTC of a day on which Paris reads 02:00 and Algiers 01:00."""


def in_july(expression: str, **options: Any) -> OneJob:
    job = OneJob(None, by=SUMMER)
    job.at(JULY)
    job.define(Cron(expression, tz="Europe/Paris"), **options)
    return job


@pytest.mark.invariant("I18: every node finds the same slots")
@pytest.mark.parametrize(("first", "second"), [(SUMMER, NO_SUMMER), (NO_SUMMER, SUMMER)])
def test_nine_oclock_is_decided_once(first: Resolve, second: Resolve) -> None:
    """Paris' rules say 07:00 UTC, Algiers' 08:00: one node decides it first, the other does not again."""
    job = in_july("0 9 * * *", catch_up="all")
    job.by = first
    job.at(JULY + (7 if first is SUMMER else 8) * HOUR)
    assert len(job.run_all("a")) == 1
    job.by = second
    for hour in (7, 7.5, 8, 8.5, 12):
        if hour >= (job.now - T0) / SECOND / HOUR - JULY / HOUR:
            assert job.at(JULY + hour * HOUR).run_all("b") == []
    assert len(job.log) == 1
    assert len(job.at(JULY + 24 * HOUR + 8 * HOUR).run_all("b")) == 1


@pytest.mark.invariant("I18: every node finds the same slots")
def test_a_node_that_reads_later_hours_goes_on_where_the_other_stopped() -> None:
    """09:00 was decided by the one; the other decides 10:00 by its own rules, and 11:00 is the first's again."""
    job = in_july("0 9,10,11 * * *", catch_up="all")
    assert len(job.at(JULY + 7 * HOUR).run_all("paris")) == 1
    job.by = NO_SUMMER
    assert job.at(JULY + 8 * HOUR).run_all("algiers") == [], "its 09:00, decided already"
    assert len(job.at(JULY + 9 * HOUR).run_all("algiers")) == 1, "its 10:00"
    job.by = SUMMER
    assert job.at(JULY + 9 * HOUR + 1).run_all("paris") == [JULY + 9 * HOUR], "11:00 by Paris, which has just begun"
    job.by = NO_SUMMER
    assert job.at(JULY + 12 * HOUR).run_all("algiers") == []
    records = list(job.log.values())
    assert records[1].slot == records[2].slot, "10:00 by the one and 11:00 by the other are one instant"
    assert len({record.run for record in records}) == len({record.key for record in records}) == 3


@pytest.mark.invariant("I18: every node finds the same slots")
@pytest.mark.parametrize("asleep", ["paused", "disabled"])
def test_what_was_skipped_by_one_is_not_run_by_the_other(asleep: str) -> None:
    job = in_july("0 9 * * *", catch_up="all", enabled=asleep == "paused")
    if asleep == "paused":
        job.pause()
    job.at(JULY + 7.5 * HOUR)
    if asleep == "paused":
        job.resume()
    else:
        job.define(Cron("0 9 * * *", tz="Europe/Paris"), catch_up="all")
    assert job.covered("skipped") == [(JULY + 7 * HOUR, JULY + 7 * HOUR, 1)]
    job.by = NO_SUMMER
    assert job.at(JULY + 8 * HOUR).run_all("b") == []


@pytest.mark.invariant("I18: every node finds the same slots")
@pytest.mark.parametrize("redefiner", [SUMMER, NO_SUMMER])
def test_a_schedule_that_grows_an_hour_does_not_repeat_the_one_it_had(redefiner: Resolve) -> None:
    job = in_july("0 9 * * *", catch_up="all")
    assert len(job.at(JULY + 7 * HOUR).run_all("a")) == 1
    job.by = redefiner
    job.at(JULY + 7.5 * HOUR).define(Cron("0 9,15 * * *", tz="Europe/Paris"), catch_up="all")
    for rules in (NO_SUMMER, SUMMER, NO_SUMMER):
        job.by = rules
        assert job.at(JULY + 8.5 * HOUR).run_all("b") == []
    assert len(job.at(JULY + 15 * HOUR).run_all("b")) == 1


@pytest.mark.parametrize("paused", [True, False])
def test_a_job_that_moves_to_another_zone_is_read_by_the_clocks_there(paused: bool) -> None:
    """The cursor's reading is of the old zone: taken for one of the new, hours would count as decided."""
    job = OneJob(Cron("0 * * * *", tz="Europe/Paris"), catch_up="all").at(1800)
    if paused:
        job.pause()
    job.define(Cron("0 * * * *", tz="America/New_York"), catch_up="all")
    job.resume()
    assert job.at(3600).run_all() == [3600]


@pytest.mark.invariant("I11: the cursor passes no slot without a record")
def test_a_resume_by_other_rules_does_not_take_the_cursor_back() -> None:
    """09:00 ran by Paris' rules; at 07:30 UTC Algiers reads 08:30, which must not become the cursor."""
    job = in_july("0 9 * * *", catch_up="all")
    assert len(job.at(JULY + 7 * HOUR).run_all("a")) == 1
    job.pause()
    job.by = NO_SUMMER
    job.at(JULY + 7.5 * HOUR).resume()
    job.by = SUMMER
    assert job.at(JULY + 7.6 * HOUR).run_all("a") == []
    assert len(job.log) == 1


def test_a_waiting_range_made_by_other_rules_loses_none_of_its_ends() -> None:
    """On one node both 09:00 and 10:00 wait; another, whose hours lie elsewhere, runs both."""
    job = in_july("0 9,10 * * *", catch_up="all")
    job.by = NO_SUMMER
    job.at(JULY + 10 * HOUR).pause()
    assert job.job.waiting == 2
    job.resume()
    job.by = SUMMER
    assert job.run_all("paris") == [JULY + 8 * HOUR, JULY + 9 * HOUR]


@pytest.mark.invariant("I18: every node finds the same slots")
@given(
    st.lists(
        st.tuples(st.sampled_from([SUMMER, NO_SUMMER]), st.integers(1, 6 * 4), st.sampled_from(["claim", "wake"])),
        min_size=1,
        max_size=60,
    )
)
def test_nodes_of_both_kinds_taking_turns_decide_each_reading_once(
    turns: list[tuple[Resolve, int, str]],
) -> None:
    job = in_july("0 */3 * * *", catch_up="all")
    decided: list[str] = []
    quarter = JULY * 4 / HOUR
    cursor = job.job.cursor
    for rules, quarters, what in turns:
        quarter += quarters
        job.by = rules
        job.at(quarter * HOUR / 4)
        seen = set(job.log)
        if what == "wake":
            job.pause()
            job.resume()
        job.run_all("n")
        slots = rules(job.job.definition.schedule)
        decided += [str(slots.nominal(job.log[where].slot)) for where in sorted(set(job.log) - seen)]
        assert job.job.cursor >= cursor
        cursor = job.job.cursor
    assert len(decided) == len(set(decided)), f"decided twice: {sorted(decided)}"
