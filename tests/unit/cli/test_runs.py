"""`solocron runs`: what ran, what did not and why; filters, bounds, nothing that moves a terminal."""

from __future__ import annotations

import io
import json
import shlex
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from solocron import RunView, Scheduler, Status, allow
from solocron.cli import main
from solocron.cli.rendering import describe_run
from solocron.clock import iso, to_us
from solocron.model.documents.run import Origin, Record
from solocron.stores.contract import Page, Query
from solocron.stores.memory import MemoryStore
from tests.unit.cli.kit import Answer, Cli, Shop, moment


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


# --- filters ---------------------------------------------------------------------------------------------------------


def runs_of(cli: Cli, shop: Shop, *given: str) -> list[str]:
    return [run["run"] for run in cli("runs", "--store", shop.url, *given, "--json").json]


def test_runs_can_be_filtered_by_origin_and_node(cli: Cli, shop: Shop) -> None:
    asked = shop.ran("invoices")
    shop.later(3600)
    shop.tick()
    slots = runs_of(cli, shop, "--origin", "schedule,rerun")
    due = {"invoices", "broken"}  # and `report`, if the hour that passed was that of half past two in New York
    assert {run.partition("@")[0] for run in slots} - {"report"} == due
    assert runs_of(cli, shop, "--origin", "trigger") == [asked]
    assert sorted(runs_of(cli, shop, "--node", "kitchen")) == sorted([asked, *slots])
    assert runs_of(cli, shop, "--node", "cellar") == []


def test_runs_can_be_filtered_by_the_time_of_their_end(cli: Cli, shop: Shop) -> None:
    early = shop.ran("invoices")
    shop.later(2 * 3600)
    between = iso(shop.store.clock())
    shop.later(2 * 3600)
    late = shop.ran("invoices")
    found = runs_of(cli, shop, "--since", "1h", "--origin", "trigger")
    assert found == [late]
    assert runs_of(cli, shop, "--until", "1h", "--origin", "trigger") == [early]
    assert runs_of(cli, shop, "--since", between, "--origin", "trigger") == [late]
    assert runs_of(cli, shop, "--since", "5h", "--until", between, "--origin", "trigger") == [early]


def test_what_runs_is_of_the_present(cli: Cli, held: Callable[..., tuple[str, Scheduler]]) -> None:
    run, _ = held("memory://present")
    at = ("runs", "--store", "memory://present", "--json")
    assert [one["run"] for one in cli(*at, "--since", "1h").json] == [run]
    assert [one["run"] for one in cli(*at, "--origin", "trigger", "--node", "kitchen").json] == [run]
    assert cli(*at, "--until", "1h").json == []
    assert cli(*at, "--origin", "schedule").json == []
    assert cli(*at, "--node", "cellar").json == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--origin", "triger"], "--origin: 'triger' is not known; did you mean 'trigger'?"),
        (["--status", ","], "--status: the list is empty; name what is wanted, or leave the flag out."),
        (["--since", "yesterday"], "--since: 'yesterday' is neither an instant such as"),
        (["--until", "9999999w"], "--until: '9999999w' is too far away."),
        (["--since", "1h", "--until", "2h"], "no run can be both since"),
        (["--before", "yesterday"], "--before: 'yesterday' is not a place in the listing"),
        (["--before", "2026-01-01T00:00:00Z/one/a@1"], "is not a place in the listing"),
        (["--before", "2026-01-01T00:00:00/1/a@1"], "is not a place in the listing"),
        (["--limit", "10001"], "limit=10001: give a whole number from 1 to 10000."),
        (["--limit", "0"], "argument --limit: '0' is not a whole number from 1 up"),
        (["--all", "--limit", "3"], "--all lists every run, so --limit does not go with it; nothing was read."),
        (["--watch"], "--watch draws on a terminal, and stdout is not one; nothing was read. Leave --watch out."),
        (["--watch", "--json"], "--watch shows the newest runs, so --json does not go with it; nothing was read."),
        (["--watch", "--all"], "so --all does not go with it"),
        (["--watch", "--before", "x"], "so --before does not go with it"),
    ],
)
def test_a_wrong_option_is_one_clear_line(cli: Cli, shop: Shop, given: list[str], said: str) -> None:
    answer = cli("runs", "--store", shop.url, *given)
    assert (answer.code, answer.out) == (2, "")
    first, following = answer.err.splitlines()
    assert said in first
    assert following == "next: solocron runs --help"


