"""The suites that kill mutants: simulated worlds, scripted histories, plain checks, and the campaign's own verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from proof.mutants.mutant import Killed, Mutant
from proof.simulator.campaign import Summary
from proof.simulator.options import Options, draw
from proof.simulator.world import Report, simulate

__all__ = ["Campaign", "Check", "Histories", "Worlds"]


@dataclass(frozen=True)
class Worlds:
    """Small simulated worlds with the faults that bring the bug out; a sound engine passes the very same ones."""

    faults: dict[str, float]
    seeds: int = 40
    hours: float = 0.05
    drawn: bool = field(default=True, init=False)

    @property
    def name(self) -> str:
        return "simulator: " + (" ".join(f"{key}={value:g}" for key, value in self.faults.items()) or "no faults")

    def options(self, seed: int) -> Options:
        plain = Options(seed=seed, nodes=3, jobs=5, lease=3.0, hours=self.hours, locking=bool(seed % 2))
        return plain.changed(self.faults)

    def kill(self, mutant: Mutant, trial: int = 0) -> tuple[Killed | None, int]:
        for tried in range(self.seeds):
            options = self.options(1_000 * trial + tried)
            with mutant.alive() as bites:
                report = simulate(options)
            if report.violation is None or not bites.count:
                continue
            sound = simulate(options).violation
            assert sound is None, f"the sound engine fails as well: {sound} ({options.command()})"
            return Killed(report.invariant or "", tried + 1), bites.count
        return None, 0


@dataclass(frozen=True)
class Check:
    """One test of the suites, or one written for the mutant: it passes, and with the bug it fails."""

    test: Callable[..., None]
    args: tuple[Any, ...] = ()
    by: str = ""
    drawn: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        return f"{self.test.__module__.rpartition('.')[2]}: {self.test.__name__}"

    def kill(self, mutant: Mutant, trial: int = 0) -> tuple[Killed | None, int]:
        with mutant.alive() as bites:
            try:
                self.test(*self.args)
            except (AssertionError, pytest.fail.Exception) as failed:
                killed = Killed(self.by or _invariant(failed))
            else:
                return None, bites.count
        self.test(*self.args)  # the sound code passes
        return killed, bites.count


def _invariant(failed: BaseException) -> str:
    word = str(failed).partition(":")[0]
    return word if word.startswith("I") and word[1:].isdigit() else "the test"


@dataclass(frozen=True)
class Histories:
    """Two histories of one seed must be one."""

    seed: int = 12
    name: str = field(default="determinism: one seed, one history", init=False)
    drawn: bool = field(default=False, init=False)

    def kill(self, mutant: Mutant, trial: int = 0) -> tuple[Killed | None, int]:
        def twice() -> bool:
            options = draw(self.seed, lease=3.0, hours=0.1)
            return simulate(options).digest == simulate(options).digest

        with mutant.alive() as bites:
            same = twice()
        assert twice()
        return (None if same else Killed("determinism")), bites.count


@dataclass(frozen=True)
class Campaign:
    """A campaign must notice that it is blind: nothing breaks, and still it does not pass."""

    faults: dict[str, float]
    seeds: int = 2
    drawn: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        return "campaign: what was never exercised or checked fails it"

    def run(self) -> Summary:
        summary = Summary()
        for seed in range(self.seeds):
            report: Report = simulate(Worlds(self.faults, hours=0.1).options(seed))
            summary.add(report.to_json())
        return summary

    def kill(self, mutant: Mutant, trial: int = 0) -> tuple[Killed | None, int]:
        with mutant.alive() as bites:
            summary = self.run()
        missing = [*summary.silent, *summary.unchecked]
        assert not summary.failures
        assert self.run().ok(), "the sound harness does not pass either"
        return (Killed(f"missing: {', '.join(missing[:3])}") if missing else None), bites.count
