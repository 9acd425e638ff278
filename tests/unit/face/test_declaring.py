"""Decorators are pure metadata; discovery finds them once, binds methods, and refuses what it cannot run."""

from __future__ import annotations

import inspect
import logging
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from pathlib import Path
from types import ModuleType
from zoneinfo import ZoneInfo

import pytest

from solocron import (
    Backoff,
    Cron,
    Every,
    InvalidError,
    NotFoundError,
    Run,
    ScheduleError,
    Scheduler,
    allow,
    at,
    catch_up_all,
    cron,
    every,
)
from solocron.events import Event
from solocron.schedules import Schedule
from tests.unit.face import sample_jobs
from tests.unit.face.sample_jobs.deeper.more import Reports


def scheduler(**options: object) -> Scheduler:
    return Scheduler("memory://", enabled=True, **options)  # type: ignore[arg-type]


def test_a_decorated_function_stays_what_it_was() -> None:
    def plain(x: int = 3) -> int:
        """Doc."""
        return x + 1

    marked = cron("@daily")(plain)
    assert marked is plain
    assert marked(4) == 5
    assert inspect.signature(marked) == inspect.signature(plain)

    @every("1m")
    async def coroutine() -> None: ...

    assert inspect.iscoroutinefunction(coroutine)


def test_importing_jobs_starts_no_thread_and_opens_nothing() -> None:
    code = (
        "import sys, threading; import tests.unit.face.sample_jobs as jobs; from solocron import Scheduler;"
        "s = Scheduler('sqlite:///never-made.db'); s.discover(jobs);"
        "assert threading.active_count() == 1; assert 'asyncio' not in sys.modules"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=60)
    assert not (root / "never-made.db").exists()


def test_a_package_is_walked_and_each_job_is_found_once() -> None:
    made = scheduler()
    names = made.discover("tests.unit.face.sample_jobs")
    assert sorted(names) == ["Reports.other_static", "Reports.static", "clean_up", "poll", "send-digest"]
    assert made.discover(sample_jobs) == [], "the same jobs found again are the same jobs"


def test_what_was_found_is_logged_one_line_a_job(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "solocron"):
        scheduler().discover(sample_jobs.send_digest)
    assert caplog.messages == [
        "registered send-digest [0 9 * * MON-FRI Europe/Paris] -> tests.unit.face.sample_jobs.send_digest"
    ]


def test_methods_of_an_instance_are_bound_to_it() -> None:
    made, reports = scheduler(), Reports("quarterly")
    assert "Reports.weekly" in made.discover(reports)
    run = made.registry.handlers["Reports.weekly"]
    assert run.takes_run
    assert run.bind(None)() == "quarterly"


def test_a_class_whose_job_needs_an_instance_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"Reports\(\.\.\.\)"):
        scheduler().discover(Reports)


def test_two_instances_are_two_jobs_of_one_name_and_refused_with_nothing_half_registered() -> None:
    made = scheduler()
    with pytest.raises(InvalidError, match="two jobs are named"):
        made.discover(sample_jobs, Reports("a"), Reports("b"))
    assert made.registry.jobs == {}
    assert made.registry.handlers == {}


def test_two_jobs_of_one_name_are_refused_naming_both_places() -> None:
    made = scheduler()

    @made.cron("@daily", name="same")
    def first() -> None: ...

    with pytest.raises(InvalidError, match=r"first.*second") as refused:

        @made.cron("@daily", name="same")
        def second() -> None: ...

    assert "the second was not registered" in str(refused.value)


def test_an_import_error_names_the_module_and_registers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken_app"
    package.mkdir()
    (package / "__init__.py").write_text("from solocron import every\n@every('1m')\ndef fine(): ...\n")
    (package / "bad.py").write_text("raise RuntimeError('boom')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    made = scheduler()
    with pytest.raises(InvalidError, match=r"broken_app\.bad.*boom"):
        made.discover("broken_app")
    assert made.registry.jobs == {}
    with pytest.raises(InvalidError, match="no module 'nowhere_at_all'"):
        made.discover("nowhere_at_all")


def test_names_default_to_the_function_and_to_class_and_method() -> None:
    made = scheduler()

    @made.every("1m")
    def some_function() -> None: ...

    made.discover(Reports())
    assert {"some_function", "Reports.weekly"} <= set(made.registry.jobs)


def test_a_function_may_carry_several_declarations() -> None:
    @cron("0 9 * * *", name="morning")
    @cron("0 18 * * *", name="evening")
    def greet() -> None: ...

    assert sorted(scheduler().discover(greet)) == ["evening", "morning"]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"tz": "Europe/Pariss"}, "Europe/Paris"),
        ({"pause_after": 0}, "pause_after"),
        ({"pause_after": True}, "pause_after"),
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
        ({"timeout": "0s"}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"overlap": "never"}, "overlap"),
        ({"catch_up": "maybe"}, "catch_up"),
        ({"on_crash": "cry"}, "on_crash"),
        ({"on_lost": "cry"}, "on_lost"),
        ({"on_stuck": "cry"}, "on_stuck"),
        ({"run_in": "in space"}, "run_in"),
        ({"pool": "two words"}, "pool"),
        ({"name": "new\nline"}, "name"),
        ({"payload": {"a": {1, 2}}}, "payload"),
        ({"payload": "x" * 70_000}, "65536"),
        ({"payload": float("nan")}, "payload"),
        ({"start_within": -5}, "start_within"),
        ({"dst": {"gap": "jump"}}, "gap"),
    ],
)
def test_a_bad_option_is_refused_where_it_is_declared(options: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidError, match=what):
        cron("@daily", **options)  # type: ignore[arg-type]


