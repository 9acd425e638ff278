"""Options of a simulated world: which faults are on and how often is itself drawn from the seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from typing import Any

from solocron.errors import InvalidError
from solocron.testing.simulation.conditions import MESSAGES, Conditions
from solocron.testing.simulation.kernel import EPOCH

__all__ = ["CLOCK_CHANGES", "FAULTS", "GOING_BACK", "STRIKES", "WEAK_STORES", "Options", "draw"]

STRIKES = (
    "freeze",
    "suspend",
    "kill",
    "failpoint",
    "drain",
    "partition",
    "store_restart",
    "clock_step",
    "deploy",
    "request",
    "tick",
    "run_now",
    "calendars",
    "pauses",
    "broker",
    "forget",
    "failover",
    "restore",
)
"""Faults that strike now and then: the option is the mean number of seconds between two."""

FAULTS = (*STRIKES, *MESSAGES, "clock_rate", "clock_skew", "poison")

GOING_BACK = ("failover", "restore")
"""Faults that make the store go back: a standby that lags is promoted, or a backup is put in its place."""

WEAK_STORES = ("forget", "stale_reads")
"""Faults that no tier-A store has: forget commits in a crash, answer from a replica that is behind. Never drawn, only
asked for, to show that the checker sees what it breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Conditions):
    """The set-up of one world; a seed and its options replay it exactly. 0 switches a fault off."""

    hours: float = 1.0
    nodes: int = 5
    jobs: int = 8
    start: float = EPOCH
    """The beginning of the world, in seconds since 1970."""
    keep: float = 2_592_000.0
    """Seconds for which history is kept."""
    revisions: bool = False
    """Whether deploys carry a revision number."""
    freeze: float = 0.0
    suspend: float = 0.0
    kill: float = 0.0
    failpoint: float = 0.0
    drain: float = 0.0
    partition: float = 0.0
    store_restart: float = 0.0
    clock_step: float = 0.0
    deploy: float = 0.0
    request: float = 0.0
    """Not a fault by itself: people and programs trigger, pause, cancel, add and remove."""
    tick: float = 0.0
    """Not a fault by itself: an external trigger beside the nodes."""
    run_now: float = 0.0
    """Not a fault by itself: a program that runs a job on its own thread, and may be killed meanwhile."""
    calendars: float = 0.0
    """Not a fault by itself: jobs under business calendars, and changes of those."""
    pauses: float = 0.0
    """Not a fault by itself: an operator pauses many jobs at once, and lifts it."""
    broker: float = 0.0
    """Jobs behind a queue that errs, and so many seconds between two faults of its workers."""
    forget: float = 0.0
    failover: float = 0.0
    """Another server answers, and the last commits are lost."""
    restore: float = 0.0
    """The same server answers, with what it held some time ago."""
    clock_rate: float = 0.0
    """Largest error of the rate of a node's clock."""
    clock_skew: float = 0.0
    """Largest error of a node's wall clock, in seconds."""
    poison: float = 0.0
    """Number of poisoned jobs among the others."""
    effects: int = 0
    """Number of jobs that use locks, keys and steps."""
    alarms: float = 0.0
    """Seconds between two looks for alarms; 0: no node looks."""

    @property
    def goes_back(self) -> bool:
        return bool(self.failover or self.restore)

    def command(self) -> str:
        """Return the command that shows this very world again."""
        drawn = draw(self.seed, nodes=self.nodes)
        words = [f"python -m proof simulate --seed {self.seed} --nodes {self.nodes} --set hours={self.hours!r}"]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("seed", "nodes", "hours") and value != getattr(drawn, field.name):
                words.append(f"--set {field.name}={int(value) if isinstance(value, bool) else value!r}")
        return " ".join(words)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def enabled(self) -> list[str]:
        return [name for name in FAULTS if getattr(self, name)]

    def changed(self, settings: Mapping[str, str | float]) -> Options:
        """Return the same world with some options set by name."""
        known = {field.name: field.type for field in fields(self)}
        values: dict[str, Any] = {}
        for name, text in settings.items():
            if name not in known:
                raise InvalidError(f"there is no option {name!r}; known are {', '.join(sorted(known))}.")
            try:
                number = float(text)
            except ValueError:
                raise InvalidError(f"{name}={text!r} is not a number; 0 switches a fault off.") from None
            if not 0 <= number < inf:
                raise InvalidError(f"{name}={text} is negative or no number at all; 0 switches a fault off.")
            values[name] = number if known[name] == "float" else number != 0 if known[name] == "bool" else int(number)
        return replace(self, **values)


SLOW = (300.0, 900.0, 1800.0, 1800.0)
"""Leases of worlds that last for days."""

CLOCK_CHANGES = (1_774_746_000.0, 1_792_890_000.0)
"""The last Sundays of March and October 2026, 01:00 UTC: all of Europe changes its clocks."""

