"""Many worlds one after the other, summed up: what was exercised, what was checked, and what did not hold.

A campaign in which an enabled fault never struck, a policy was never used, or an invariant was never put to the test,
has proved less than it claims: it fails like one in which an invariant did not hold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proof.invariants import calendars, commits, ledger, policies, quiescence
from proof.simulator.coverage import POLICIES
from proof.simulator.options import FAULTS, STRIKES, Options
from proof.simulator.world import Report, simulate

__all__ = ["INVARIANTS", "Failure", "Summary", "shrink"]

INVARIANTS = (
    *commits.JOBS,
    *commits.SESSIONS,
    *commits.PRUNES,
    *policies.POLICIES,
    *ledger.LINES,
    *policies.LINES,
    *quiescence.QUIESCENCE,
    *quiescence.DRAINED,
)

EFFECTS = ("I17 commits", "I4 keys", "I4 locks")
"""Checks of worlds with locks, keys and steps."""

CALENDARS = (*calendars.JOBS, *calendars.CALENDARS, *calendars.QUIESCENCE)
"""Checks of worlds with business calendars."""

ALARMS = ("alarms told", "alarms compared")
"""Checks of worlds whose nodes look for alarms."""

GOING_BACK = ("i22_no_attempt_starts_twice", "i22_the_namespace_opens", "i22_every_slot_is_accounted_for")
"""Checks of worlds in which the store goes back."""

ENOUGH = 8.0
"""A strike that was to be expected so often and never came is off, not unlucky (one in three thousand)."""

MANY = 40
"""In so many worlds every policy is drawn: one that never was is not drawn any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A world in which something did not hold, and how to see it again."""

    seed: int
    violation: str
    command: str
    options: dict[str, Any]
    tail: list[str]
    shrunk: str | None = None
    """The command of a smaller world that fails alike."""

    @property
    def invariant(self) -> str:
        return self.violation.partition(":")[0]

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Summary:
    """The sum of any number of worlds."""

    seeds: int = 0
    hours: float = 0.0
    slots: int = 0
    runs: int = 0
    starts: int = 0
    steps: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    enabled: Counter[str] = field(default_factory=Counter)
    """In how many worlds each fault was on."""
    expected: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Expected times of each."""
    effects: int = 0
    """In how many worlds jobs used locks, keys and steps."""
    alarms: int = 0
    """Worlds whose nodes looked for alarms."""
    had: Counter[str] = field(default_factory=Counter)
    """In how many worlds each policy was chosen."""
    used: Counter[str] = field(default_factory=Counter)
    """Times that each made a difference."""
    statuses: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    leases: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Worlds, milliseconds of their time, and slots, by the lease of their nodes: slow worlds live longer."""
    failures: list[Failure] = field(default_factory=list)

    def add(self, report: Mapping[str, Any]) -> None:
        """One more world, as `Report.to_json` tells it."""
        options = Options(**report["options"])
        self.seeds += 1
        self.effects += bool(options.effects)
        self.alarms += bool(options.alarms)
        self.had.update(list(report["policies"]))
        self.used.update(report["policies"])
        for name in ("hours", "slots", "runs", "starts", "steps"):
            setattr(self, name, getattr(self, name) + report[name])
        lived = round(report["hours"] * 3_600_000)
        self.leases[f"{options.lease:g}"].update({"worlds": 1, "ms": lived, "slots": report["slots"]})
        self.faults.update(report["faults"])
        self.statuses.update(report["statuses"])
        self.checked.update(report["checked"])
        for fault in options.enabled():
            self.enabled[fault] += 1
            rate = getattr(options, fault)
            # A failed world ended early, and what is not a strike happens to one message in many.
            self.expected[fault] += min(options.hours, report["hours"]) * 3600 / rate if fault in STRIKES else ENOUGH
        if report["violation"] is not None:
            command = options.command()
            self.failures.append(
                Failure(
                    seed=options.seed,
                    violation=report["violation"],
                    command=command,
                    options=options.to_json(),
                    tail=list(report["tail"]),
                )
            )

    # --- the verdict ---------------------------------------------------------------------------------------------

    @property
    def duplicates(self) -> int:
        return sum(failure.invariant in ("I1", "I2", "I7") for failure in self.failures)

    @property
    def losses(self) -> int:
        return sum(failure.invariant in ("I5", "I10", "I13") for failure in self.failures)

    @property
    def stale_writes(self) -> int:
        return sum(failure.invariant == "I4" for failure in self.failures)

    @property
    def silent(self) -> list[str]:
        """Faults that were on and to be expected, and never happened."""
        return [name for name in FAULTS if self.expected[name] >= ENOUGH and not self.faults[name]]

    @property
    def unused(self) -> list[str]:
        """Policies that many worlds had and that never made a difference, or that no world of many has had."""
        never = [name for name in POLICIES if not self.used[name]]
        return [name for name in never if self.had[name] >= ENOUGH or self.seeds >= MANY]

    @property
    def missing(self) -> list[str]:
        """Everything that would have to be there and was not."""
        return [*self.silent, *self.unused, *self.unchecked]

    @property
    def unchecked(self) -> list[str]:
        """Invariants that nothing was held against."""
        return [name for name in self.invariants if not self.checked[name]]

    @property
    def invariants(self) -> tuple[str, ...]:
        """Those that these worlds can put to the test."""
        more = (EFFECTS if self.effects else ()) + (CALENDARS if self.enabled["calendars"] else ())
        more += GOING_BACK if self.enabled["failover"] or self.enabled["restore"] else ()
        return INVARIANTS + more + (ALARMS if self.alarms >= ENOUGH else ())

    def ok(self, *, alone: bool = False) -> bool:
        """Whether everything held and everything was there; of one world `alone` only the former is asked."""
        return not self.failures and (alone or not self.missing)

    def to_json(self) -> dict[str, Any]:
        return {
            "seeds": self.seeds,
            "hours": round(self.hours, 3),
            "slots": self.slots,
            "runs": self.runs,
            "starts": self.starts,
            "steps": self.steps,
            "duplicates": self.duplicates,
            "losses": self.losses,
            "stale_writes": self.stale_writes,
            "violations": len(self.failures),
            "seconds": round(self.seconds, 1),
            "faults": {
                name: {
                    "worlds": self.enabled[name],
                    "times": self.faults[name],
                    "expected": round(self.expected[name], 1),
                }
                for name in FAULTS
            },
            "leases": {lease: dict(self.leases[lease]) for lease in sorted(self.leases, key=float)},
            "statuses": dict(sorted(self.statuses.items())),
            "effects": self.effects,
            "alarms": self.alarms,
            "policies": {name: {"worlds": self.had[name], "times": self.used[name]} for name in POLICIES},
            "invariants": {name: self.checked[name] for name in dict.fromkeys((*self.invariants, *ALARMS))},
            "silent": self.silent,
            "unused": self.unused,
            "unchecked": self.unchecked,
            "failures": [failure.to_json() for failure in self.failures],
        }

    def merge(self, told: Mapping[str, Any]) -> None:
        """Add another campaign, as its `to_json` tells it."""
        for name in ("seeds", "hours", "slots", "runs", "starts", "steps", "seconds", "effects", "alarms"):
            setattr(self, name, getattr(self, name) + told[name])
        for name, fault in told["faults"].items():
            self.enabled[name] += fault["worlds"]
            self.faults[name] += fault["times"]
            self.expected[name] += fault["expected"]
        for lease, lived in told["leases"].items():
            self.leases[lease].update(lived)
        for name, policy in told["policies"].items():
            self.had[name] += policy["worlds"]
            self.used[name] += policy["times"]
        self.statuses.update(told["statuses"])
        self.checked.update(told["invariants"])
        self.failures += [Failure(**failure) for failure in told["failures"]]


def shrink(options: Options, invariant: str, run: Callable[[Options], Report] = simulate) -> Options:
    """The smallest world found in which the same invariant fails: fewer faults, less of everything, sooner."""

    def fails(smaller: Options) -> Report | None:
        report = run(smaller)
        return report if report.invariant == invariant else None

    for fault in options.enabled():
        if fails(smaller := options.changed({fault: 0})):
            options = smaller
    for name, least in (("jobs", 1), ("nodes", 2)):
        while (fewer := getattr(options, name) // 2) >= least and fails(smaller := options.changed({name: fewer})):
            options = smaller
    report = fails(options)
    for part in _sooner(options, report):
        if fails(smaller := replace(options, hours=part)):
            return smaller
    return options


def _sooner(options: Options, report: Report | None) -> Iterable[float]:
    """Shorter times under fire, from a little more than it took on."""
    if report is None:
        return ()
    took = min(report.hours, options.hours)
    return [hours for share in (0.25, 0.5, 1.02) if (hours := round(took * share, 4)) < options.hours and hours > 0]
