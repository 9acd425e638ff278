"""Alarms under every fault that the simulator knows: each is written once and told at most once; a bug is noticed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from proof.simulator.options import Options, draw
from proof.simulator.world import simulate
from solocron.engine.alarms import Alarms
from solocron.model.documents.alarm_message import AlarmMessage

SEEDS = (7, 8, 1, 2, *(seed for seed in range(16) if seed not in (7, 8, 1, 2)))
"""The first ones raise alarms as the histories go today."""


def world(seed: int) -> Options:
    """A small world in which nodes die, freeze and lose messages, and look for alarms often."""
    drawn = draw(seed, nodes=4)
    return replace(
        drawn, hours=0.15, jobs=4, effects=0, lease=6.0, alarms=6.0, freeze=40.0, kill=30.0, partition=60.0,
        lost_reply=0.05, late_request=0.02,
    )  # fmt: skip


@pytest.mark.parametrize("worlds", [1, pytest.param(8, marks=pytest.mark.long)], ids=["some", "many"])
def test_nobody_tells_twice_of_one_alarm_whatever_goes_wrong(worlds: int) -> None:
    """As many worlds as it takes until alarms were put to the test, and at least so many."""
    done: Counter[str] = Counter()
    for seed in SEEDS:
        report = simulate(world(seed))
        assert report.violation is None, f"seed {seed}: {report.violation}\n" + "\n".join(report.tail)
        done += report.checked
        worlds -= 1
        if worlds <= 0 and done["alarms raised"] > 2 and done["alarms told"] > 4:
            return
    pytest.fail(f"hardly an alarm was raised: {done}")


def test_a_node_that_tells_without_having_written_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Alarms._report

    def twice(self: Alarms, written: Any, message: AlarmMessage) -> None:
        real(self, written, message)
        real(self, written, message)

    monkeypatch.setattr(Alarms, "_report", twice)
    assert any("alarms" in str(simulate(world(seed)).violation) for seed in range(3))
