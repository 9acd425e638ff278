"""The page that explains an expression: its rules, and a year of its days."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from solocron.schedules import Cron
from solocron.service.pages.explain import days_of_a_year, year_of
from tests.unit.service.browsing import HTML
from tests.unit.service.kit import World

NOW = datetime(2026, 11, 16, 3, 12, 47, tzinfo=UTC)


def days(expression: str, zone: str = "Europe/Vienna", **rules: str):
    found = days_of_a_year(Cron(expression, tz=zone, dst=rules or None), NOW)
    return {one.day: one for one in found}


def test_a_year_has_every_day_once_and_as_many_slots_as_the_schedule():
    found = days("30 2 * * MON-FRI")
    assert list(found) == [date(2026, 11, 16) + timedelta(days=number) for number in range(366)]
    assert [found[date(2026, 11, day)].slots for day in (20, 21, 22, 23)] == [1, 0, 0, 1]
    assert sum(one.slots for one in days("* * * * *", "UTC").values()) == 366 * 1_440


def test_the_days_on_which_the_clocks_change_say_so_and_have_the_slots_of_their_rule():
    spring, autumn = date(2027, 3, 28), date(2027, 10, 31)
    found = days("30 2 * * *")
    assert found[spring].change == "the clocks go forward by 1 h"
    assert found[autumn].change == "the clocks go back by 1 h"
    assert [day for day, one in found.items() if one.change] == [spring, autumn]
    hourly = days("0 * * * *")
    assert (hourly[spring].slots, hourly[autumn].slots) == (23, 25)
    assert days("30 2 * * *", gap="skip")[spring].slots == 0
    assert days("30 2 * * *", fold="both")[autumn].slots == 2


@pytest.mark.parametrize("zone", ["America/Havana", "Africa/Cairo", "Australia/Lord_Howe", "UTC"])
def test_a_clock_change_at_midnight_or_by_half_an_hour_loses_no_slot(zone):
    assert sum(one.slots for one in days("*/30 * * * *", zone).values()) in range(366 * 48 - 2, 366 * 48 + 3)


def test_the_picture_has_a_row_for_each_month_and_a_label_for_each_day():
    part = year_of(list(days("0 0 1 * *").values()), "0 0 1 * *")
    assert part.table.count('scope="row"') == 13
    assert part.lead == "12 slots on 12 days"
    assert len(re.findall(r'class="cell day', part.table)) == 12
    assert "Tue 1 Dec 2026: 1 slot<" in part.table
    assert len(part.changes) == part.table.count(" asked") == 2


def test_the_rules_of_the_form_reach_the_schedule_and_stay_in_it(world: World) -> None:
    asked = "expression=30+2+*+*+*&zone=Europe/Vienna&gap=skip"
    shown = world.ask("/explain", query=asked, accept=HTML).response.body.decode()
    assert '<option value="skip" selected>' in shown
    assert "<h2>A year</h2>" in shown
    assert "skipped" in shown
    wrong = world.ask("/explain", query="expression=61+*+*+*+*", accept=HTML).response.body.decode()
    assert 'role="alert"' in wrong
    assert "<h2>A year</h2>" not in wrong
    assert world.ask("/explain", query="expression=*+*+*+*+*&gap=maybe", accept=HTML).status == 400
