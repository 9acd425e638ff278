"""Alarms on every store: several nodes look at the same moment, one raises, one clears; silences bind them all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from solocron import Scheduler
from solocron.model.documents.alarm import Turn
from solocron.scheduler.hooks import core_of
from tests.unit.effects.locks.conftest import url  # noqa: F401

NODES = 3


def look(scheduler: Scheduler) -> None:
    """Let the node of a scheduler look for alarms now."""
    node = core_of(scheduler).running_node
    assert node is not None
    assert node.alarms is not None
    node.alarms.look(Turn(watched_since=0, away=None))


@pytest.fixture
def nodes(url: str) -> Iterator[list[Scheduler]]:  # noqa: F811
    made = [Scheduler(url, enabled=True, node=f"n{number}", lease="10s") for number in range(NODES)]
    yield made
    for scheduler in made:
        scheduler.stop()


def test_one_of_several_nodes_raises_an_alarm_and_one_clears_it(nodes: list[Scheduler]) -> None:
    told: list[str] = []
    for scheduler in nodes:
        scheduler.alarms(every="1d", patience=0, settle=0)
        for name in ("alarm", "alarm cleared"):
            scheduler.on(name, lambda event: told.append(event.text))
        scheduler.register(lambda: None, name="work")
        scheduler.start()
    nodes[0].add("rare", "work", "0 0 1 1 *", pool="gpu")
    for scheduler in nodes:
        look(scheduler)
    assert told == ["no node: gpu: no live node serves this pool, which has rare"]
    assert [alarm.subject for alarm in nodes[1].status().alarms] == ["gpu"]
    nodes[2].add("rare", "work", "0 0 1 1 *")
    for scheduler in nodes:
        look(scheduler)
    assert len(told) == 2
    assert told[1].startswith("no node is over: gpu, after ")
    assert nodes[1].status().alarms == ()


def test_a_silence_of_one_client_binds_every_node_and_is_lifted_by_another(nodes: list[Scheduler]) -> None:
    told: list[str] = []
    for scheduler in nodes:
        scheduler.alarms(every="1d", patience=0, settle=0)
        scheduler.on("alarm", lambda event: told.append(event.kind))
        scheduler.register(lambda: None, name="work")
        scheduler.start()
    nodes[0].add("rare", "work", "0 0 1 1 *", pool="gpu")
    until = datetime.now(UTC) + timedelta(hours=1)
    made = nodes[0].silence("no node:g*", until=until, note="moving", by="ann")
    assert nodes[1].open_alarms().silences == (made,)
    for scheduler in nodes:
        look(scheduler)
    assert told == []
    assert [(one.subject, one.state) for one in nodes[2].open_alarms().alarms] == [("gpu", "silenced")]
    nodes[2].lift_silence("no node:g*")
    for scheduler in nodes:
        look(scheduler)
    assert told == ["no node"]
    (message,) = nodes[1].open_alarms().messages
    assert (message.kind, message.count, message.delivery) == ("no node", 1, "unknown")
    core_of(nodes[0]).running_node.alarms.record_deliveries()  # type: ignore[union-attr]
    assert nodes[1].open_alarms().messages[0].delivery == "done"
