"""What was declared or added can be read back, all of it, and added again as it was."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron import (
    At,
    Backoff,
    Cron,
    Every,
    InvalidError,
    JobSpec,
    JobView,
    Scheduler,
    allow,
    catch_up_all,
)
from solocron.jobs.options import AddOptions, CronOptions
from solocron.model.documents.job import Job
from solocron.schedules import spread
from solocron.stores.paging import find_job
from solocron.testing.clock import ManualClock
from solocron.views import to_json
from tests.properties import calm

EVERYTHING: AddOptions = {
    "tz": "Europe/Vienna",
    "dst": {"gap": "skip", "fold": "both"},
    "timeout": "20m",
    "retries": 3,
    "backoff": Backoff("2s", factor=3, cap="1m", jitter=0),
    "on_crash": "fail",
    "on_lost": "finish",
    "on_stuck": "abandon",
    "overlap": allow(2),
    "catch_up": catch_up_all(limit=10, within="1d", rate="7/m"),
    "start_within": "90s",
    "pool": "reports",
    "run_in": "thread",
    "pause_after": 5,
    "calendar": "fr-banking",
    "on_holiday": "next",
    "enabled": False,
    "payload": {"customer": 42, "lines": [1, None, "ü"]},
    "shards": ("eu", "us"),
    "limit": "db-heavy:2",
    "spread": "10m",
    "starts": date(2027, 1, 1),
    "ends": "2027-12-31T12:00:00+01:00",
    "tags": ("money", "nightly"),
    "owner": "billing@example.com",
    "runbook": "https://wiki.example.com/invoices",
}
"""Every option with a value that is not its default, except those that exclude others here."""
APART: tuple[AddOptions, ...] = (
    {"run_in": "process", "memory": "512M", "cpu": 2},
    {"nodes": "all"},
    {"prefer": "last"},
    {"run_in": "queue", "hand_over": {"priority": 5}},
)


def with_handler() -> Scheduler:
    scheduler = ManualClock().scheduler()
    scheduler.register(lambda: None, name="send")
    scheduler.calendar("fr-banking", holidays=[date(2027, 5, 1)])
    return scheduler


def stored(scheduler: Scheduler, name: str) -> Job:
    found = find_job(scheduler.open().store, name)
    assert found is not None
    return found


def test_the_samples_cover_every_option() -> None:
    covered = set(EVERYTHING).union(*APART)
    assert covered == set(get_type_hints(AddOptions)), "a new option needs a value here"


def test_every_option_is_a_field_of_the_view() -> None:
    shown = {field.name for field in fields(JobView)}
    in_code = {"on_retry"}
    assert {("zone" if name == "tz" else name) for name in get_type_hints(CronOptions)} - in_code <= shown


@pytest.mark.parametrize("options", [EVERYTHING, *APART], ids=["everything", "process", "nodes", "prefer", "carrier"])
def test_what_is_read_back_makes_the_same_definition(options: AddOptions) -> None:
    scheduler = with_handler()
    view = scheduler.add("report", "send", "30 6 * * MON-FRI", **options)
    before = stored(scheduler, "report").definition
    spec = view.job_spec()
    assert spec.options.keys() == options.keys()
    scheduler.remove("report")
    again = scheduler.add(spec.name, spec.handler, spec.schedule, **spec.options)
    assert stored(scheduler, "report").definition == before
    assert again.job_spec() == spec


@calm(60)
@given(
    st.sampled_from(
        [
            "H H(0-5) * * *", "@daily", Every("12h"), At(datetime(2030, 1, 1, tzinfo=UTC)),
            spread(Every("1h"), "5m", "x"), Cron("0 9 * * *", tz="Asia/Tokyo"),
            Cron("H 9 * * *", tz="Asia/Tokyo", seed="another"),
        ]
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "retries": st.integers(0, 3), "payload": st.sampled_from([None, 0, False, "", [], {"a": 1}]),
            "timeout": st.sampled_from([None, 1, "1500ms"]), "starts": st.sampled_from([None, "2027-01-01"]),
            "enabled": st.booleans(), "tags": st.sampled_from([(), ("a",)]),
        },
    ),
)  # fmt: skip
def test_any_schedule_and_options_come_back(schedule: Any, options: Any) -> None:
    scheduler = with_handler()
    spec = scheduler.add("report", "send", schedule, **options).job_spec()
    before = stored(scheduler, "report").definition
    scheduler.add(spec.name, spec.handler, spec.schedule, **spec.options)
    assert stored(scheduler, "report").definition == before


def test_the_view_says_where_a_job_comes_from_and_since_when() -> None:
    clock = ManualClock(datetime(2027, 1, 1, tzinfo=UTC))
    scheduler = clock.scheduler()

    @scheduler.cron("0 9 * * *", timeout="20m")
    def declared() -> None: ...

    scheduler.tick()
    view = scheduler.get_job("declared")
    assert view.place == f"{__name__}:{declared.__code__.co_firstlineno}"
    assert (view.declared, view.expression, view.created_at, view.defined_at) == (
        True,
        "0 9 * * *",
        clock.now,
        clock.now,
    )
    clock.advance("1d")
    added = scheduler.add("data", declared, Every("1h"), payload={"n": 1})
    assert (added.place, added.declared, added.expression, added.payload) == (None, False, None, {"n": 1})
    clock.advance("1d")
    changed = scheduler.add("data", declared, Every("2h"))
    assert changed.created_at == added.created_at
    assert changed.defined_at == clock.now


def test_a_function_that_moves_keeps_its_definition_and_shows_its_new_line() -> None:
    clock = ManualClock()

    def deploy(source: str) -> JobView:
        scheduler, room = clock.scheduler(), dict[str, Any](__name__="shop")
        exec(source, room)
        scheduler.every("1h", name="job")(room["job"])
        scheduler.tick()
        return scheduler.get_job("job")

    old = deploy("def job(): ...")
    clock.advance("1m")
    new = deploy("\n\ndef job(): ...")
    assert (old.place, new.place) == ("shop:1", "shop:3")
    assert new.defined_at == old.defined_at


def test_views_as_json_have_every_option_in_plain_values() -> None:
    scheduler = with_handler()
    shown = to_json(scheduler.add("report", "send", "30 6 * * MON-FRI", **EVERYTHING))
    json.dumps(shown)
    assert shown["timeout"] == 1200
    assert shown["backoff"] == {"first": 2, "factor": 3.0, "cap": 60, "jitter": 0.0}
    assert (shown["overlap"], shown["expression"], shown["zone"]) == ("allow(2)", "30 6 * * MON-FRI", "Europe/Vienna")
    assert shown["catch_up"].startswith("all(limit=10, within=1d, pace=")
    assert (shown["owner"], shown["tags"]) == ("billing@example.com", ["money", "nightly"])


def test_a_schedule_that_only_code_knows_cannot_be_read_back_as_data() -> None:
    scheduler = ManualClock().scheduler()

    class Own:
        after = before = between = count = lambda self, *given: None

        def describe(self) -> str:
            return "its own"

    scheduler.cron(Own(), name="own")(lambda: None)  # type: ignore[arg-type]
    scheduler.tick()
    with pytest.raises(InvalidError, match="own has a schedule that only its code knows; it cannot be added as data"):
        scheduler.get_job("own").job_spec()


def test_a_spec_prints_as_it_is_written() -> None:
    assert repr(JobSpec("a", "send", "@daily", retries=3)) == "JobSpec('a', 'send', '@daily', retries=3)"


# --- tags, owner, runbook ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "money"}, r"tags must be an iterable of names, not a string; did you mean \('money',\)\?"),
        ({"tags": ["two words"]}, "tags: 'two words' cannot be used: 1 to 64 letters"),
        ({"tags": [f"t{n}" for n in range(21)]}, "tags: 21 are more than 20"),
        ({"owner": ""}, "owner='' cannot be used"),
        ({"owner": 3}, "owner=3 cannot be used"),
        ({"runbook": "wiki/invoices"}, "runbook='wiki/invoices' is not a link"),
        ({"runbook": "javascript:alert(1)"}, "is not a link; give one such as 'https://"),
    ],
)
def test_marks_that_cannot_be_shown_are_refused(options: Any, message: str) -> None:
    scheduler = with_handler()
    with pytest.raises(InvalidError, match=message):
        scheduler.add("report", "send", "@daily", **options)
    assert scheduler.jobs() == []


def test_tags_are_kept_sorted_and_once() -> None:
    scheduler = with_handler()
    assert scheduler.add("report", "send", "@daily", tags=["b", "a", "b"]).tags == ("a", "b")
