"""Durations: what people write is read exactly, and what cannot be meant is refused with one clear sentence."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.duration import format_duration, parse_duration, to_us
from solocron.errors import InvalidError
from tests.unit.model.effort import effort


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5400),
        ("30s", 30),
        ("250ms", 0.25),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1w2d3h4m5s6ms7us", 788_645.006007),
        ("1h 30m", 5400),
        (" 10s ", 10),
        ("1.5h", 5400),
        ("0.1s", 0.1),
        ("0s", 0),
        (90, 90),
        (0.25, 0.25),
        (0, 0),
        (timedelta(minutes=3), 180),
    ],
)
def test_what_people_write_is_read(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "bad",
    [
        *[
            "",
            " ",
            "90",
            "1x",
            "h",
            "1h1h",
            "30m1h",
            "-5s",
            "+5s",
            "1e3s",
            "1,5h",
            "1H",
            "5 s",
            "1..5s",
            "٣s",
            "nan",
            "inf",
        ],
        *[-1, -0.5, math.nan, math.inf, -math.inf, 1e300, 10**400, timedelta(microseconds=-1)],
        *[True, None, [], b"1s", "1" * 63 + "w", "9" * 10_000],
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(bad):
    with pytest.raises(InvalidError, match=r"^timeout: .*; give a timedelta, .* or a string such as") as refused:
        parse_duration(bad, what="timeout")
    assert len(str(refused.value)) < 250


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=200_000)))
def test_a_duration_survives_being_written_and_read(duration):
    assert parse_duration(format_duration(duration)) == duration
    assert timedelta(microseconds=to_us(duration)) == duration


@given(st.text(alphabet="0123456789wdhmsu. -", max_size=10_000))
def test_any_text_is_read_or_refused_at_once(text):
    def read() -> None:
        try:
            parse_duration(text)
        except InvalidError:
            pass

    assert effort(read, 0.05) < 0.05


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(hours=1, minutes=30), "1h30m"),
        (timedelta(weeks=2), "14d"),
        (timedelta(microseconds=1_250_001), "1s250ms1us"),
        (timedelta(), "0s"),
        (timedelta(seconds=-90), "-1m30s"),
    ],
)
def test_it_is_written_briefly(duration, text):
    assert format_duration(duration) == text
