"""`trigger`, `pause`, `resume`, `cancel`, `remove`, `adopt`, `restored`: what they change, and what they answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from solocron import Run, Scheduler
from solocron.cli import main
from solocron.client import Client
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.stores.contract import Applied, Gate, Result, Verdict
from solocron.stores.memory import MemoryStore
from tests.unit.cli.kit import Answer, Shop

Cli = Callable[..., Answer]


def test_trigger_answers_the_runs_id(cli: Cli, shop: Shop) -> None:
    answer = cli("trigger", "invoices", "--store", shop.url)
    assert answer.code == 0
    assert shop.scheduler.get_run(answer.out.strip()).status == "waiting"
    assert set(cli("trigger", "invoices", "--store", shop.url, "--json").json) == {"run"}


def test_trigger_says_when_nobody_can_run_it(cli: Cli, shop: Shop) -> None:
    assert "no live node can run invoices" in cli("trigger", "invoices", "--store", shop.url).err
    with shop.scheduler:
        assert cli("trigger", "invoices", "--store", shop.url).err == ""


def test_the_same_key_twice_is_one_run(cli: Cli, shop: Shop) -> None:
    first = cli("trigger", "invoices", "--key", "order-7", "--store", shop.url).out
    assert cli("trigger", "invoices", "--key", "order-7", "--store", shop.url).out == first


def test_the_payload_reaches_the_run(cli: Cli) -> None:
    seen: list[object] = []
    scheduler = Scheduler("memory://payload")

    @scheduler.every("1h", name="echo")
    def echo(run: Run) -> None:
        seen.append(run.payload)

    scheduler.tick()
    assert cli("trigger", "echo", "--payload", '{"to": ["kim"]}', "--store", "memory://payload").code == 0
    scheduler.tick()
    assert seen == [{"to": ["kim"]}]


def test_a_payload_that_is_no_json_triggers_nothing(cli: Cli, shop: Shop) -> None:
    answer = cli("trigger", "invoices", "--payload", "{to: kim}", "--store", shop.url)
    assert answer.code == 2
    assert "--payload is not JSON" in answer.err
    assert "Nothing" in answer.err or "nothing was triggered" in answer.err
    assert shop.scheduler.get_job("invoices").waiting == 0


def test_at_takes_an_instant_or_a_time_from_now(cli: Cli, shop: Shop) -> None:
    at = datetime(2037, 1, 1, 12, tzinfo=UTC)
    run = cli("trigger", "invoices", "--at", "2037-01-01T13:00+01:00", "--store", shop.url).out.strip()
    assert shop.scheduler.get_run(run).slot == at
    run = cli("trigger", "invoices", "--at", "10m", "--store", shop.url).out.strip()
    away = shop.scheduler.get_run(run).slot - shop.scheduler.status().now
    assert timedelta(minutes=9) < away <= timedelta(minutes=10)


def test_at_an_unreadable_instant_nothing_is_triggered(cli: Cli, shop: Shop) -> None:
    answer = cli("trigger", "invoices", "--at", "soon", "--store", shop.url)
    assert answer.code == 2
    assert "neither an instant" in answer.err
    assert shop.scheduler.get_job("invoices").waiting == 0


def test_triggering_an_unknown_job_is_not_found(cli: Cli, shop: Shop) -> None:
    answer = cli("trigger", "invocies", "--store", shop.url)
    assert answer.code == 3
    assert "did you mean 'invoices'?" in answer.err


def test_triggering_a_disabled_job_is_a_conflict(cli: Cli) -> None:
    scheduler = Scheduler("memory://disabled")
    scheduler.every("1h", name="off", enabled=False)(lambda: None)
    scheduler.tick()
    assert cli("trigger", "off", "--store", "memory://disabled").code == 4


@pytest.mark.parametrize("order", [("--wait", "60", "invoices"), ("invoices", "--wait"), ("--wait", "invoices")])
def test_wait_shows_how_it_ended(cli: Cli, shop: Shop, order: tuple[str, ...]) -> None:
    with shop.scheduler:
        answer = cli("trigger", *order, "--store", shop.url, "--json")
    assert answer.code == 0
    assert (answer.json["job"], answer.json["status"]) == ("invoices", "succeeded")


def test_wait_for_a_run_that_fails_is_a_failure(cli: Cli, shop: Shop) -> None:
    with shop.scheduler:
        answer = cli("trigger", "broken", "--wait", "60", "--store", shop.url)
    assert answer.code == 1
    assert "status    failed" in answer.lines


def test_wait_that_takes_too_long_says_where_to_look(cli: Cli, shop: Shop) -> None:
    answer = cli("trigger", "invoices", "--wait", "0.01", "--store", shop.url, "--json")
    assert answer.code == 6
    assert answer.json["status"] == "waiting"
    assert f"next: solocron show {answer.json['run']} --store {shop.url}" in answer.err


def test_wait_takes_a_time_with_a_unit_too(cli: Cli, shop: Shop) -> None:
    assert cli("trigger", "invoices", "--wait", "10ms", "--store", shop.url).code == 6


def test_pause_keeps_who_why_and_until_when(cli: Cli, shop: Shop) -> None:
    answer = cli("pause", "invoices", "--by", "kim", "--note", "audit", "--until", "2h", "--store", shop.url)
    assert answer.code == 0
    paused = shop.scheduler.get_job("invoices").paused
    assert paused is not None
    assert (paused.by, paused.note) == ("kim", "audit")
    assert paused.until is not None
    assert f"{paused.until:%Y-%m-%d %H:%M:%S}" in answer.out


def test_pause_names_the_user_of_the_terminal(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "robin")
    assert cli("pause", "invoices", "--store", shop.url, "--json").json["paused"]["by"] == "robin"


def test_pause_until_the_past_is_refused(cli: Cli, shop: Shop) -> None:
    assert cli("pause", "invoices", "--until", "2001-01-01", "--store", shop.url).code == 2
    assert shop.scheduler.get_job("invoices").paused is None


def test_resume_goes_on(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("invoices")
    answer = cli("resume", "invoices", "--store", shop.url)
    assert answer.code == 0
    assert "its next slot is" in answer.out
    assert shop.scheduler.get_job("invoices").paused is None
    assert cli("resume", "invoices", "--store", shop.url, "--json").json["paused"] is None


def test_resume_says_what_it_does_before_it_does_it(cli: Cli, shop: Shop) -> None:
    shop.scheduler.pause("invoices")
    shop.later(3 * 3600)
    plan = cli("resume", "invoices", "--dry-run", "--store", shop.url)
    assert (plan.code, plan.err) == (0, "")
    assert "invoices: 3 slots do not run (3 skipped: " in plan.out
    assert "; 0 waiting runs start; the next slot is " in plan.out
    assert cli("resume", "invoices", "--dry-run", "--json", "--store", shop.url).json["skipped"] == 3
    assert shop.scheduler.get_job("invoices").paused is not None
    done = cli("resume", "invoices", "--store", shop.url)
    assert "3 slots do not run" in done.err
    assert shop.scheduler.runs("invoices", status="skipped")[0].count == 3
    assert "nothing would change" in cli("resume", "invoices", "--dry-run", "--store", shop.url).out


@pytest.mark.parametrize("verb", ["pause", "resume", "remove"])
def test_of_an_unknown_job_nothing_is_changed(cli: Cli, shop: Shop, verb: str) -> None:
    answer = cli(verb, "invoice", "--store", shop.url)
    assert answer.code == 3
    assert "did you mean 'invoices'?" in answer.err


def test_cancel_of_a_run_that_waits(cli: Cli, shop: Shop) -> None:
    run = shop.scheduler.trigger("invoices")
    assert cli("cancel", run, "--store", shop.url, "--json").json == {"run": run, "answer": "cancelled"}
    assert cli("cancel", run, "--store", shop.url).code == 0  # asking twice is no mistake
    assert shop.scheduler.get_run(run).status == "cancelled"


def test_cancel_of_a_run_that_is_over_is_a_conflict(cli: Cli, shop: Shop) -> None:
    run = shop.ran("invoices")
    answer = cli("cancel", run, "--store", shop.url)
    assert (answer.code, answer.out) == (4, "")
    assert "is over already: succeeded" in answer.err


def test_cancel_asks_the_node_that_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    begun, told = threading.Event(), threading.Event()
    scheduler = Scheduler("memory://cancelling")

    @scheduler.every("1h", name="long")
    def long(run: Run) -> None:
        begun.set()
        assert told.wait(60)
        run.check()

    with scheduler:
        run = scheduler.trigger("long")
        assert begun.wait(60)
        scheduler.on("cancelling", lambda event: told.set())
        assert main(["cancel", run, "--store", "memory://cancelling"]) == 0
        assert "was asked to stop" in capsys.readouterr().out
        assert scheduler.wait(run, 60).status == "cancelled"


def test_cancel_of_an_unknown_run_is_not_found(cli: Cli, shop: Shop) -> None:
    assert cli("cancel", "invoices@nothing", "--store", shop.url).code == 3


def test_remove_forgets_a_job_that_no_running_code_declares(cli: Cli, shop: Shop) -> None:
    assert cli("remove", "invoices", "--store", shop.url, "--json").json == {"job": "invoices", "removed": True}
    assert "invoices" not in [job.name for job in shop.scheduler.jobs()]


def test_remove_leaves_what_running_code_declares(cli: Cli, shop: Shop) -> None:
    with shop.scheduler:
        answer = cli("remove", "invoices", "--store", shop.url)
    assert answer.code == 4
    assert "was not removed" in answer.err


def test_restored_repeats_what_others_got_in_the_way_of(shop: Shop) -> None:
    class Crowded(MemoryStore):
        turns = 0

        def update(self, which: Any, change: Any, *, session: str | None = None, gate: Gate | None = None) -> Applied:
            if which.kind is Kind.NAMESPACE:
                return super().update(which, change)
            Crowded.turns += 1
            if Crowded.turns <= 2:
                return Applied(results=tuple(Result(name, Verdict.CONTENDED) for name in which.names), now=0)
            return super().update(which, change, session=session, gate=gate)

    client = Client(Crowded(shop.url.removeprefix("memory://")))
    assert client.restored() == 3
    assert Crowded.turns == 3
    Crowded.turns = -100
    with pytest.raises(StoreError, match="3 jobs could not be moved to now"):
        client.restored()


def test_restored_lets_nothing_before_now_run_again(cli: Cli, shop: Shop) -> None:
    shop.later(5 * 3600)
    assert cli("restored", "--store", shop.url, "--json").json == {"jobs": 3}
    assert cli("restored", "--store", shop.url).out.startswith("3 jobs moved to now")
    shop.tick()
    (found,) = cli("runs", "invoices", "--store", shop.url, "--json").json
    assert (found["status"], found["count"]) == ("skipped", 5)
    assert found["reason"] == "the store was restored from a backup"


def test_adopt_lets_definitions_of_a_higher_revision_give_way(cli: Cli) -> None:
    def node(expression: str, revision: int) -> Scheduler:
        scheduler = Scheduler("memory://adopt", revision=revision)
        scheduler.cron(expression, name="report")(lambda: None)
        return scheduler

    def asked(*words: str) -> Answer:
        return cli("adopt", *words, "--store", "memory://adopt")

    node("0 2 * * *", 42).tick()
    node("0 1 * * *", 41).tick()
    assert Scheduler("memory://adopt").get_job("report").revision == 42
    answer = asked("report")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "report gives way: what the nodes declare is written with the next node that declares it\n"
    node("0 1 * * *", 41).tick()
    assert Scheduler("memory://adopt").get_job("report").revision == 41
    assert asked("--all", "--json").json == {"jobs": ["report"]}
    with node("0 1 * * *", 41):
        assert "nothing was changed" in asked("--all").err
        assert asked("report").code == 4
    assert asked("nothing").code == 3


@pytest.mark.parametrize("words", [(), ("report", "--all")])
def test_adopt_wants_a_job_or_all(words: tuple[str, ...], cli: Cli, shop: Shop) -> None:
    answer = cli("adopt", *words, "--store", shop.url)
    assert answer.code == 2
    assert "a JOB or --all" in answer.err
