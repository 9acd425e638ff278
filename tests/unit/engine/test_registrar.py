"""What a node proposes when it starts: as little as it can, and all that it must."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from solocron import Scheduler
from solocron.engine import registrar
from solocron.errors import ConflictError
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.scheduler.hooks import core_of
from solocron.stores.contract import Named
from solocron.stores.memory import MemoryStore, World
from solocron.testing.fleet import wait_until

Start = Callable[..., list[str]]


def node_of(world: World, application: str, schedule: str = "0 1 * * *", **settings: Any) -> Scheduler:
    """A scheduler with a job `a` and a handler `send` of an application; both answer its name."""
    scheduler = Scheduler(MemoryStore(world=world), node=settings.pop("node", application), **settings)

    def body() -> str:
        return application

    body.__module__ = f"{application}.jobs"
    scheduler.cron(schedule, name="a")(body)
    scheduler.register(body, name="send")
    return scheduler


def told(scheduler: Scheduler, event: str) -> list[dict[str, Any]]:
    """The facts of every event of that name, from now on."""
    facts: list[dict[str, Any]] = []
    scheduler.on(event, lambda one: facts.append(dict(one.facts)))
    return facts


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def store(world: World) -> MemoryStore:
    return MemoryStore(world=world)


@pytest.fixture
def start(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start and stop a node; return the names of the jobs that were proposed one by one."""
    proposed: list[str] = []
    real = registrar.propose

    def counted(doc: Any, **more: Any) -> Any:
        proposed.append(doc.name)
        return real(doc, **more)

    monkeypatch.setattr(registrar, "propose", counted)

    def start(a: str = "0 1 * * *", b: str = "0 2 * * *", **settings: Any) -> list[str]:
        proposed.clear()
        scheduler = Scheduler(store, **settings)
        scheduler.cron(a, name="a")(lambda: None)
        scheduler.cron(b, name="b")(lambda: None)
        with scheduler:
            pass
        return sorted(proposed)

    return start


def expression(store: MemoryStore, name: str) -> str:
    (doc,) = store.read(Named(Kind.JOB, (name,)))
    assert isinstance(doc, Job)
    return str((doc.definition.schedule or {})["expression"])


def test_a_restart_of_the_same_code_proposes_nothing(start: Start) -> None:
    assert start() == ["a", "b"]
    assert start() == []


def test_one_changed_job_makes_it_another_set(start: Start, store: MemoryStore) -> None:
    start()
    assert start(b="0 3 * * *") == ["a", "b"]
    assert (expression(store, "a"), expression(store, "b")) == ("0 1 * * *", "0 3 * * *")
    assert start() == ["a", "b"], "back to the first set: the second has written both"
    assert expression(store, "b") == "0 2 * * *"


def test_what_somebody_removed_is_proposed_again(start: Start, store: MemoryStore) -> None:
    start()
    Scheduler(store).remove("a")
    assert start() == ["a"]
    assert expression(store, "a") == "0 1 * * *"


def test_a_new_revision_or_newer_zones_are_proposed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    assert start(revision=2) == ["a", "b"]
    assert start(revision=2) == []
    assert start(revision=1) == ["a", "b"], "and declined: a lower revision never overwrites a higher one"
    monkeypatch.setattr("solocron.scheduler.core.zone_data_version", lambda: "9999a")
    assert start(revision=2) == ["a", "b"]
    assert start(revision=2) == []


# --- applications ----------------------------------------------------------------------------------------------------


def test_the_second_application_of_a_name_says_so_once_and_leaves_the_job_alone(
    world: World, store: MemoryStore
) -> None:
    first, second = node_of(world, "billing"), node_of(world, "reports", "0 2 * * *", revision=99)
    warned = told(second, "another application")
    with first, second:
        assert first.wait(second.trigger("a"), "10s").result == "billing"
        with node_of(world, "billing", node="replica"):
            pass
        assert expression(store, "a") == "0 1 * * *"
    assert warned == [{"job": "a", "node": "reports", "application": "reports", "declared_by": "billing"}]


def test_a_renamed_application_takes_its_jobs_on_once_the_old_one_is_gone(world: World, store: MemoryStore) -> None:
    old, new = node_of(world, "billing", lease="300ms"), node_of(world, "invoicing", "0 2 * * *", lease="300ms")
    taken = told(new, "application changed")
    old.start()
    with new:
        assert expression(store, "a") == "0 1 * * *"
        old.stop()
        assert new.wait(new.trigger("a"), "10s").result == "invoicing"
    assert expression(store, "a") == "0 2 * * *"
    assert taken == [{"job": "a", "node": "invoicing", "application": "invoicing", "declared_by": "billing"}]


