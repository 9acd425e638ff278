"""Words for people: what it does, what clock changes do to it, and what may surprise them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from solocron.clock import to_us
from solocron.schedules import At, Cron, Every, dst_notes, lint, spread

NEW_YORK = "America/New_York"
NOVEMBER = to_us(datetime(2026, 11, 15, tzinfo=UTC))
YEAR = timedelta(days=366)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("30 2 * * *", "At 02:30 every day"),
        ("0 9,17 * * *", "At 09:00 and 17:00 every day"),
        ("0 9 * * MON-FRI", "At 09:00 on Monday through Friday"),
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("*/15 * * * MON-FRI", "Every 15 minutes on Monday through Friday"),
        ("*/7 * * * *", "Every seventh minute of every hour"),
        ("0 * * * *", "Every hour"),
        ("0 */6 * * *", "Every 6 hours"),
        ("5 * * * *", "At minute 5 of every hour"),
        ("* * * * * *", "Every second"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("30 0 9 * * *", "At 09:00:30 every day"),
        ("0 0 1 * *", "At 00:00 on the first day of every month"),
        ("0 0 L * *", "At 00:00 on the last day of every month"),
        ("0 0 LW * *", "At 00:00 on the last weekday of every month"),
        ("0 0 * * MON#2", "At 00:00 on the second Monday of the month"),
        ("0 0 * * 5L", "At 00:00 on the last Friday of the month"),
        ("0 0 29 2 *", "At 00:00 on February 29"),
        ("0 0 13 * FRI", "At 00:00 on the 13th day of every month or on Friday"),
        ("0 0 */2 * MON", "At 00:00 on every second day of month if it's on Monday"),
        ("0 6 * JAN *", "At 06:00 every day in January"),
        ("@daily", "At 00:00 every day"),
        ("@yearly", "At 00:00 on January 1"),
        ("0 12 ? * WED", "At 12:00 on Wednesday"),
    ],
)
def test_an_expression_reads_as_a_sentence(expression, words):
    assert Cron(expression, tz=NEW_YORK).describe() == f"{words}, {NEW_YORK}"


def test_h_is_described_by_what_it_became():
    assert Cron("H H * * *", seed="jobname").describe() == "At 20:15 every day, UTC"


@pytest.mark.parametrize(
    ("expression", "dst", "notes"),
    [
        ("30 2 * * *", None, ["2027-03-14: 02:30 does not exist, runs once at 03:00."]),
        ("30 2 * * *", {"gap": "skip"}, ["2027-03-14: 02:30 does not exist, skipped."]),
        ("0,30 2 * * *", None, ["2027-03-14: 02:00, 02:30 do not exist, run once, together, at 03:00."]),
        ("30 1 * * *", None, ["2027-11-07: 01:30 happens twice, runs once, the first time."]),
        ("30 1 * * *", {"fold": "last"}, ["2027-11-07: 01:30 happens twice, runs once, the second time."]),
        ("30 1 * * *", {"fold": "both"}, ["2027-11-07: 01:30 happens twice, runs both times."]),
        ("15 30 2 * * *", None, ["2027-03-14: 02:30:15 does not exist, runs once at 03:00."]),
        (
            "*/10 1-2 * * *",
            None,
            [
                "2027-03-14: 02:00, 02:10, 02:20 and more do not exist, skipped.",
                "2027-11-07: 01:00, 01:10, 01:20 and more happen twice, run both times.",
            ],
        ),
        ("0 9 * * *", None, []),
        ("30 2 * * MON", None, []),
        ("*/10 * * * *", None, []),
    ],
)
def test_clock_changes_are_told_with_their_dates(expression, dst, notes):
    cron = Cron(expression, tz=NEW_YORK, dst=dst)
    assert dst_notes(cron, NOVEMBER, YEAR) == notes
    assert dst_notes(spread(cron, "5m", "job"), NOVEMBER, YEAR) == notes


def test_a_day_that_does_not_exist_is_told_with_the_day_after():
    cron = Cron("0 9 * * *", tz="Pacific/Apia")
    december = to_us(datetime(2011, 12, 1, tzinfo=UTC))
    assert dst_notes(cron, december, timedelta(days=60)) == [
        "2011-12-30: 09:00 does not exist, runs once at 2011-12-31 00:00."
    ]


@pytest.mark.parametrize("schedule", [Every("1h"), At(datetime(2027, 3, 14, tzinfo=UTC)), Cron("30 2 * * *")])
def test_where_no_clock_is_set_there_is_nothing_to_tell(schedule):
    assert dst_notes(schedule, NOVEMBER, YEAR) == []
    assert lint(schedule) == []


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        ("*/7 * * * *", "the minute field '*/7': 7 does not divide 60, so the last interval is a shorter one."),
        ("*/25 0 0 * * *", "the second field '*/25': 25 does not divide 60, so the last interval is a shorter one."),
        ("0 */5 * * *", "the hour field '*/5': 5 does not divide 24, so the last interval is a shorter one."),
        ("*/90 * * * *", "the minute field '*/90': a step of 90 leaves only 0."),
        ("0 0 31 * *", "the day of month field '31': months without day 31 are left out; L is the last day."),
        (
            "0 0 1,29,30 * *",
            "the day of month field '1,29,30': months without day 29, 30 are left out; L is the last day.",
        ),
        ("0 0 29 2 *", "the day of month field '29': months without day 29 are left out; L is the last day."),
        ("0 0 30-31 */2 *", "the day of month field '30-31': months without day 31 are left out; L is the last day."),
        ("0 0 13 * FRI", "both day fields are given: it runs when either matches, as in cron, not only when both do."),
        (
            "0 0 */2 * MON",
            "both day fields are given and one begins with *: both must match, as in cron (croniter takes either).",
        ),
    ],
)
def test_what_is_seldom_meant_is_pointed_out(expression, warning):
    assert lint(Cron(expression)) == [warning]
    assert lint(spread(Cron(expression), "5m", "job")) == [warning]


@pytest.mark.parametrize(
    "expression",
    ["*/15 * * * *", "0 */6 * * *", "0 9 * * MON-FRI", "0 0 L * *", "* * * * * *", "@monthly", "0 0 31 1,3 *"],
)
def test_what_is_plain_is_not_criticised(expression):
    assert lint(Cron(expression)) == []


def test_a_rule_without_effect_is_pointed_out():
    warning = ["dst has no effect here: it is for fixed times in a zone whose clocks are set."]
    assert lint(Cron("30 2 * * *", dst={"gap": "skip"})) == warning
    assert lint(Cron("*/30 * * * *", tz=NEW_YORK, dst={"fold": "last"})) == warning


def test_lint_names_the_date_of_a_clock_change():
    cron = Cron("30 2 * * *", tz=NEW_YORK)
    assert lint(cron, NOVEMBER) == ["2027-03-14: 02:30 does not exist, runs once at 03:00."]
    assert len(lint(cron)) == 1