# --- pages -----------------------------------------------------------------------------------------------------------


def followed(cli: Cli, answer: Answer) -> Answer:
    """What the command printed last, typed."""
    last = answer.err.splitlines()[-1]
    assert last.startswith("next: solocron ")
    return cli(*shlex.split(last.removeprefix("next: solocron ")))


def test_the_last_line_says_how_to_go_on(cli: Cli, shop: Shop) -> None:
    runs = [shop.ran("invoices") for _ in range(5)][::-1]
    first = cli("runs", "invoices", "--store", shop.url, "--limit", "2", "--since", "1h", "--node", "kitchen", "--json")
    shop.ran("invoices")  # what comes in between shifts nothing
    second = followed(cli, first)
    third = followed(cli, second)
    assert [[run["run"] for run in page.json] for page in (first, second, third)] == [runs[:2], runs[2:4], runs[4:]]
    assert third.err == ""


def test_what_runs_has_pages_too(cli: Cli) -> None:
    end, begun = threading.Event(), threading.Barrier(4)
    scheduler = Scheduler("memory://pages", node="kitchen")

    @scheduler.every("1000d", name="busy", overlap=allow(3))
    def busy() -> None:
        begun.wait(60)
        assert end.wait(60)

    with scheduler:
        runs = [scheduler.trigger("busy") for _ in range(3)]
        begun.wait(60)
        pages = [cli("runs", "--store", "memory://pages", "--limit", "1", "--json")]
        while "next: " in pages[-1].err:
            pages.append(followed(cli, pages[-1]))
        end.set()
        for run in runs:
            scheduler.wait(run, 60)
    found = [run["run"] for page in pages for run in page.json]
    assert sorted(found) == sorted(runs)
    assert {run["status"] for page in pages for run in page.json} == {"running"}


def test_a_filter_without_an_index_says_how_far_it_looked(
    cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solocron.stores.contract.Query.most", property(lambda query: 2))
    runs = [shop.ran("invoices") for _ in range(5)]
    answer = cli("runs", "--store", shop.url, "--node", "cellar")
    assert answer.out == ""
    nothing, broken_off, following = answer.err.splitlines()
    assert nothing == "no runs on record"
    assert broken_off.startswith("the search was broken off at ")
    assert following.endswith(f"/1/{runs[3]}")


def test_all_are_streamed_a_page_at_a_time(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log with millions of records no more than a page may be in memory."""
    runs = [shop.ran("invoices") for _ in range(5)]
    monkeypatch.setattr("solocron.client.run_listing._PAGE", 2)
    printed, at_reads, read = io.StringIO(), list[int](), MemoryStore.history

    def counted(store: MemoryStore, query: Query) -> Page:
        at_reads.append(len(printed.getvalue().splitlines()))
        return read(store, query)

    monkeypatch.setattr(MemoryStore, "history", counted)
    with redirect_stdout(printed):
        assert main(["runs", "--all", "--json", "--store", shop.url]) == 0
    assert [json.loads(line)["run"] for line in printed.getvalue().splitlines()] == runs[::-1]
    assert at_reads[-3:] == [0, 2, 4]


def test_all_as_a_table_has_one_header(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [shop.ran("invoices") for _ in range(5)]
    monkeypatch.setattr("solocron.client.run_listing._PAGE", 2)
    answer = cli("runs", "--all", "--store", shop.url)
    assert [line.split()[0] for line in answer.lines] == ["RUN", *runs[::-1]]


def test_a_filter_that_finds_nothing_does_not_make_a_job_unknown(cli: Cli, shop: Shop) -> None:
    shop.ran("invoices")
    cli("remove", "invoices", "--store", shop.url)
    assert cli("runs", "invoices", "--status", "lost", "--store", shop.url, "--json").json == []