def test_a_job_as_data_belongs_to_the_application_that_added_it(world: World, store: MemoryStore) -> None:
    first, second = node_of(world, "billing", lease="300ms"), node_of(world, "reports", lease="300ms")
    with second:
        first.start()
        assert first.add("mail", "send", "0 3 * * *").application == "billing"
        run = second.trigger("mail")
        assert second.wait(run, "10s").result == "billing"
        with pytest.raises(ConflictError, match="'send' is that of billing and of reports: two applications"):
            Scheduler(store).add("more", "send", "0 3 * * *")
        first.stop()
        assert second.wait(second.trigger("mail"), "10s").result == "reports", "no other node is left that would run it"


def test_a_tick_takes_on_what_its_renamed_application_added_as_data(world: World, store: MemoryStore) -> None:
    with node_of(world, "billing") as old:
        old.add("mail", "send", "0 3 * * *")
    store.shift_clock(60_000_000)
    new = node_of(world, "invoicing")
    new.trigger("mail")
    assert [run.result for run in new.tick()] == ["invoicing"]


# --- an instant that has passed --------------------------------------------------------------------------------------


def test_a_job_whose_only_instant_has_passed_is_on_record_and_in_the_log_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        scheduler = Scheduler(MemoryStore(world=world))
        scheduler.at(datetime(2020, 1, 1, tzinfo=UTC), name="late")(lambda: None)
        with scheduler:
            (record,) = scheduler.runs("late")
            assert (record.status, record.reason) == ("missed", "its only instant had passed when it was declared")
    (line,) = [one for one in caplog.messages if "had passed when it was declared" in one]
    assert "[job=late " in line
    assert "slot=2020-01-01T00:00:00Z" in line


# --- rollbacks -------------------------------------------------------------------------------------------------------


def test_a_rollback_says_that_the_newer_definition_is_kept_and_adopt_makes_it_give_way(
    world: World, store: MemoryStore
) -> None:
    new, old = node_of(world, "shop", "0 2 * * *", revision=42), node_of(world, "shop", revision=41, node="old")
    warned = told(old, "rolled back")
    new.start()
    with old:
        assert warned == [], "a deploy is under way: nothing to warn of"
        with pytest.raises(ConflictError, match="shop is of revision 42 and stands behind the stored definition of a"):
            old.open().adopt("a")
        new.stop()
        wait_until(lambda: warned, within=10, what="the warning")
        assert warned == [{"job": "a", "node": "old", "stored": 42, "ours": 41}]
        assert expression(store, "a") == "0 2 * * *"
        Scheduler(MemoryStore(world=world)).open().adopt("a")
        wait_until(lambda: expression(store, "a") == "0 1 * * *", within=10, what="the old schedule")
        assert old.get_job("a").revision == 41
        assert old.open().adopt_all() == []


def test_the_log_names_both_revisions_of_a_definition_that_is_not_used(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "solocron")
    kept = "the stored definition (revision 42) is kept; ours ({}) is not used"
    with node_of(world, "shop", "0 2 * * *", revision=42):
        with node_of(world, "shop", revision=41):
            assert [one for one in caplog.messages if one.startswith(f"{kept.format(41)} [job=a")]
        with node_of(world, "shop"):
            assert [one for one in caplog.messages if one.startswith(f"{kept.format('none')} [job=a")]
    with node_of(world, "shop", revision=41):
        assert [one for one in caplog.messages if one.startswith(f"{kept.format(41)}: see `solocron adopt`")]


def test_adopt_all_without_a_node_lets_the_next_one_write(world: World, store: MemoryStore) -> None:
    with node_of(world, "shop", "0 2 * * *", revision=42) as new:
        assert new.open().adopt_all() == []
    client = Scheduler(MemoryStore(world=world)).open()
    client.add("data", "a", "0 3 * * *")
    with pytest.raises(ConflictError, match="data was added as data"):
        client.adopt("data")
    assert client.adopt_all() == ["a"]
    with node_of(world, "shop", revision=41):
        assert expression(store, "a") == "0 1 * * *"


def test_the_line_of_a_function_is_written_at_the_start_and_not_at_every_change_of_the_fleet(world: World) -> None:
    """Old and new nodes of a rolling deployment would write every job anew, in turns, with each node that comes."""

    def deploy(source: str, node: str) -> Scheduler:
        scheduler, room = Scheduler(MemoryStore(world=world), node=node, enabled=True), dict[str, Any](__name__="shop")
        exec(source, room)
        scheduler.cron("0 1 * * *", name="a")(room["a"])
        return scheduler

    old, new = deploy("def a(): ...", "old"), deploy("\n\ndef a(): ...", "new")
    with old, new:
        assert new.get_job("a").place == "shop:3"
        node = core_of(old).running_node
        assert node is not None
        node.sweeper._registrar._fleet = None  # as if a node had come
        assert node.sweeper._registrar.review()
        assert new.get_job("a").place == "shop:3"
