"""Open pages cost a small share of a core: what goes as it should waits for that, and what went wrong does not."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from solocron.service.asgi import AsgiService
from solocron.service.board import pace
from solocron.service.board.pace import TellingPace
from solocron.service.roles import Role
from tests.unit.service.kit import World
from tests.unit.service.test_live import Reader, running
from tests.unit.service.test_watcher import Time, Watched

PART = {"solocron_part": "main", "accept": "text/html", "accept_encoding": "gzip"}


def test_what_may_wait_is_told_when_the_last_answers_are_paid() -> None:
    time = Time()
    made = TellingPace(clock=time)
    assert made.may_tell(urgent=False), "nothing was asked for yet"
    made.spent(0.15)
    told = []
    for _ in range(4):
        time.now += 2
        told.append(made.may_tell(urgent=False))
    assert told == [False, False, True, True]


def test_what_is_urgent_does_not_wait_unless_it_never_ends() -> None:
    time = Time()
    made = TellingPace(clock=time)
    made.spent(0.9)
    assert made.may_tell(urgent=True)
    assert not made.may_tell(urgent=False)
    made.spent(0.9)
    assert not made.may_tell(urgent=True)
    time.now += 9.9
    assert not made.may_tell(urgent=False)
    time.now += 0.2
    assert made.may_tell(urgent=False), "ten seconds at the latest"


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.mark.parametrize(("job", "urgent"), [("invoices", False), ("broken", True)])
def test_a_failure_is_urgent_and_a_success_is_not(watched: Watched, job: str, urgent: bool) -> None:
    watched.looks(12)
    watched.news()
    watched.shop.ran(job)
    watched.looks()
    changes, _ = watched.watcher.changes.since(watched.position)
    assert changes is not None
    assert [one.urgent for one in changes] == [urgent]


def test_a_pause_is_urgent_though_runs_succeed_beside_it(watched: Watched) -> None:
    watched.looks(12)
    watched.news()
    watched.shop.ran("invoices")
    watched.shop.scheduler.pause("report")
    watched.looks(3)
    changes, _ = watched.watcher.changes.since(watched.position)
    assert changes is not None
    assert any(one.urgent and "job:report" in one.topics for one in changes)


def test_a_stream_tells_what_waited_together_with_what_is_urgent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_LATEST", 3_600.0)

    async def story(world: World, app: AsgiService) -> None:
        reader = Reader(app)
        await reader.until(lambda: reader.names == ["hello"])
        for _ in range(12):  # whatever the first passes have to tell
            await asyncio.to_thread(world.service.watcher.look, at_once=True)
        world.service.pace.spent(0.9)
        first = await asyncio.to_thread(world.shop.ran, "invoices")
        await passed(world, app)
        heard = [run["run"] for _, data, _ in reader.events for run in data.get("runs", ())]
        assert first not in heard
        second = await asyncio.to_thread(world.shop.ran, "broken")
        app._watch.hasten()
        await reader.until(lambda: second in reader.text)
        told = [run["run"] for run in reader.events[-1][1]["runs"]]
        assert {first, second} <= set(told)
        await reader.leave()

    running(story)


async def passed(world: World, app: AsgiService) -> None:
    """Let the loop make a pass, and wait until it has told or kept to itself what is new."""
    known, told, over = world.service.watcher.changes.last, app._watch._tell, asyncio.Event()

    def tell() -> None:
        told()
        if world.service.watcher.changes.last != known:
            over.set()

    app._watch._tell = tell  # type: ignore[method-assign]
    app._watch.hasten()
    async with asyncio.timeout(20):
        await over.wait()


def test_the_answer_to_an_open_page_is_noted_and_that_to_a_new_one_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[float] = []
    monkeypatch.setattr(world.service.pace, "spent", noted.append)
    world.ask("/jobs", role=Role.READ, accept="text/html")
    world.ask("/api/v1/jobs", role=Role.READ)
    assert noted == []
    world.ask("/jobs", role=Role.READ, **PART)
    assert len(noted) == 1
    assert 0 < noted[0] < 60


def test_a_part_is_compressed_once_for_all_who_get_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    compress, made = gzip.compress, list[int]()

    def counted(body: bytes, *args: Any, **more: Any) -> bytes:
        made.append(len(body))
        return compress(body, *args, **more)

    monkeypatch.setattr("solocron.service.shared_parts._FRESH", 600.0)  # however slow this machine is
    world.ask("/nodes", role=Role.READ, **PART)  # the count of a day is a change by itself
    monkeypatch.setattr(gzip, "compress", counted)
    first = world.ask("/runs", role=Role.READ, **PART).response
    second = world.ask("/runs", role=Role.READ, **PART).response
    assert len(made) == 1
    assert first.body == second.body
    assert b"<main" in gzip.decompress(first.body)
    plain = world.ask("/runs", role=Role.READ, **(PART | {"accept_encoding": "identity"})).response
    assert plain.body == gzip.decompress(first.body)
