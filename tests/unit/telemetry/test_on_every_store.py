"""Alarms on every store: several nodes look at the same moment, one raises and one clears."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solocron import Scheduler
from solocron.scheduler.hooks import core_of
from tests.unit.effects.locks.conftest import url  # noqa: F401

NODES = 3


def look(scheduler: Scheduler) -> None:
    """Let the node of a scheduler look for alarms now."""
    node = core_of(scheduler).running_node
    assert node is not None
    assert node.alarms is not None
    node.alarms.look()


@pytest.fixture
def nodes(url: str) -> Iterator[list[Scheduler]]:  # noqa: F811
    made = [Scheduler(url, enabled=True, node=f"n{number}", lease="10s") for number in range(NODES)]
    yield made
    for scheduler in made:
        scheduler.stop()


def test_one_of_several_nodes_raises_an_alarm_and_one_clears_it(nodes: list[Scheduler]) -> None:
    told: list[str] = []
    for scheduler in nodes:
        scheduler.alarms(every="1d", patience=0)
        for name in ("alarm", "alarm cleared"):
            scheduler.on(name, lambda event: told.append(f"{event.name} {event.kind}:{event.subject}"))
        scheduler.register(lambda: None, name="work")
        scheduler.start()
    nodes[0].add("rare", "work", "0 0 1 1 *", pool="gpu")
    for scheduler in nodes:
        look(scheduler)
    assert told.count("alarm no node:gpu") == 1
    assert [alarm.subject for alarm in nodes[1].status().alarms] == ["gpu"]
    nodes[2].add("rare", "work", "0 0 1 1 *")
    for scheduler in nodes:
        look(scheduler)
    assert told == ["alarm no node:gpu", "alarm cleared no node:gpu"]
    assert nodes[1].status().alarms == ()
