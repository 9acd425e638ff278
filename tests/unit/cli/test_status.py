"""`solocron status`: one screen for people, an exit code for monitoring."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from solocron import Scheduler
from solocron.model.change import Change, Kind
from solocron.model.documents.session import Session
from solocron.stores.contract import All, Named
from solocron.stores.url import make_store
from tests.unit.cli.kit import Cli, Shop, moment


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


def test_the_line_of_a_day_counts_ends_only(cli: Cli) -> None:
    begun, end = threading.Event(), threading.Event()
    scheduler = Scheduler("memory://busy-day")

    @scheduler.every("1000d", name="long")
    def long() -> None:
        begun.set()
        assert end.wait(60)

    with scheduler:
        run = scheduler.trigger("long")
        assert begun.wait(60)
        shown = dict(
            line.split("  ", 1) for line in cli("status", "--store", "memory://busy-day").lines if "  " in line
        )
        end.set()
        assert scheduler.wait(run, 60).status == "succeeded"
    assert (shown["running"].strip(), shown["24 hours"]) == ("1", "nothing on record")


def test_counts_leave_out_what_is_older_than_a_day(cli: Cli) -> None:
    scheduler = Scheduler("memory://yesterday")
    scheduler.every("1000d", name="rare")(lambda: None)
    scheduler.tick()
    scheduler.trigger("rare")
    scheduler.tick()
    scheduler.open().store.shift_clock(25 * 3600 * 1_000_000)
    assert cli("status", "--store", "memory://yesterday", "--json").json["counts"] == {}


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
    assert "no live node serves this pool, which has ill" in answer.out
    answer = cli("status", "--store", "memory://alarmed", "--json")
    assert (answer.code, [one["subject"] for one in answer.json["alarms"]]) == (1, ["gpu"])


def test_status_finds_what_is_overdue_without_any_node(cli: Cli) -> None:
    scheduler = Scheduler("memory://overdue", enabled=True)
    scheduler.every("1h", name="forgotten")(lambda: None)
    scheduler.tick()
    assert cli("status", "--store", "memory://overdue").code == 0
    scheduler.open().store.shift_clock(3 * 3_600_000_000)
    answer = cli("status", "--store", "memory://overdue", "--json")
    assert answer.json["overdue"] == ["forgotten"]
    assert answer.code == 1


def test_a_pool_with_jobs_and_no_live_node_is_exit_1_and_named(cli: Cli) -> None:
    url = "memory://no-node"
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


def test_a_pool_that_ticks_serve_is_not_a_fault(cli: Cli, shop: Shop) -> None:
    answer = cli("status", "--store", shop.url, "--json")
    assert (answer.code, answer.json["unserved"]) == (0, {})


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_run_that_does_not_stop_is_stuck_for_status_show_and_doctor(
    cli: Cli, held: Callable[..., Any], how: str
) -> None:
    """A thread cannot be stopped from outside: the user must learn it from the first command that comes to mind."""
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
