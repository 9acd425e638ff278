"""`jobs`, `runs`, `show`, `nodes`, `namespaces`, `status`: for people and, with `--json`, for programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from solocron import Backoff, Lock, Run, Scheduler
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.session import Session
from solocron.stores.contract import All, Named
from solocron.stores.url import make_store
from tests.unit.cli.kit import Answer, Shop

Cli = Callable[..., Answer]


def moment(text: str) -> datetime:
    """An instant as `--json` writes it; fails for anything that is not UTC."""
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


def test_jobs_are_listed_with_their_schedule_and_state(cli: Cli, shop: Shop) -> None:
    answer = cli("jobs", "--store", shop.url)
    assert answer.code == 0
    assert answer.lines[0].split() == ["JOB", "SCHEDULE", "NEXT", "LAST", "STATE"]
    (report,) = [line for line in answer.lines if line.startswith("report ")]
    assert "At 02:30 every day, America/New_York" in report
    assert report.endswith("orphaned")  # the tick that declared it is over


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
    assert "paused by kim: no paper" in cli("jobs", "--store", shop.url).out


def test_the_store_may_be_named_before_the_command_or_by_the_environment(
    cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(cli("--store", shop.url, "jobs", "--json").json) == 3
    monkeypatch.setenv("SOLOCRON_STORE", shop.url)
    assert len(cli("jobs", "--json").json) == 3
    assert cli("jobs", "--namespace", "other", "--json").code == 3


def test_an_empty_namespace_is_said_on_stderr(cli: Cli, shop: Shop) -> None:
    """It is most often a wrong one: green, it would hide that nobody looks at the right one."""
    answer = cli("jobs", "--store", shop.url, "--namespace", "other")
    assert (answer.code, answer.out) == (3, "")
    assert "namespace 'other' is empty" in answer.err


def test_a_namespace_whose_jobs_are_gone_is_no_error(cli: Cli, shop: Shop) -> None:
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


def test_runs_have_every_documented_key(cli: Cli, shop: Shop) -> None:
    run = shop.ran("invoices")
    (found,) = cli("runs", "invoices", "--store", shop.url, "--json").json
    assert {"run", "job", "slot", "attempt", "status", "reason", "node", "fence"} <= set(found)
    assert (found["run"], found["job"], found["status"], found["node"]) == (run, "invoices", "succeeded", "kitchen")
    assert moment(found["slot"]) <= moment(found["started_at"]) <= moment(found["finished_at"])
    assert (found["attempt"], found["error"], found["result"]) == (1, None, {"sent": 3})


def test_runs_are_newest_first_and_bounded(cli: Cli, shop: Shop) -> None:
    runs = [shop.ran("invoices") for _ in range(3)]
    found = cli("runs", "--store", shop.url, "--limit", "2", "--json").json
    assert [run["run"] for run in found] == [runs[2], runs[1]]


def test_runs_can_be_filtered_by_status(cli: Cli, shop: Shop) -> None:
    shop.ran("invoices")
    broken = shop.ran("broken")
    for given in (("--status", "failed,lost"), ("--status", "lost", "--status", "failed")):
        assert [run["run"] for run in cli("runs", "--store", shop.url, *given, "--json").json] == [broken]


def test_an_unknown_status_is_refused_with_the_nearest(cli: Cli, shop: Shop) -> None:
    answer = cli("runs", "--store", shop.url, "--status", "fialed")
    assert answer.code == 2
    assert "did you mean 'failed'?" in answer.err


def test_runs_of_an_unknown_job_are_not_found(cli: Cli, shop: Shop) -> None:
    answer = cli("runs", "invoice", "--store", shop.url)
    assert answer.code == 3
    assert "did you mean 'invoices'?" in answer.err


def test_a_job_without_runs_is_no_error(cli: Cli, shop: Shop) -> None:
    assert cli("runs", "report", "--store", shop.url, "--json").json == []
    assert "no runs on record of report" in cli("runs", "report", "--store", shop.url).err


def test_a_removed_job_is_still_on_record(cli: Cli, shop: Shop) -> None:
    shop.ran("invoices")
    assert cli("remove", "invoices", "--store", shop.url).code == 0
    assert len(cli("runs", "invoices", "--store", shop.url, "--json").json) == 1


def test_what_a_job_wrote_cannot_move_the_terminal(cli: Cli, shop: Shop) -> None:
    run = shop.ran("broken")
    for answer in (cli("runs", "--store", shop.url), cli("show", run, "--store", shop.url)):
        assert "\x1b" not in answer.out
        assert r"no paper\x1b[2Jin the printer" in answer.out


def test_slots_that_did_not_run_are_listed_with_the_reason(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("invoices", note="audit")
    shop.later(3 * 3600)
    shop.scheduler.resume("invoices")
    (found,) = cli("runs", "invoices", "--store", shop.url, "--json").json
    assert (found["status"], found["count"], found["attempt"]) == ("skipped", 3, 0)
    assert "3 slots from" in cli("runs", "invoices", "--store", shop.url).out


def test_show_has_the_run_and_every_attempt(cli: Cli, shop: Shop) -> None:
    run = shop.ran("broken")
    found = cli("show", run, "--store", shop.url, "--json").json
    assert found["run"] == run
    assert [attempt["attempt"] for attempt in found["attempts"]] == [1]
    shown = cli("show", run, "--store", shop.url).lines
    assert "status    failed" in shown
    assert "node      kitchen" in shown


def test_show_of_a_run_that_waits(cli: Cli, shop: Shop) -> None:
    run = shop.scheduler.trigger("invoices")
    found = cli("show", run, "--store", shop.url, "--json").json
    assert (found["status"], found["attempts"]) == ("waiting", [])


def test_an_unknown_run_is_not_found(cli: Cli, shop: Shop) -> None:
    answer = cli("show", "invoices@nothing", "--store", shop.url)
    assert answer.code == 3
    assert "`solocron runs` lists them" in answer.err


def test_nodes_are_listed_while_they_live(cli: Cli, shop: Shop) -> None:
    assert cli("nodes", "--store", shop.url, "--json").json == []
    assert "no nodes" in cli("nodes", "--store", shop.url).err
    with shop.scheduler:
        (node,) = cli("nodes", "--store", shop.url, "--json").json
        assert (node["node"], node["state"], node["pools"]) == ("kitchen", "live", ["default"])
        assert moment(node["expires_at"]) > moment(node["started_at"])
        assert cli("nodes", "--store", shop.url).lines[1].split()[:3] == ["kitchen", "live", "default"]


def test_status_has_nodes_what_runs_and_the_counts_of_a_day(cli: Cli, shop: Shop) -> None:
    shop.ran("invoices")
    shop.ran("broken")
    with shop.scheduler:
        found = cli("status", "--store", shop.url, "--json").json
    assert [node["node"] for node in found["nodes"]] == ["kitchen"]
    assert found["running"] == []
    assert found["counts"] == {"succeeded": 1, "failed": 1}
    assert (found["jobs"], found["tier"], found["namespace"], found["store"]) == (3, "A", "default", shop.url)
    assert moment(found["now"]) < moment(found["nodes"][0]["expires_at"])


def test_status_for_people_is_one_screen(cli: Cli, shop: Shop) -> None:
    shop.ran("invoices")
    shop.scheduler.pause("report")
    answer = cli("status", "--store", shop.url)
    assert answer.code == 0
    shown = dict(line.split(None, 1) for line in answer.lines)
    assert shown["paused"] == "report"
    assert shown["nodes"] == "none"  # it lives by ticks
    assert answer.lines[-1] == "24 hours  1 succeeded"


def test_counts_leave_out_what_is_older_than_a_day(cli: Cli) -> None:
    scheduler = Scheduler("memory://yesterday")
    scheduler.every("1000d", name="rare")(lambda: None)
    scheduler.tick()
    scheduler.trigger("rare")
    scheduler.tick()
    scheduler.client.store.shift_clock(25 * 3600 * 1_000_000)
    assert cli("status", "--store", "memory://yesterday", "--json").json["counts"] == {}


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
    assert states["off"].endswith("disabled")
    assert states["waiting"].endswith("1 waiting")
    assert states["busy"].endswith("running on kitchen")
    assert running["run"] == run
    assert f"\n{run} " in glance
    assert "\nkitchen  live " in glance


def test_show_lists_the_attempts_where_there_are_several(cli: Cli) -> None:
    scheduler = Scheduler("memory://again")

    @scheduler.every("1h", name="flaky", retries=1, backoff=Backoff(first="1ms", jitter=0))
    def flaky(run: Run) -> None:
        run.progress(run.attempt, 2, "half way")
        if run.attempt == 1:
            raise OSError("try again")

    with scheduler:
        run = scheduler.trigger("flaky")
        assert scheduler.wait(run, 60).status == "succeeded"
    answer = cli("show", run, "--store", "memory://again")
    assert [line.split()[3:5] for line in answer.lines if line.startswith(run)] == [["1", "failed"], ["2", "succeeded"]]
    assert "progress  2 of 2 half way" in answer.lines
    assert [one["status"] for one in cli("show", run, "--store", "memory://again", "--json").json["attempts"]] == [
        "failed",
        "succeeded",
    ]


def test_limits_show_who_has_the_permits_and_who_waits(cli: Cli, shop: Shop) -> None:
    answer = cli("limits", "--store", shop.url)
    assert answer.code == 0
    assert "names a limit" in answer.err
    shop.scheduler.add("heavy", "invoices", "0 0 1 1 *", limit="db-heavy:2")
    answer = cli("limits", "--store", shop.url)
    assert answer.lines[0].split() == ["LIMIT", "MOST", "TAKEN", "WAITING", "JOBS", "BY"]
    assert answer.lines[1].split() == ["db-heavy", "2", "0", "0", "heavy"]
    (limit,) = cli("limits", "--store", shop.url, "--json").json
    assert limit == {"name": "db-heavy", "most": 2, "taken": [], "jobs": ["heavy"], "waiting": 0}


def test_status_tells_monitoring_by_its_exit_code_what_should_have_run_and_did_not(cli: Cli) -> None:
    scheduler = Scheduler("memory://alarmed", enabled=True)
    scheduler.alarms(every="1ms", patience=0)
    scheduler.every("1h", name="well")(lambda: None)
    scheduler.tick()
    assert cli("status", "--store", "memory://alarmed").code == 0
    scheduler.every("1h", name="ill", pool="gpu")(lambda: None)
    scheduler.tick()
    answer = cli("status", "--store", "memory://alarmed")
    assert answer.code == 1
    assert "no node" in answer.out
    assert "ill and whatever else is in it cannot run" in answer.out
    answer = cli("status", "--store", "memory://alarmed", "--json")
    assert (answer.code, [one["subject"] for one in answer.json["alarms"]]) == (1, ["gpu"])


def test_status_finds_what_is_overdue_without_any_node(cli: Cli) -> None:
    scheduler = Scheduler("memory://overdue", enabled=True)
    scheduler.every("1h", name="forgotten")(lambda: None)
    scheduler.tick()
    assert cli("status", "--store", "memory://overdue").code == 0
    scheduler.client.store.shift_clock(3 * 3_600_000_000)
    answer = cli("status", "--store", "memory://overdue", "--json")
    assert answer.json["overdue"] == ["forgotten"]
    assert answer.code == 1


def test_a_pool_with_jobs_and_no_live_node_is_exit_1_and_named(cli: Cli) -> None:
    url = "memory://nobody-home"
    scheduler = Scheduler(url, pools=("default", "gpu"))
    for name in ("train", "infer"):
        scheduler.every("1000d", name=name, pool="gpu")(lambda: None)
    scheduler.every("1000d", name="mail")(lambda: None)
    with scheduler:
        assert cli("status", "--store", url).code == 0
    answer = cli("status", "--store", url)
    assert answer.code == 1
    assert "no node   pool default: its 1 job does not run; start one: solocron run TARGET" in answer.lines
    assert "          pool gpu: its 2 jobs do not run; start one: solocron run TARGET --pools gpu" in answer.lines
    answer = cli("status", "--store", url, "--json")
    assert (answer.code, answer.json["unserved"]) == (1, {"default": 1, "gpu": 2})
    assert cli("doctor", "--store", url).code == 1


def test_a_pool_that_ticks_serve_is_no_fault(cli: Cli, shop: Shop) -> None:
    answer = cli("status", "--store", shop.url, "--json")
    assert (answer.code, answer.json["unserved"]) == (0, {})


@pytest.fixture
def held(cli: Cli) -> Iterator[Callable[..., tuple[str, Scheduler]]]:
    """A run in a thread that ignores cancellation until the test is over."""
    begun, end = threading.Event(), threading.Event()
    schedulers: list[Scheduler] = []

    def start(url: str, **options: object) -> tuple[str, Scheduler]:
        scheduler = Scheduler(url, node="kitchen")
        schedulers.append(scheduler)

        @scheduler.every("1000d", name="stubborn", **options)
        def stubborn() -> None:
            begun.set()
            assert end.wait(60)

        scheduler.start()
        run = scheduler.trigger("stubborn")
        assert begun.wait(60)
        return run, scheduler

    yield start
    end.set()
    for scheduler in schedulers:
        scheduler.stop()


def test_a_run_shows_since_when_it_runs_and_when_it_must_end(cli: Cli, held: Callable[..., Any]) -> None:
    run, _ = held("memory://since", timeout="1h")
    (found,) = cli("status", "--store", "memory://since", "--json").json["running"]
    assert moment(found["deadline"]) - moment(found["claimed_at"]) == timedelta(hours=1)
    assert (found["stopping"], found["stopping_since"], found["stuck"]) == (None, None, False)
    for again in (
        cli("show", run, "--store", "memory://since", "--json").json,
        cli("runs", "--store", "memory://since", "--json").json[0],
    ):
        assert again["deadline"] == found["deadline"]
    shown = dict(line.split(None, 1) for line in cli("show", run, "--store", "memory://since").lines)
    assert shown["running"].startswith("for ")
    assert shown["deadline"].endswith(" UTC")
    table = cli("status", "--store", "memory://since").lines
    assert table[-2].split() == ["RUN", "NODE", "SINCE", "(UTC)", "FOR", "DEADLINE", "(UTC)", "STATE"]
    assert table[-1].startswith(run)
    assert table[-1].endswith(" running")


def test_a_run_that_was_asked_to_stop_shows_when_and_why(cli: Cli, held: Callable[..., Any]) -> None:
    run, scheduler = held("memory://asked")
    before = moment(cli("status", "--store", "memory://asked", "--json").json["now"])
    scheduler.cancel(run)
    found = cli("show", run, "--store", "memory://asked", "--json").json
    assert found["stopping"] == "cancelled by request"
    assert before <= moment(found["stopping_since"])
    assert found["stuck"] is False
    assert "to stop at " in cli("show", run, "--store", "memory://asked").out
    assert cli("status", "--store", "memory://asked").code == 0


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_run_that_does_not_stop_is_stuck_for_status_show_and_doctor(
    cli: Cli, held: Callable[..., Any], how: str
) -> None:
    """A thread cannot be stopped from outside: whoever looks must learn it from the first command they think of."""
    url = f"memory://stuck-{how}"
    run, scheduler = held(url, **({"timeout": "1h"} if how == "timeout" else {}))
    if how == "cancel":
        scheduler.cancel(run)
    store = make_store(url)
    now = store.clock() + 3_600_000_000 * 2

    def live_until(doc: Session, _: int) -> Change:
        return Change(replace(doc, expires_at=now + 3_600_000_000, lease=15_000_000))

    (session,) = store.read(All(Kind.SESSION))
    store.update(Named(Kind.SESSION, (session.name,)), live_until)
    store.shift_clock(now - store.clock())
    answer = cli("status", "--store", url)
    assert answer.code == 1
    assert f"stuck     {run}" in answer.lines
    assert "stuck" in answer.lines[-1]
    assert cli("status", "--store", url, "--json").json["running"][0]["stuck"] is True
    shown = dict(line.split(None, 1) for line in cli("show", run, "--store", url).lines)
    assert shown["stuck"] == (
        'its body does not stop, and stubborn waits for it: restart kitchen, or declare on_stuck="abandon"'
    )
    doctor = cli("doctor", "--store", url)
    assert doctor.code == 1
    assert "its body does not stop when told to, and stubborn waits for it" in doctor.out


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


def test_a_store_in_memory_cannot_list_its_namespaces(cli: Cli, shop: Shop) -> None:
    answer = cli("namespaces", "--store", shop.url)
    assert answer.code == 2
    assert "cannot list its namespaces" in answer.err
    assert cli("restored", "--all", "--store", shop.url).code == 2


def test_namespaces_are_a_table_and_restored_everywhere_says_so_of_each(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    for name in ("reports", "billing"):
        scheduler = Scheduler(url, namespace=name)
        scheduler.cron("0 1 * * *", name="a")(lambda: None)
        scheduler.tick()
    lines = cli("namespaces", "--store", url).lines
    assert [line.split() for line in lines] == [
        ["NAMESPACE", "JOBS", "NODES"],
        ["billing", "1", "0"],
        ["reports", "1", "0"],
    ]
    told = "1 jobs moved to now; what the backup does not know of will not run again"
    assert cli("restored", "--all", "--store", url).lines == [f"billing: {told}", f"reports: {told}"]
    assert cli("restored", "--all", "--namespace", "billing", "--store", url).code == 2
