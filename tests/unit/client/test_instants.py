"""What is no aware datetime is refused in one line, by every verb that takes an instant; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from solocron import InvalidError, Scheduler, every

EARLY = datetime(2027, 1, 4, tzinfo=UTC)
NAIVE = datetime(2027, 1, 4)  # noqa: DTZ001 - the mistake under test


@every("1h", name="report")
def report() -> None: ...


VERBS: dict[str, Callable[[Scheduler, Any], object]] = {
    "at": lambda scheduler, given: scheduler.trigger("report", at=given),
    "until": lambda scheduler, given: scheduler.pause("report", until=given),
    "until of many": lambda scheduler, given: scheduler.pause_all(until=given),
    "at of why": lambda scheduler, given: scheduler.why("report", given),
    "slot": lambda scheduler, given: scheduler.rerun("report", given),
    "failed_since": lambda scheduler, given: scheduler.rerun("report", failed_since=given),
    "start": lambda scheduler, given: scheduler.backfill("report", given, EARLY),
    "end": lambda scheduler, given: scheduler.backfill("report", EARLY, given),
    "end of slots": lambda scheduler, given: scheduler.slots("report", EARLY, given),
    "since of runs": lambda scheduler, given: scheduler.runs(since=given),
    "until of runs": lambda scheduler, given: scheduler.runs(until=given),
    "since": lambda scheduler, given: scheduler.accounting(given),
}


@pytest.mark.parametrize(("given", "why"), [("tomorrow", "is not a datetime"), (NAIVE, "has no time zone")])
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_instant_is_refused(verb: str, given: object, why: str) -> None:
    scheduler = Scheduler("memory://")
    scheduler.discover(report)
    with scheduler:
        before = scheduler.get_job("report")
        with pytest.raises(InvalidError) as error:
            VERBS[verb](scheduler, given)
        told = str(error.value)
        assert told.startswith(f"{verb.split()[0]}={given!r} {why}; nothing was ")
        assert told.endswith(". Pass an aware datetime.")
        assert (scheduler.get_job("report").paused, scheduler.pauses()) == (before.paused, [])
        assert scheduler.runs() == []