MONDAY = 1_781_474_400.0
"""The first instant of a week in central Europe, in June 2026."""


def draw(seed: int, *, nodes: int = 5, hours: float = 1.0, lease: float | None = None) -> Options:
    """Return the options of a seed: a swarm, in which each world has some faults only, and those often or rarely.

    Everything that takes time is counted in leases. So are the `hours`, which are those of a world with the default
    lease: one with a shorter or longer lease lives through as many of them. More than a third of the worlds is slow:
    days pass, the clocks change, and schedules go by the hour and the day. A few are dense: many jobs share the nodes.
    With `lease` given, all of them go at the pace of that one.
    """
    dice = random.Random(f"options {seed}")
    drawn = dice.choice((3.0, 6.0, 15.0, 15.0, 30.0, 60.0))
    pace = random.Random(f"pace {seed}")
    more = random.Random(f"more {seed}")
    kind = pace.choices(("plain", "slow", "dense"), (54, 38, 8))[0]
    start = EPOCH
    if lease is None:
        lease = drawn if kind != "slow" else pace.choice(SLOW)
    if lease in SLOW:
        start = pace.choice(CLOCK_CHANGES) - pace.uniform(0, 48) * 3600

    calendars = more.choice((0.0, 0.0, 6.0, 24.0)) * lease
    if calendars and lease not in SLOW:
        start = MONDAY - more.uniform(0.05, 0.95) * hours * lease / 15 * 3600

    def often(mean: float) -> float:
        return dice.choice((0.0, 0.0, mean, mean * 4)) * lease

    def chance(most: float) -> float:
        return dice.choice((0.0, 0.0, most / 10, most))

    options = Options(
        seed=seed,
        hours=hours * lease / 15,
        nodes=nodes,
        jobs=dice.randint(3, 10) if kind != "dense" else dice.randint(3, 10) * 4,
        lease=lease,
        locking=dice.random() < 0.5,
        max_running=dice.choice((2, 8, 32)),
        delay=dice.choice((0.0005, 0.005, 0.05)),
        start=start,
        keep=dice.choice((40.0 * lease, 40.0 * lease, 2_592_000.0)),
        revisions=dice.random() < 0.3,
        freeze=often(8),
        suspend=often(20),
        kill=often(12),
        failpoint=often(15),
        drain=often(20),
        partition=often(15),
        store_restart=often(40),
        clock_step=often(60),
        deploy=often(60),
        request=often(2),
        tick=often(10),
        lost_request=chance(0.05),
        lost_reply=chance(0.05),
        late_request=chance(0.02),
        repeated_request=chance(0.05),
        slow=chance(0.2),
        serialization=chance(0.1),
        clock_rate=dice.choice((0.0, 0.0, 0.0005, 0.02)),
        clock_skew=dice.choice((0.0, 0.0, 5.0, 3600.0)),
        poison=dice.choice((0.0, 0.0, 1.0, 3.0)),
        effects=dice.choice((0, 0, 1, 2)),
        calendars=calendars,
        run_now=random.Random(f"run now {seed}").choice((0.0, 0.0, 4.0, 16.0)) * lease,
        alarms=more.choice((0.0, 0.0, 1.0, 4.0)) * lease,
    )
    if not options.alarms:  # a job that is paused with others raises none
        options = replace(options, pauses=random.Random(f"pauses {seed}").choice((0.0, 0.0, 6.0, 24.0)) * lease)
    broker = random.Random(f"broker {seed}").choice((0.0, 0.0, 0.0, 8.0, 24.0)) * lease
    options = replace(options, broker=broker)
    if seed % 10 in _KEYS and lease not in SLOW:
        options = replace(options, keys=True)
    if seed % 10 in _CHAIN and lease not in SLOW:
        options = replace(options, chain=True, jobs=min(options.jobs, 10), delay=min(options.delay, lease / 600))
    fault = _GOES_BACK.get(seed % 10)
    return options if fault is None or lease in SLOW else _going_back(options, fault)


_GOES_BACK = {3: "failover", 7: "restore"}
"""In which worlds of ten the store goes back, and how."""


_KEYS = (5,)
"""In which worlds of ten the store is a map of keys."""
_CHAIN = (9,)
"""In which worlds of ten it is a commit chain. Its commits are one sequence: in dense worlds, or with a round trip that
is a fortieth of the lease, five nodes ask for more of them than there can be, and catch up with nothing."""


def _going_back(options: Options, fault: str) -> Options:
    """Return the same world with a store that goes back, and without changes of what its slots are."""
    plain = replace(options, deploy=0.0, request=0.0, calendars=0.0, alarms=0.0, keep=2_592_000.0)
    return plain.changed({fault: 10 * options.lease})
