"""`solocron trigger`: a run by request, its payload, its key, and waiting for its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from solocron import Run, Scheduler
from tests.unit.cli.kit import Cli, Shop


def test_trigger_prints_the_runs_id(cli: Cli, shop: Shop) -> None:
    answer = cli("trigger", "invoices", "--store", shop.url)
    assert answer.code == 0
    assert shop.scheduler.get_run(answer.out.strip()).status == "waiting"
    assert set(cli("trigger", "invoices", "--store", shop.url, "--json").json) == {"run"}


def test_trigger_says_when_no_node_can_run_it(cli: Cli, shop: Shop) -> None:
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


def test_a_payload_that_is_not_json_triggers_nothing(cli: Cli, shop: Shop) -> None:
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
    assert "Did you mean 'invoices'?" in answer.err


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


def test_an_instant_in_the_past_is_said_to_be_now(cli: Cli, shop: Shop) -> None:
    answer = cli("trigger", "invoices", "--at", "2020-01-01", "--store", shop.url)
    assert answer.code == 0
    assert "--at 2020-01-01 is in the past: the run starts as soon as it can" in answer.err
