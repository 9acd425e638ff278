"""`solocron runs`: what ran, what did not and why; filters, bounds, nothing that moves a terminal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from solocron import RunView, Status
from solocron.cli.rendering import describe_run
from solocron.clock import to_us
from solocron.model.documents.run import Origin, Record
from tests.unit.cli.kit import Cli, Shop, moment


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
    assert "Did you mean 'invoices'?" in answer.err


def test_a_job_without_runs_is_not_an_error(cli: Cli, shop: Shop) -> None:
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


def test_a_duration_is_never_negative() -> None:
    """A node estimates the store's clock: a body may seem to have started a moment before its slot."""
    slot = datetime(2026, 1, 1, tzinfo=UTC)
    early = slot - timedelta(milliseconds=3)
    record = Record(
        run="a@1", job="a", slot=to_us(slot), attempt=1, status=Status.SUCCEEDED, origin=Origin.SCHEDULE, key="k",
        recorded_at=0, node="n", fence=1, claimed_at=to_us(early), started_at=to_us(slot), finished_at=to_us(early),
    )  # fmt: skip
    shown = dict(describe_run(RunView.of(record), now=early))
    assert shown["took"] == "0 s"
    running = replace(RunView.of(record), status="running", started_at=early, finished_at=None)
    shown = dict(describe_run(running, now=early - timedelta(seconds=1)))
    assert (shown["running"], shown["started"].rpartition(", ")[2]) == ("for 0 s", "0 s late")
