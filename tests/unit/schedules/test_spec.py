"""Schedules as JSON: small, exact, shared, and never code."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from solocron.errors import ScheduleError
from solocron.schedules import At, Cron, Every, dump, load, spread


@pytest.mark.parametrize(
    ("schedule", "spec"),
    [
        (Cron("0 9 * * *"), {"kind": "cron", "expression": "0 9 * * *", "tz": "UTC"}),
        (
            Cron("H 9 * * *", tz="Europe/Paris", dst={"gap": "skip"}, seed="report"),
            {
                "kind": "cron",
                "expression": "H 9 * * *",
                "tz": "Europe/Paris",
                "dst": {"gap": "skip", "fold": "first"},
                "seed": "report",
            },
        ),
        (Every("1h30m"), {"kind": "every", "period": "1h30m"}),
        (At(datetime(2026, 1, 1, tzinfo=UTC)), {"kind": "at", "at": "2026-01-01T00:00:00Z"}),
        (At(datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)), {"kind": "at", "at": "2026-01-01T00:00:00.000001Z"}),
        (
            spread(Every("1h"), "5m", "report"),
            {"kind": "every", "period": "1h", "spread": "5m", "spread_by": "report"},
        ),
    ],
)
def test_what_is_written_is_read_back(schedule, spec):
    assert dump(schedule) == spec
    assert load(json.loads(json.dumps(spec))) == schedule


def test_equal_specs_give_one_object():
    spec = dump(spread(Cron("H 9 * * *", tz="Europe/Paris", seed="report"), "5m", "report"))
    assert load(spec) is load(dict(spec))


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "cron"},
        {"kind": "cron", "expression": "0 9 * * *"},
        {"kind": "cron", "expression": ["0 9 * * *"], "tz": "UTC"},
        {"kind": "cron", "expression": "0 9 * * *", "tz": "Mars/Olympus"},
        {"kind": "cron", "expression": "0 9 * * *", "tz": "UTC", "dst": "skip"},
        {"kind": "cron", "expression": "0 9 * * *", "tz": "UTC", "dst": {"gap": "never"}},
        {"kind": "cron", "expression": "0 9 * * *", "tz": "UTC", "dst": {"other": "skip"}},
        {"kind": "cron", "expression": "61 9 * * *", "tz": "UTC"},
        {"kind": "cron", "expression": "0 9 * * *", "tz": "UTC", "spread": "5m"},
        {"kind": "at", "at": "tomorrow"},
        {"kind": "at", "at": 5},
        {"kind": ["every"], "period": "5m"},
    ],
)
def test_a_damaged_spec_is_refused(bad):
    with pytest.raises(ScheduleError):
        load(bad)


def test_a_kind_from_the_future_says_so():
    with pytest.raises(ScheduleError, match="unknown kind of schedule 'lunar'; a newer release wrote it"):
        load({"kind": "lunar", "phase": "full"})
