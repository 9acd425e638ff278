"""A sample of `make mutants` in every run of the tests: each bug that one test kills, and three that worlds kill.

`make mutants` judges them all, in three trials where worlds are drawn.
"""

from __future__ import annotations

import pytest

from proof.mutants.catalogue import MUTANTS, OF_POLICIES, WAITING
from proof.mutants.mutant import Bites, Killed, Mutant
from proof.mutants.suites import Check

OF_WORLDS = ("X-03", "X-13", "X-26")
"""Those that die in simulated worlds, by one invariant each and soon."""
CHOSEN = [mutant for mutant in (*MUTANTS, *OF_POLICIES) if isinstance(mutant.suite, Check) or mutant.name in OF_WORLDS]


def test_the_list_is_complete() -> None:
    """Every number of the list is a mutant, or waits by name for a feature; later ones are there once."""
    names = sorted([mutant.name for mutant in MUTANTS] + [waiting.name for waiting in WAITING])
    numbered = [name for name in names if name.startswith("X-")]
    assert numbered[:61] == [f"X-{number:02}" for number in range(1, 62)]
    assert len(set(names)) == len(names)
    assert [mutant.name for mutant in OF_POLICIES] == [f"P-{number:02}" for number in range(1, len(OF_POLICIES) + 1)]


@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda mutant: mutant.name)
def test_the_bug_is_killed(mutant: Mutant) -> None:
    verdict = mutant.judge()
    assert verdict.killed is not None, (
        f"{mutant.name} ({mutant.what}) survived: a missing invariant, or a missing fault"
    )
    assert verdict.bites > 0, f"{mutant.name} was never executed in the run that killed it"


def test_a_bug_that_is_never_executed_does_not_count_as_killed() -> None:
    class Always:
        name = "fails whatever happens"
        drawn = False

        def kill(self, mutant: Mutant, trial: int = 0) -> tuple[Killed | None, int]:
            with mutant.alive() as bites:
                return Killed("nothing"), bites.count

    def nothing(bites: Bites) -> list[tuple[object, str, object]]:
        return []

    assert not Mutant("X-00", "no bug", "", nothing, Always()).judge().ok


def test_a_bug_that_lives_through_one_trial_is_not_killed() -> None:
    class Sometimes:
        name = "fails with some seeds only"
        drawn = True

        def kill(self, mutant: Mutant, trial: int = 0) -> tuple[Killed | None, int]:
            return (Killed("I1", seeds=trial + 2) if trial < 3 else None), 1

    def nothing(bites: Bites) -> list[tuple[object, str, object]]:
        return []

    mutant = Mutant("X-00", "no bug", "", nothing, Sometimes())
    assert mutant.judge(trials=3).killed == Killed("I1", seeds=3)
    assert mutant.judge(trials=4).killed is None
