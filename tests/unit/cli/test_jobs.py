"""`solocron jobs`: every job with its schedule and state, for people and for programs."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from solocron import Every, Lock, Scheduler
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.scheduler.hooks import core_of
from solocron.stores.contract import Doc, Named, Store, Which
from solocron.stores.memory import MemoryStore
from solocron.stores.sql.store import SqlStore
from tests.unit.cli.kit import Answer, Cli, Shop, moment


def test_a_job_whose_last_day_is_over_says_so(cli: Cli) -> None:
    scheduler = Scheduler("memory://sales")
    scheduler.cron("0 9 * * *", name="sale", ends="2001-01-31")(lambda: None)
    scheduler.tick()
    assert cli("jobs", "--store", "memory://sales").lines[1].split()[1] == "ended"


def test_jobs_are_found_by_their_tags_and_show_owner_and_tags(cli: Cli) -> None:
    scheduler = Scheduler("memory://tagged")
    scheduler.every("1h", name="bill", tags=("money", "eu"), owner="billing")(lambda: None)
    scheduler.every("1h", name="clean", tags=("eu",))(lambda: None)
    scheduler.every("1h", name="plain")(lambda: None)
    scheduler.tick()
    found = cli("jobs", "--store", "memory://tagged", "--tag", "eu,money", "--json").json
    assert [(job["name"], job["tags"], job["owner"]) for job in found] == [("bill", ["eu", "money"], "billing")]
    assert len(cli("jobs", "--store", "memory://tagged", "--tag", "eu", "--json").json) == 2
    head, first, *_ = cli("jobs", "--store", "memory://tagged").lines
    assert head.split()[-2:] == ["OWNER", "TAGS"]
    assert first.split()[-3:] == ["billing", "eu,", "money"]
    none = cli("jobs", "--store", "memory://tagged", "--tag", "gone")
    assert (none.code, none.out) == (0, "")
    assert "no such job in namespace" in none.err


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


# --- filters and pages -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"], scope="module")
def tenants(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Some jobs as data, in two pools, to be looked at only."""
    folder = tmp_path_factory.mktemp("tenants")
    scheduler = Scheduler("memory://tenants" if request.param == "memory" else f"sqlite:///{folder / 'tenants.db'}")
    scheduler.every("1h", name="work")(lambda: None)
    scheduler.tick()
    for name in ("invoice:", "invoice:a", "invoice:b", "invoice:c", "invoice-x", "mail:a", "mail:b"):
        scheduler.add(name, "work", Every("1h"), pool="night" if name.endswith(":b") else "default")
    scheduler.pause("mail:a", by="kim")
    yield core_of(scheduler).store
    core_of(scheduler).store.close()


def jobs_of(cli: Cli, store: Store, *given: str) -> list[str]:
    return [job["name"] for job in jobs_in(cli, store, *given).json]


def jobs_in(cli: Cli, store: Store, *given: str) -> Answer:
    return cli("jobs", "--store", store.url, "--namespace", store.namespace, *given, "--json")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["--match", "invoice:*"], ["invoice:", "invoice:a", "invoice:b", "invoice:c"]),
        (["--match", "invoice:?"], ["invoice:a", "invoice:b", "invoice:c"]),
        (["--match", "*:b"], ["invoice:b", "mail:b"]),
        (["--match", "[im]*:[ab]"], ["invoice:a", "invoice:b", "mail:a", "mail:b"]),
        (["--match", "mail:a"], ["mail:a"]),
        (["--match", "nothing*"], []),
        (["--pool", "night"], ["invoice:b", "mail:b"]),
        (["--pool", "night", "--match", "mail:*"], ["mail:b"]),
        (["--state", "paused"], ["mail:a"]),
        (["--state", "on", "--match", "mail:*"], ["mail:b"]),
        (["--state", "paused,disabled", "--state", "failing"], ["mail:a"]),
        (["--state", "orphaned", "--match", "mail:*"], ["mail:a", "mail:b"]),
        (["--state", "running"], []),
        (["--after", "mail:a"], ["mail:b", "work"]),
        (["--match", "invoice:*", "--after", "invoice:a"], ["invoice:b", "invoice:c"]),
        (["--match", "*:?", "--after", "invoice:b"], ["invoice:c", "mail:a", "mail:b"]),
    ],
)
def test_jobs_can_be_filtered(cli: Cli, tenants: Store, given: list[str], found: list[str]) -> None:
    assert jobs_of(cli, tenants, *given) == found


