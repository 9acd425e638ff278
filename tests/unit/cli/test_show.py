"""`solocron show`: one run, every attempt, since when it runs and when it must end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from solocron import Backoff, Message, Run, Scheduler
from tests.unit.cli.kit import Cli, Shop, moment


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
    assert answer.err.endswith("; `solocron runs` lists them.\n"), "the names of jobs are no help here"


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
    assert [line.split()[1:5:3] for line in answer.lines if line.startswith(run)] == [
        ["failed", "1"],
        ["succeeded", "2"],
    ]
    assert "progress  2 of 2 half way" in answer.lines
    assert [one["status"] for one in cli("show", run, "--store", "memory://again", "--json").json["attempts"]] == [
        "failed",
        "succeeded",
    ]


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
    assert table[-2].split() == ["RUN", "FOR", "NODE", "SINCE", "(UTC)", "DEADLINE", "(UTC)", "STATE"]
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


def test_a_result_is_shown_as_json(cli: Cli, shop: Shop) -> None:
    """As Python would write it, it could not be pasted into anything else."""
    run = shop.ran("invoices")
    assert 'result    {"sent": 3}' in cli("show", run, "--store", shop.url).lines


def test_the_shards_of_a_job_are_listed_as_trigger_takes_them(cli: Cli, tmp_path: Path) -> None:
    """A shard that does not exist is refused with this command."""
    url = f"sqlite:///{tmp_path}/sharded.db"
    scheduler = Scheduler(url)
    scheduler.every("1000d", name="named", shards=("eu", "us"))(lambda: None)
    scheduler.every("1000d", name="numbered", shards=8)(lambda: None)
    scheduler.tick()
    scheduler.stop()
    assert "shards    eu, us" in cli("show", "named", "--store", url).lines
    assert "shards    0 to 7" in cli("show", "numbered", "--store", url).lines
    refused = cli("trigger", "named", "--shard", "asia", "--store", url)
    assert "`solocron show named` lists those that it has" in refused.err


def test_a_job_is_shown_with_all_that_pauses_it(cli: Cli, shop: Shop) -> None:
    cli("pause", "--all", "--by", "kim", "--note", "moving", "--store", shop.url)
    cli("pause", "--match", "inv*", "--by", "lee", "--store", shop.url)
    lines = cli("show", "invoices", "--store", shop.url).lines
    shown = dict(line.split(None, 1) for line in lines)
    assert (shown["job"], shown["state"]) == ("invoices", "paused")
    assert shown["note"] == "with all jobs by kim: moving; with jobs matching inv* by lee"
    assert "next" not in shown
    found = cli("show", "invoices", "--store", shop.url, "--json").json
    assert [one["option"] for one in found["pauses"]] == ["--all", "--match 'inv*'"]
    unknown = cli("show", "invoice", "--store", shop.url)
    assert unknown.code == 3
    assert "Did you mean 'invoices'?" in unknown.err


def test_what_waits_in_a_queue_is_shown_where_it_waits_and_then_who_picked_it_up(cli: Cli, tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/jobs.db")
    scheduler = Scheduler(store[1], enabled=True, node="clerk")
    sent: list[Message] = []
    shown: list[list[str]] = []
    scheduler.carrier("celery", sent.append, follows=True)

    @scheduler.cron("0 3 1 1 *", run_in="celery")
    def books(run: Run) -> None:
        shown.append(cli("show", run.id, *store).lines)

    scheduler.tick()
    run = scheduler.trigger("books")
    scheduler.tick()
    (line,) = [line for line in cli("show", run, *store).lines if "waits in celery since " in line]
    assert line.endswith("Z, not picked up")
    assert any(run in line and "offered" in line for line in cli("runs", "--status", "offered", *store).lines)
    assert any(run in line and "waits in celery since " in line for line in cli("status", *store).lines)
    assert scheduler.carry_out(sent[0]) is not None
    assert any("picked up by clerk from celery" in line for line in shown[0])
    assert not any("waits in celery" in line for line in cli("show", run, *store).lines)
    scheduler.stop()
