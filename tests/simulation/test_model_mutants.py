"""The driver and checkers that the sound machine passes fail for each injected bug, by the invariant named for it."""

from __future__ import annotations

import random

import pytest

from tests.simulation.model_driver import play
from tests.simulation.model_mutants import HARNESS, MUTANTS, Mutant
from tests.simulation.model_world import CHECKERS, Broken, check

SEEDS, LENGTH = 40, 300


def _fails(seed: int, name: str) -> bool:
    """Whether a history breaks an invariant; a broken machine may never come to rest, so only I5 waits for that."""
    dice = random.Random(seed)
    world = play(seed, [dice.getrandbits(32) for _ in range(LENGTH)], heal=name == "i5").world
    try:
        check(world, name)
    except Broken:
        return True
    return False


@pytest.mark.parametrize(
    ("mutant", "name"),
    [(mutant, name) for mutant in (*MUTANTS, *HARNESS) for name in mutant.killed_by],
    ids=lambda value: value.name if isinstance(value, Mutant) else value,
)
def test_the_bug_is_caught(mutant: Mutant, name: str) -> None:
    for seed in range(SEEDS):
        with mutant.alive() as bites:
            caught = _fails(seed, name)
        if caught:
            assert bites.count > 0, f"{name} failed, but {mutant.name} was never executed"
            assert not _fails(seed, name), "the sound machine fails as well"
            return
    pytest.fail(f"{mutant.name} ({mutant.what}) survived {SEEDS} histories")


def test_every_checker_has_caught_something() -> None:
    assert {name for mutant in (*MUTANTS, *HARNESS) for name in mutant.killed_by} == set(CHECKERS)