def test_jobs_come_in_pages_and_the_last_line_says_how_to_go_on(cli: Cli, tenants: Store) -> None:
    pages = [jobs_in(cli, tenants, "--match", "invoice:*", "--limit", "3")]
    last = pages[0].err.splitlines()[-1]
    assert last.startswith("next: solocron jobs ")
    pages.append(cli(*shlex.split(last.removeprefix("next: solocron "))))
    assert [[job["name"] for job in page.json] for page in pages] == [
        ["invoice:", "invoice:a", "invoice:b"],
        ["invoice:c"],
    ]
    assert pages[1].err == ""


def test_a_page_does_not_read_every_job(cli: Cli, tenants: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100,000 jobs, 20 may not cost 100,000 documents."""
    read = list[str]()
    for kind in (MemoryStore, SqlStore):
        monkeypatch.setattr(kind, "read", counting(kind.read, read))
    found = jobs_of(cli, tenants, "--limit", "2")
    assert len(found) == 2
    assert len(read) <= 4  # two, one more that tells of a next page, and one that proves the namespace not empty
    read.clear()
    assert jobs_of(cli, tenants, "--match", "mail:*") == ["mail:a", "mail:b"]
    assert not [name for name in read[1:] if name.startswith("invoice")]
    read.clear()
    assert jobs_of(cli, tenants, "--match", "*:c") == ["invoice:c"]
    assert read[1:] == ["invoice:c"]


def counting(read: Callable[..., tuple[Doc, ...]], names: list[str]) -> Callable[..., tuple[Doc, ...]]:
    def counted(store: Store, which: Which) -> tuple[Doc, ...]:
        found = read(store, which)
        names.extend(doc.name for doc in found if isinstance(doc, Job))
        return found

    return counted


def test_a_running_job_is_found_by_its_state(cli: Cli, held: Callable[..., tuple[str, Scheduler]]) -> None:
    _, scheduler = held("memory://state-of-one")
    scheduler.pause("stubborn")
    for state in ("running", "paused", "running,failing"):
        (job,) = cli("jobs", "--store", "memory://state-of-one", "--state", state, "--json").json
        assert job["name"] == "stubborn"
    assert cli("jobs", "--store", "memory://state-of-one", "--state", "on", "--json").json == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--state", "pausd"], "--state: 'pausd' is not known; did you mean 'paused'?"),
        (
            ["--state", "xyz"],
            "choose from on, paused, disabled, running, waiting, failing, late,",
        ),
        (["--match", ""], "--match: an empty pattern fits no name; write it like 'invoice:*'. Nothing was read."),
        (["--state", ","], "--state: the list is empty; name what is wanted, or leave the flag out."),
        (["--pool", ""], "--pool: the list is empty; name what is wanted, or leave the flag out."),
        (["--limit", "none"], "argument --limit: 'none' is not a whole number from 1 up"),
        (["--match", "inv["], "--match: no name can match 'inv[': its '[' is not closed. Nothing was read."),
        (["--watch"], "--watch draws on a terminal, and stdout is not one; nothing was read. Leave --watch out."),
        (["--watch", "--json"], "--watch draws a table, so --json does not go with it; nothing was read."),
    ],
)
def test_a_wrong_option_is_one_clear_line(cli: Cli, shop: Shop, given: list[str], said: str) -> None:
    answer = cli("jobs", "--store", shop.url, *given)
    assert (answer.code, answer.out) == (2, "")
    first, following = answer.err.splitlines()
    assert said in first
    assert following == "next: solocron jobs --help"


def test_a_filter_that_finds_nothing_says_so(cli: Cli, shop: Shop) -> None:
    answer = cli("jobs", "--store", shop.url, "--match", "nothing*")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("no such job in namespace 'default'")
