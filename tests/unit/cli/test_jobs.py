"""`solocron jobs`: every job with its schedule and state, for people and for programs."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from solocron import Lock, Scheduler
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.stores.contract import Named
from tests.unit.cli.kit import Cli, Shop, moment


def test_jobs_are_listed_with_their_schedule_and_state(cli: Cli, shop: Shop) -> None:
    answer = cli("jobs", "--store", shop.url)
    assert answer.code == 0
    assert answer.lines[0].split() == ["JOB", "STATE", "LAST", "NEXT", "SCHEDULE", "NOTE"]
    (report,) = [line for line in answer.lines if line.startswith("report ")]
    assert "At 02:30 every day, America/New_York" in report
    assert report.split()[1] == "orphaned"  # the tick that declared it is over


def test_jobs_as_json_are_one_list_of_objects(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("broken", by="kim", note="no paper")
    found = {job["name"]: job for job in cli("jobs", "--store", shop.url, "--json").json}
    assert set(found) == {"broken", "invoices", "report"}
    assert found["broken"]["paused"]["by"] == "kim"
    assert found["broken"]["next"] is None
    assert moment(found["report"]["next"]) > moment(found["report"]["cursor"])
    assert found["report"]["zone"] == "America/New_York"


def test_a_paused_job_shows_who_and_why(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("broken", by="kim", note="no paper")
    (broken,) = [line for line in cli("jobs", "--store", shop.url).lines if line.startswith("broken ")]
    assert broken.split()[1] == "paused"
    assert broken.endswith("  by kim: no paper")


def test_the_store_may_be_named_before_the_command_or_by_the_environment(
    cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(cli("--store", shop.url, "jobs", "--json").json) == 3
    monkeypatch.setenv("SOLOCRON_STORE", shop.url)
    assert len(cli("jobs", "--json").json) == 3
    assert cli("jobs", "--namespace", "other", "--json").code == 3


def test_an_empty_namespace_is_said_on_stderr(cli: Cli, shop: Shop) -> None:
    """It is most often a wrong one: green, it would hide that the right one is not monitored."""
    answer = cli("jobs", "--store", shop.url, "--namespace", "other")
    assert (answer.code, answer.out) == (3, "")
    assert "namespace 'other' is empty" in answer.err


def test_a_namespace_whose_jobs_are_gone_is_not_an_error(cli: Cli, shop: Shop) -> None:
    for job in shop.scheduler.jobs():
        cli("remove", job.name, "--store", shop.url)
    answer = cli("jobs", "--store", shop.url)
    assert (answer.code, answer.out) == (0, "")
    assert "no jobs in namespace 'default'" in answer.err


def test_a_job_that_cannot_be_read_here_does_not_hide_the_others(cli: Cli, shop: Shop) -> None:
    def move_to_mars(doc: Job, now: int) -> Change:
        spec = {"kind": "cron", "expression": "0 0 * * *", "tz": "Mars/Base"}
        return Change(replace(doc, definition=replace(doc.definition, schedule=spec)))

    shop.store.update(Named(Kind.JOB, ("broken",)), move_to_mars)
    answer = cli("jobs", "--store", shop.url)
    assert answer.code == 0
    assert "unknown time zone 'Mars/Base'" in answer.out
    assert "invoices" in answer.out


def test_what_runs_waits_or_is_switched_off_shows_in_the_state(cli: Cli) -> None:
    begun, end = threading.Event(), threading.Event()
    scheduler = Scheduler("memory://states", node="kitchen", max_running=1)
    scheduler.every("1h", name="off", enabled=False)(lambda: None)
    scheduler.every("1h", name="waiting")(lambda: None)

    @scheduler.every("1h", name="busy")
    def busy() -> None:
        begun.set()
        assert end.wait(60)

    with scheduler:
        run = scheduler.trigger("busy")
        assert begun.wait(60)
        scheduler.trigger("waiting")
        states = {line.split()[0]: line for line in cli("jobs", "--store", "memory://states").lines[1:]}
        (running,) = cli("status", "--store", "memory://states", "--json").json["running"]
        glance = cli("status", "--store", "memory://states").out
        end.set()
        scheduler.wait(run, 60)
    assert states["off"].split()[1] == "disabled"
    assert states["waiting"].split()[1:3] == ["1", "waiting"]
    assert states["busy"].split()[1] == "running"
    assert states["busy"].endswith("  on kitchen")
    assert running["run"] == run
    assert f"\n{run} " in glance
    assert "\nkitchen  live " in glance


def test_the_environment_names_the_namespace(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOCRON_NAMESPACE", "billing")
    Scheduler(shop.url).tick()
    assert cli("status", "--store", shop.url, "--json").json["namespace"] == "billing"
    assert cli("status", "--store", shop.url, "--namespace", "default", "--json").json["namespace"] == "default"
    assert Scheduler(shop.url).status().namespace == "billing"
    assert Scheduler(shop.url, namespace="reports").status().namespace == "reports"
    assert Lock(shop.url, "door").namespace == "billing"
    monkeypatch.setenv("SOLOCRON_NAMESPACE", "not a name")
    assert cli("jobs", "--store", shop.url).code == 2
