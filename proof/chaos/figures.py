"""What came of a scenario: figures for programs, a table for people, and what is wrong, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from solocron.testing.fleet import FleetVerdict

__all__ = ["HEAD", "HEAD_OF_RETURN", "Figures", "percentile", "table"]

_FEW = 8
"""Takeovers that a page tells one by one."""


@dataclass(slots=True, kw_only=True)
class Figures:
    """One scenario on one store."""

    store: str
    scenario: str
    tier: str = ""
    version: str = ""
    made: str = ""
    """When, of which code, under which load."""
    seconds: float = 0.0
    """Under fire."""
    slots: int = 0
    duplicates: int = 0
    losses: int = 0
    stale_accepted: int = 0
    stale_refused: int = 0
    early: int = 0
    unrecorded: int = 0
    kills: int = 0
    freezes: int = 0
    cuts: int = 0
    restarts: int = 0
    takeovers: list[float] = field(default_factory=list)
    """Seconds from the last renewal of a node that was killed in peace to the next start of a run that it had."""
    healed_s: float = 0.0
    """Seconds after the last fault until nothing waited any more."""
    calls_per_run: float | None = None
    """Calls that the server counted, idle work of all nodes included; None where the store counts none."""
    lease: float = 3.0
    """Of the nodes, in seconds."""
    margin: float = 1.0
    """Seconds beyond the lease within which a takeover is promised."""
    attempts_twice_once: int = 0
    """Attempts that started twice although the store went back: of jobs without retries (I22)."""
    attempts_twice_again: int = 0
    """The same, of jobs with retries (I22)."""
    slots_twice_once: int = 0
    slots_twice_again: int = 0
    """Slots with more than one start; with retries, the second may be an honest further attempt."""
    excused: int = 0
    """Attempts twice of nodes that were killed, of jobs with retries: as after a crash."""
    fences_twice: int = 0
    """Fences that two attempts were granted (I3)."""
    misrecorded: int = 0
    """Bodies that ended well and are on record as something else."""
    returns: list[float] = field(default_factory=list)
    """Seconds from each return of the store to the first start."""
    commits_lost: list[int] = field(default_factory=list)
    """Acknowledged commits that each failover has lost, as a client of its own has counted."""
    seconds_lost: list[float] = field(default_factory=list)
    said: int = 0
    """Lines in the nodes' logs that say that the store went back."""
    struck: dict[str, int] = field(default_factory=dict)
    """How often each enabled fault struck."""
    notes: list[str] = field(default_factory=list)
    """What was said and belongs in the report."""
    faults: list[str] = field(default_factory=list)
    """What is not as promised, a sentence each."""

    def note_strikes(self, struck: dict[str, int]) -> None:
        """A fault that was to strike and did not has proved nothing."""
        self.struck = struck
        self.faults += [f"{number} never struck" for number, times in struck.items() if not times]

    def add(self, verdict: FleetVerdict, *, losses: bool = True) -> None:
        """Add what a judge counted. Every judge of a fleet sees every line of its ledger, and slots of its own."""
        self.slots += verdict.slots
        self.duplicates = max(self.duplicates, verdict.twice)
        self.stale_refused = max(self.stale_refused, verdict.stale_refused)
        self.stale_accepted = max(self.stale_accepted, verdict.stale_accepted)
        self.early = max(self.early, verdict.early)
        self.losses += verdict.lost if losses else 0
        self.unrecorded += verdict.unrecorded

    @property
    def clean(self) -> bool:
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Figures:
        """Read a result, or what a page tells of one."""
        if isinstance(told["takeovers"], dict):
            told = {**told, "takeovers": _spread(**told["takeovers"])}
        return cls(**told)

    def summary(self) -> list[float] | dict[str, float]:
        """Return the takeovers for a page: a few as they were, in their order; of many what the table shows."""
        if len(self.takeovers) <= _FEW:
            return [round(seconds, 3) for seconds in self.takeovers]
        shown = {f"p{of}": round(percentile(self.takeovers, of), 3) for of in (50, 99)}
        return {"count": len(self.takeovers), **shown, "max": round(max(self.takeovers), 3)}

    def row(self) -> tuple[str, ...]:
        took = " / ".join(f"{percentile(self.takeovers, of):.2f}" for of in (50, 99, 100)) if self.takeovers else "-"
        return (
            self.store,
            f"{self.slots:,}",
            *(f"{number:,}" for number in (self.kills, self.freezes, self.cuts, self.restarts)),
            *(str(number) for number in (self.duplicates, self.losses, self.stale_accepted)),
            f"{self.stale_refused:,}",
            f"{took} (bound {self.lease + self.margin:g})" if self.takeovers else "-",
            f"{self.healed_s:.1f}",
            "-" if self.calls_per_run is None else f"{self.calls_per_run:.2f}",
        )

    def row_of_return(self) -> tuple[str, ...]:
        """The row of a scenario in which the store went back."""
        return (
            f"{self.scenario} {self.store}",
            f"{self.slots:,}",
            str(len(self.seconds_lost)),
            " ".join(f"{seconds:g}" for seconds in self.seconds_lost) or "-",
            *(str(number) for number in (self.attempts_twice_once, self.attempts_twice_again)),
            *(str(number) for number in (self.slots_twice_once, self.slots_twice_again, self.fences_twice)),
            *(str(number) for number in (self.losses, self.unrecorded, self.misrecorded)),
            " ".join(f"{seconds:.1f}" for seconds in self.returns) or "-",
            str(self.said),
        )


HEAD_OF_RETURN = (
    *("scenario", "slots", "times", "lost, s", "attempts twice, retries=0", "attempts twice, retries=3"),
    *("slots twice, retries=0", "slots twice, retries=3", "fences twice", "lost", "unrecorded", "recorded otherwise"),
    *("first start, s", "log lines"),
)
HEAD = (
    *("store", "slots", "kills", "freezes", "cuts", "restarts", "twice", "lost", "stale accepted", "stale refused"),
    *("takeover p50 / p99 / max, s", "healed in, s", "calls per run"),
)


def _spread(count: int, p50: float, p99: float, max: float) -> list[float]:
    """Return values of which the same is told."""
    half, most = ceil(count * 50 / 100), ceil(count * 99 / 100)
    return [p50] * half + [p99] * (most - half) + [max] * (count - most)


def percentile(values: Sequence[float], of: float) -> float:
    """The least value that this share of a hundred does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * of / 100) - 1)]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table that both people and Markdown read."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
