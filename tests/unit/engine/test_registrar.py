"""What a node proposes when it starts: as little as it can, and all that it must."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solocron import Scheduler
from solocron.engine import registrar
from solocron.model.change import Kind
from solocron.model.job import Job
from solocron.stores.contract import Named
from solocron.stores.memory import MemoryStore

Start = Callable[..., list[str]]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def start(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts and stops a node; answers the names of the jobs that were proposed one by one."""
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
    monkeypatch.setattr("solocron.scheduler.zone_data_version", lambda: "9999a")
    assert start(revision=2) == ["a", "b"]
    assert start(revision=2) == []
