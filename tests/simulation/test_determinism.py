"""One seed, one history: twice in one process, and in processes that hash differently."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proof.simulator.options import Options, draw
from proof.simulator.world import Report, simulate
from solocron.testing.simulation.seams import SimRng

ROOT = Path(__file__).parents[2]
SEEDS = (3, 25, 27, 24)
"""Between them every fault that is ever drawn is on."""


def _all_faults(seed: int, hours: float = 0.01) -> Options:
    return draw(seed, lease=3.0, hours=hours)


@pytest.fixture(scope="module")
def histories() -> dict[int, Report]:
    """One history of each seed."""
    return {seed: simulate(_all_faults(seed)) for seed in SEEDS}


def test_between_them_the_seeds_have_every_fault() -> None:
    on = {fault for seed in SEEDS for fault in draw(seed).enabled()}
    assert on == {fault for seed in range(200) for fault in draw(seed).enabled()}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_history_twice(histories: dict[int, Report], seed: int) -> None:
    first, second = histories[seed], simulate(_all_faults(seed))
    assert first.violation is None
    assert (first.digest, first.steps, first.faults) == (second.digest, second.steps, second.faults)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_so_does_a_longer_one(seed: int) -> None:
    first, second = (simulate(_all_faults(seed, hours=0.1)) for _ in range(2))
    assert first.violation is None
    assert (first.digest, first.steps, first.faults) == (second.digest, second.steps, second.faults)


def test_a_slow_world_over_a_change_of_the_clocks_has_one_history_too() -> None:
    slow = draw(2, lease=300.0, hours=0.005)
    assert slow.lease > 60
    first, second = simulate(slow), simulate(slow)
    assert first.violation is None
    assert (first.digest, first.steps) == (second.digest, second.steps)


def test_another_seed_gives_another_history(histories: dict[int, Report]) -> None:
    assert len({report.digest for report in histories.values()}) == len(SEEDS)


def test_the_history_does_not_depend_on_the_hash_seed() -> None:
    told = [_in_a_process(hash_seed) for hash_seed in ("0", "4242")]
    assert told[0] == told[1]
    assert len(told[0]) == 2


def _in_a_process(hash_seed: str) -> list[tuple[str, int]]:
    command = [sys.executable, "-m", "proof", "simulate", "--lines", "--from", "11", "--seeds", "2"]
    seen = subprocess.run(
        [*command, "--nodes", "3", "--set", "lease=3", "--set", "hours=0.005"],
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    worlds: list[dict[str, Any]] = [json.loads(line) for line in seen.stdout.splitlines()]
    return [(world["digest"], world["steps"]) for world in worlds]


def test_x41_dice_of_their_own_do_not_go_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jitter that is not drawn from the seed gives another history each time."""
    own = random.Random()
    monkeypatch.setattr(SimRng, "uniform", lambda self, low, high: own.uniform(low, high))
    first, second = (simulate(_all_faults(12, hours=0.003)).digest for _ in range(2))
    assert first != second