def test_bad_words_and_bad_policies_are_refused() -> None:
    with pytest.raises(InvalidError, match="tz"):
        every("1m", tz="UTC")
    with pytest.raises(InvalidError, match="colour"):
        every("1m", colour="red")
    with pytest.raises(InvalidError, match="allow"):
        allow(0)
    with pytest.raises(InvalidError, match="limit"):
        catch_up_all(limit=0)
    with pytest.raises(InvalidError, match="factor"):
        Backoff(factor=0.5)
    with pytest.raises(ScheduleError, match=r"never|day of month|31"):
        cron("0 0 31 2 *")
    with pytest.raises(InvalidError):
        at(datetime(2026, 1, 1))  # noqa: DTZ001 - naive on purpose
    with pytest.raises(InvalidError):
        cron(42)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="its own instants"):
        cron(Every("1m"), tz="Europe/Paris")


def test_a_function_that_wants_more_than_the_run_is_refused() -> None:
    with pytest.raises(InvalidError, match="customer"):

        @scheduler().every("1m")
        def bill(run: Run, customer: str) -> None: ...


def test_run_in_must_fit_the_function() -> None:
    made = scheduler()

    async def coroutine() -> None: ...

    with pytest.raises(InvalidError, match="coroutine"):
        made.every("1m", run_in="thread")(coroutine)
    assert made.registry.jobs == {}


def test_an_own_class_with_the_schedule_protocol_is_accepted() -> None:
    class Twice:
        moments = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))

        def after(self, t: datetime) -> datetime | None:
            return next((m for m in self.moments if m > t), None)

        def before(self, t: datetime) -> datetime | None:
            return next((m for m in reversed(self.moments) if m < t), None)

        def between(self, a: datetime, b: datetime) -> Iterator[datetime]:
            return (m for m in self.moments if a < m <= b)

        def count(self, a: datetime, b: datetime) -> int:
            return len(list(self.between(a, b)))

        def describe(self) -> str:
            return "twice in 2026"

    assert isinstance(Twice(), Schedule)
    made = scheduler()

    @made.cron(Twice())
    def rarely() -> None: ...

    definition = made.registry.jobs["rarely"].definition
    assert definition.schedule == {"kind": "custom", "describe": "twice in 2026", "job": "rarely"}
    slots = made.registry.resolve(definition.schedule)
    assert slots.known
    assert slots.after(0) is not None
    assert not scheduler().registry.resolve(definition.schedule).known, "only the code that has it knows it"


def test_h_and_spread_follow_from_the_jobs_name() -> None:
    made = scheduler()
    for name in ("a", "b"):
        made.cron("H H * * *", name=name)(lambda: None)
        made.every("1h", name=f"{name}-spread", spread="30m")(lambda: None)
    again = scheduler()
    again.cron("H H * * *", name="a")(lambda: None)
    schedules = {name: made.registry.jobs[name].schedule for name in ("a", "b", "a-spread", "b-spread")}
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert schedules["a"].after(start) != schedules["b"].after(start)
    assert schedules["a-spread"].after(start) != schedules["b-spread"].after(start)
    assert schedules["a"] == again.registry.jobs["a"].schedule, "the same on every replica"


def test_many_jobs_share_what_they_declare_alike() -> None:
    """A thousand jobs, with a function each, take less than a megabyte, and no job looks at all the others."""
    made = scheduler()
    tracemalloc.start()
    try:
        for number in range(1_000):
            made.cron(f"{number % 60} 9 * * *", name=f"job-{number}", limit=f"limit-{number % 10}:2")(_of_its_own())
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 2**20
    first, second = made.registry.jobs["job-0"], made.registry.jobs["job-60"]
    assert first.schedule is second.schedule
    assert first.spec is second.spec
    assert first.definition.handler == "job-0"
    with pytest.raises(InvalidError, match="job-3 says limit='limit-3:2'"):
        made.cron("0 9 * * *", name="another", limit="limit-3:3")(_of_its_own())
    assert "another" not in made.registry.jobs


