"""What a deployment would change: the answers are those of the rules that nodes follow, and are never written."""

from __future__ import annotations

from typing import Any

import pytest

from solocron import Scheduler
from solocron.calendars.revisions import Calendars
from solocron.preview.deployment import Deployed, JobDifference, Stored, compare
from solocron.scheduler.hooks import core_of
from solocron.stores.memory import MemoryStore, World
from solocron.stores.paging import iter_jobs, read_sessions


def job(scheduler: Scheduler, name: str, expression: str = "0 9 * * *", app: str = "shop", **options: Any) -> None:
    """Declare a job whose function comes from an application."""

    def function() -> None: ...

    function.__module__ = f"{app}.jobs"
    scheduler.cron(expression, name=name, **options)(function)


class Fleet:
    """One namespace, and programs of several versions on it."""

    def __init__(self) -> None:
        self.world = World()

    def program(self, **options: Any) -> Scheduler:
        return Scheduler(MemoryStore(world=self.world), **options)

    def diff(self, scheduler: Scheduler) -> dict[str, JobDifference]:
        core = core_of(scheduler)
        store = core.open().store
        calendars = Calendars(store, scheduler.registry)
        jobs = list(iter_jobs(store))
        calendars.learn(jobs)
        calendars.fetch(calendars.latest().items())
        stored = Stored(now=store.clock(), jobs=jobs, sessions=read_sessions(store), calendars=calendars.latest())
        settings = core.settings
        program = Deployed(
            registry=scheduler.registry, pools=settings.pools, revision=settings.revision, late_for=settings.late_for
        )
        return {one.job: one for one in compare(program, stored)}


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_an_end_and_an_owner_are_changes_like_any_other(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "report")
    job(new, "report", ends="2030-12-31", owner="billing", tags=("money",))
    old.tick()
    changes = {change.field: (change.before, change.after) for change in fleet.diff(new)["report"].fields}
    assert changes == {
        "schedule": ("At 09:00 every day, UTC", "At 09:00 every day, UTC, until 2030-12-31"),
        "owner": ("-", "billing"),
        "tags": ("-", '["money"]'),
    }