def _of_its_own() -> Callable[[], None]:
    def body() -> None: ...

    return body


def test_schedules_are_public_values() -> None:
    assert Every(timedelta(seconds=30)) == Every("30s")
    assert Cron("0 9 * * *") == Cron("0 9 * * *")


def test_a_subscriber_is_declared_like_a_job_and_stays_what_it_was() -> None:
    """The type checker reads this too: a decorator of no type would make the function untyped."""
    scheduler, heard = Scheduler("memory://"), list[str]()

    @scheduler.on("registered")
    def note(event: Event) -> None:
        heard.append(event.job)

    scheduler.every("1h", name="a")(lambda: None)
    note(Event("registered", {"job": "b"}))
    assert heard == ["a", "b"]


# --- by the function, and in a zone as an object ---------------------------------------------------------------------


def work(run: Run) -> None: ...


def test_a_job_is_triggered_by_its_function() -> None:
    scheduler = Scheduler("memory://by-function", enabled=True)
    scheduler.every("1d", name="daily")(work)
    with pytest.raises(NotFoundError, match="'daily'"):
        scheduler.trigger(work)
    scheduler.tick()
    assert scheduler.get_run(scheduler.trigger(work, key="k")).job == "daily"
    assert scheduler.trigger("daily", key="k") == scheduler.trigger(work, key="k")


def test_a_function_with_no_job_or_with_two_is_refused_by_its_place() -> None:
    scheduler = Scheduler("memory://by-function-2", enabled=True)
    with pytest.raises(InvalidError, match=r"test_declaring\.work is not declared as a job of this scheduler"):
        scheduler.trigger(work)
    scheduler.every("1d", name="a")(work)
    scheduler.every("2d", name="b")(work)
    with pytest.raises(InvalidError, match="has several jobs: a, b"):
        scheduler.trigger(work)
    with pytest.raises(InvalidError, match="5 is neither the name of a job nor a function"):
        scheduler.trigger(5)  # type: ignore[arg-type]


def test_a_job_is_added_with_its_function_as_handler() -> None:
    scheduler = Scheduler("memory://add-function", enabled=True)
    assert scheduler.add("eu", work, "@daily").handler == "work"
    assert scheduler.add("us", work, "@daily").handler == "work"
    assert list(scheduler.registry.handlers) == ["work"]
    with pytest.raises(InvalidError, match=r"\['work'\] is neither the name of a handler nor a function"):
        scheduler.add("x", ["work"], "@daily")  # type: ignore[arg-type]


@pytest.mark.parametrize(("tz", "zone"), [(ZoneInfo("Europe/Paris"), "Europe/Paris"), (UTC, "UTC")])
def test_a_zone_may_be_an_object(tz: tzinfo, zone: str) -> None:
    scheduler = Scheduler("memory://zones")
    scheduler.cron("0 3 * * *", tz=tz, name="night")(work)
    assert scheduler.registry.jobs["night"].spec == {"kind": "cron", "expression": "0 3 * * *", "tz": zone}


def test_an_object_that_names_no_zone_is_refused() -> None:
    with pytest.raises(ScheduleError, match="names no zone; give an IANA name"):
        Scheduler("memory://zones").cron("0 3 * * *", tz=timezone(timedelta(hours=2)), name="night")(work)


def test_a_partial_is_asked_for_a_name() -> None:
    scheduler = Scheduler("memory://partial")
    with pytest.raises(InvalidError, match="has no name of its own; give it one with name="):
        scheduler.every("1d")(partial(work))
    scheduler.every("1d", name="half")(partial(work))
    assert list(scheduler.registry.jobs) == ["half"]


class Shop:
    @every("1d")
    def bill(self, run: Run) -> None: ...


def test_two_instances_of_a_class_are_told_apart_by_a_prefix() -> None:
    scheduler = Scheduler("memory://prefix")
    scheduler.discover(Shop())
    with pytest.raises(InvalidError, match=r'discover\(it, prefix="eu:"\)'):
        scheduler.discover(Shop())
    assert scheduler.discover(Shop(), prefix="eu:") == ["eu:Shop.bill"]
    assert list(scheduler.registry.jobs) == ["Shop.bill", "eu:Shop.bill"]


def test_a_target_without_jobs_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = Scheduler("memory://none")
    shop = Shop()
    assert scheduler.discover("json", ModuleType("empty"), shop) == ["Shop.bill"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "no job is declared in module json: nothing was registered from it",
        "no job is declared in module empty: nothing was registered from it",
    ]
    caplog.clear()
    assert scheduler.discover(shop) == [], "known already, which is nothing to warn of"
    assert caplog.records == []