def test_the_same_program_makes_no_difference(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    for one in (old, new):
        job(one, "report")
        job(one, "shards", shards=("eu", "us"))
    with old:
        assert {one.difference for one in fleet.diff(new).values()} == {"same"}
    assert {one.difference for one in fleet.diff(new).values()} == {"same"}


def test_a_new_job_is_added_with_its_next_slots(fleet: Fleet) -> None:
    new = fleet.program()
    job(new, "report", tz="Europe/Vienna")
    (found,) = fleet.diff(new).values()
    assert (found.difference, found.schedule, found.problems) == ("added", "At 09:00 every day, Europe/Vienna", ())
    assert [slot.hour for slot in found.after] == [9, 9, 9]
    assert found.before == ()


def test_a_changed_job_shows_each_option_and_its_slots_before_and_after(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "report", timeout="90s")
    job(new, "report", "30 7 * * *", retries=3, timeout="2m")
    old.tick()
    found = fleet.diff(new)["report"]
    assert found.difference == "changed"
    assert [(one.field, one.before, one.after) for one in found.fields] == [
        ("schedule", "At 09:00 every day, UTC", "At 07:30 every day, UTC"),
        ("retries", "-", "3"),
        ("timeout", "1m30s", "2m"),
    ]
    assert [slot.hour for slot in (*found.before, *found.after)] == [9, 9, 9, 7, 7, 7]
    assert found.note == "written by the first new node"


def test_options_alone_leave_the_slots_out(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "report")
    job(new, "report", payload={"a": 1})
    old.tick()
    found = fleet.diff(new)["report"]
    assert [(one.field, one.before, one.after) for one in found.fields] == [("payload", "-", '{"a": 1}')]
    assert (found.before, found.after) == ((), ())


def test_a_rule_for_clock_changes_is_shown_although_the_words_are_the_same(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "report", tz="Europe/Vienna")
    job(new, "report", tz="Europe/Vienna", dst={"gap": "skip"})
    old.tick()
    (field,) = fleet.diff(new)["report"].fields
    assert '"gap": "skip"' in field.after
    assert "gap" not in field.before


def test_while_old_nodes_live_the_change_waits_for_them(fleet: Fleet) -> None:
    """And what is said comes true: the new node leaves the definition, and writes it when the old one is gone."""
    old, new = fleet.program(node="web-1"), fleet.program()
    job(old, "report")
    job(new, "report", "30 7 * * *")
    with old:
        assert fleet.diff(new)["report"].note == "written when the last old node is gone (web-1)"
        with new:
            assert new.get_job("report").schedule == "At 09:00 every day, UTC"
    assert fleet.diff(new)["report"].note == "written by the first new node"


def test_a_higher_revision_is_written_at_once_and_a_lower_one_never(fleet: Fleet) -> None:
    old, new, back = fleet.program(revision=41), fleet.program(revision=42), fleet.program(revision=40)
    job(old, "report")
    for one in (new, back):
        job(one, "report", "30 7 * * *")
    with old:
        assert fleet.diff(new)["report"].note == "written by the first new node"
        found = fleet.diff(back)["report"]
    assert found.note == "not written"
    (problem,) = found.problems
    assert problem.kind == "revision"
    assert "revision 41" in problem.text
    assert "solocron adopt report" in problem.text


def test_a_job_that_is_not_declared_any_more_is_removed_and_says_who_still_has_it(fleet: Fleet) -> None:
    old, new = fleet.program(node="web-1"), fleet.program()
    job(old, "report")
    job(old, "kept")
    job(new, "kept")
    with old:
        found = fleet.diff(new)["report"]
        assert found.difference == "removed"
        assert "replaced (web-1)" in found.note
    assert "orphaned already" in fleet.diff(new)["report"].note


def test_a_removed_job_whose_handler_is_still_there_goes_on(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "report")
    job(new, "other")

    def report() -> None: ...

    report.__module__ = "shop.jobs"
    new.register(report)
    old.tick()
    assert "goes on as it is stored" in fleet.diff(new)["report"].note


def test_a_job_added_as_data_needs_its_handler(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "send_report")
    job(new, "other")
    with old:
        old.add("report:acme", "send_report", "0 7 * * MON")
        found = fleet.diff(new)["report:acme"]
        assert fleet.diff(old)["report:acme"].difference == "same"
    assert found.difference == "orphaned"
    assert [problem.kind for problem in found.problems] == ["handler"]
    assert "no handler 'send_report'" in found.problems[0].text


def test_code_that_declares_a_job_added_as_data_takes_it_over(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "send_report")
    job(new, "send_report")
    job(new, "report:acme", "0 7 * * MON")
    old.tick()
    old.add("report:acme", "send_report", "0 7 * * MON")
    found = fleet.diff(new)["report:acme"]
    assert ("declared", "added as data", "in code") in [(one.field, one.before, one.after) for one in found.fields]
    new.tick()
    assert fleet.diff(new)["report:acme"].difference == "same"


def test_a_name_of_another_live_application_is_a_clash_and_of_a_dead_one_is_taken_on(fleet: Fleet) -> None:
    theirs, ours = fleet.program(), fleet.program()
    job(theirs, "cleanup", app="billing")
    job(ours, "cleanup")
    with theirs:
        (problem,) = fleet.diff(ours)["cleanup"].problems
        assert problem.kind == "clash"
        assert problem.text.startswith("billing declares it too, on live nodes")
    MemoryStore(world=fleet.world).shift_clock(3_600_000_000)
    found = fleet.diff(ours)["cleanup"]
    assert (found.difference, found.problems) == ("changed", ())
    assert [(one.field, one.before, one.after) for one in found.fields] == [("application", "billing", "shop")]


def test_jobs_of_other_applications_and_other_pools_are_left_out(fleet: Fleet) -> None:
    theirs, gpu, ours = fleet.program(), fleet.program(pools=("gpu",)), fleet.program()
    job(theirs, "invoices", app="billing")
    job(gpu, "train", pool="gpu")
    job(ours, "report")
    theirs.tick()
    gpu.tick()
    assert list(fleet.diff(ours)) == ["report"]


def test_a_calendar_a_pool_and_a_limit_that_do_not_fit_are_problems(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    job(old, "heavy", limit="db:2")
    old.tick()
    job(new, "report", calendar="fr-banking")
    job(new, "train", pool="gpu")
    job(new, "export", limit="db:3")
    found = fleet.diff(new)
    assert {name: [problem.kind for problem in one.problems] for name, one in found.items()} == {
        "report": ["calendar"], "train": ["pool"], "export": ["limit"], "heavy": [],
    }  # fmt: skip
    old.calendar("fr-banking")
    gpu = fleet.program(pools=("gpu",))
    job(gpu, "train", pool="gpu")
    with gpu:
        found = fleet.diff(new)
    assert found["report"].problems == found["train"].problems == ()
    assert len(found["report"].after) == 3


def test_a_new_revision_of_a_calendar_is_no_difference_of_the_job(fleet: Fleet) -> None:
    old, new = fleet.program(), fleet.program()
    old.calendar("fr-banking")
    for one in (old, new):
        job(one, "report", calendar="fr-banking")
    old.tick()
    old.calendar("fr-banking", weekend=("fri", "sat"))
    assert fleet.diff(new)["report"].difference == "same"
