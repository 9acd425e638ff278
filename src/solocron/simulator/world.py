"""One simulated world: nodes that run the shipped engine, a store, a network, a nemesis, and someone who checks."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from solocron.jobs.decorators import cron, every
from solocron.model.policy import Backoff, allow, catch_up_all
from solocron.scheduler import Scheduler
from solocron.simulator.checker import Checker
from solocron.simulator.database import Commit
from solocron.simulator.faults import Options
from solocron.simulator.fleet import SimFleet
from solocron.simulator.kernel import Process
from solocron.simulator.ledger import Ledger, make_body

__all__ = ["Report", "World", "simulate"]


@dataclass(slots=True, kw_only=True)
class Report:
    """What one world was and what happened in it."""

    options: Options
    slots: int = 0
    runs: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    digest: str = ""
    violation: str | None = None
    tail: list[str] = field(default_factory=list)


class World(SimFleet):
    """Everything of one seed: a fleet, jobs, bodies, faults, and the checker."""

    def __init__(self, options: Options, *, disabled: frozenset[str] = frozenset()) -> None:
        super().__init__(options, declare=self._declare_jobs)
        self.dice = self.kernel.dice
        self.faults = self.network.seen
        self.ledger = Ledger()
        self.checker = Checker(self, disabled=disabled)
        self.database.on_commit.append(self.checker.commit)
        # A body would swallow what the checker raises under it.
        self.ledger.on_line.append(lambda line: self.guarded(lambda: self.checker.line(line)))
        self.calm = False
        self.version = 0
        self.plan = [self._draw_job(number) for number in range(options.jobs)]

    def start(self, number: int) -> None:
        """A node with clocks of its own."""
        rate, skew = self.options.clock_rate, self.options.clock_skew
        self.faults["clock_rate"] += bool(rate)
        self.faults["clock_skew"] += bool(skew)
        self.start_node(number, rate=1.0 + self.dice.uniform(-rate, rate), skew=self.dice.uniform(-skew, skew))

    # --- jobs ----------------------------------------------------------------------------------------------------

    def _draw_job(self, number: int) -> Callable[[Scheduler, Process], None]:
        dice, lease = self.dice, self.options.lease
        period = dice.choice((lease / 3, lease, lease * 2, lease * 4, 60.0))
        stoppable = dice.random() < 0.5
        longest = dice.choice((0.5, lease, 3 * lease))
        options: dict[str, Any] = {
            "name": f"job-{number}",
            "retries": dice.choice((0, 1, 5)),
            "on_crash": dice.choice(("retry", "retry", "fail")),
            "overlap": dice.choice(("skip", "queue", "queue-all", "replace", allow(3))),
            "catch_up": dice.choice(("skip", "latest", "all", catch_up_all(limit=5, within=20 * lease))),
            "timeout": dice.choice((None, lease)),
            "start_within": dice.choice((None, None, 4 * lease)),
            "on_lost": "cancel" if stoppable else dice.choice(("cancel", "finish")),
            "on_stuck": dice.choice(("hold", "abandon")),
            "backoff": Backoff(first="1s", cap=lease),
        }
        minutely = dice.random() < 0.2

        def declare(scheduler: Scheduler, process: Process) -> None:
            body = make_body(self, process, longest=longest, stoppable=stoppable)
            body.__qualname__ = options["name"]
            changed = self.version % 2 and number == 0
            when = every(period * 2 if changed else period, **options)
            if minutely:
                when = cron("*/2 * * * *" if changed else "* * * * *", tz="Europe/Paris", **options)
            scheduler.discover(when(body))

        return declare

    def _declare_jobs(self, scheduler: Scheduler, process: Process) -> None:
        for declare in self.plan:
            declare(scheduler, process)

    # --- the nemesis ---------------------------------------------------------------------------------------------

    def unleash(self, until: float) -> None:
        for fault in ("freeze", "kill", "drain", "partition", "store_restart", "clock_step", "deploy"):
            mean = getattr(self.options, fault)
            if mean:
                self._again(fault, mean, until)

    def _again(self, fault: str, mean: float, until: float) -> None:
        at = self.kernel.now + self.dice.expovariate(1 / mean)
        if at < until:

            def strike() -> None:
                self.faults[fault] += 1
                getattr(self, f"_{fault}")()
                self._again(fault, mean, until)

            self.kernel.at(at, strike)

    def _some(self) -> int | None:
        return self.dice.choice(sorted(self.members)) if self.members else None

    def _freeze(self) -> None:
        number = self._some()
        if number is not None:
            process = self.members[number].process
            process.freeze()
            lease = self.options.lease
            self.kernel.after(self.dice.choice((0.5, 0.9, 1.1, 2.0, 5.0)) * lease, process.thaw)

    def _kill(self) -> None:
        number = self._some()
        if number is not None:
            self.kill(number)
            self.kernel.after(self.dice.uniform(0, 3 * self.options.lease), lambda: self._back(number))

    def _drain(self) -> None:
        number = self._some()
        if number is not None:
            self.stop_node(number, lambda: self._back(number))

    def _back(self, number: int) -> None:
        if number not in self.members:
            self.start(number)

    def _partition(self) -> None:
        count = self.dice.randint(1, max(1, len(self.members)))
        cut = {
            self.members[n].process.name for n in self.dice.sample(sorted(self.members), min(count, len(self.members)))
        }
        self.network.cut_off |= cut
        delay = self.dice.choice((0.5, 1.5, 4.0)) * self.options.lease
        self.kernel.after(delay, lambda: self.network.cut_off.difference_update(cut))

    def _store_restart(self) -> None:
        self.database.up = False
        self.database.restart()

        def back() -> None:
            self.database.up = True

        self.kernel.after(self.dice.uniform(0, 2 * self.options.lease), back)

    def _clock_step(self) -> None:
        self.database.step += self.dice.choice((-30.0, -1.0, 1.0, 30.0, 2 * self.options.lease))

    def _deploy(self) -> None:
        """Old and new code together: one node after the other is replaced."""
        self.version += 1
        for step, number in enumerate(sorted(self.members)):
            self.kernel.after(step * self.options.lease / 2, lambda n=number: self.stop_node(n, lambda: self._back(n)))  # type: ignore[misc]

    def heal(self) -> None:
        """Everything works from here on."""
        self.calm = True
        self.network.calm = True
        self.network.cut_off.clear()
        self.database.up = True
        for member in (*self.members.values(), *self.past):
            member.process.thaw()
        for number in range(self.options.nodes):
            self._back(number)

    def digest(self) -> str:
        """One hash over every commit and every line of the ledger: equal for equal seeds, or the seed is not all."""
        made = hashlib.blake2b(digest_size=16)
        for commit in self.database.commits:
            made.update(repr((round(commit.at * 1e6), commit.client, commit.kind, commit.name, commit.after)).encode())
        for line in self.ledger.lines:
            made.update(repr((round(line.at * 1e6), line.what, line.run, line.fence, line.process.name)).encode())
        return made.hexdigest()


def simulate(options: Options, *, disabled: frozenset[str] = frozenset()) -> Report:
    """Run one world: faults, then healing, then drain; the report says what happened and what did not hold."""
    world = World(options, disabled=disabled)
    report = Report(options=options)
    lease, kernel = options.lease, world.kernel
    try:
        for number in range(options.nodes):
            world.start(number)
        under_fire = options.hours * 3600
        world.unleash(under_fire)
        world.run(under_fire)
        world.heal()
        # Frozen bodies wake, lost sessions are watched for a lease, dead ones expire, backlogs run.
        patience = 4 * lease + 1
        world.run(16 * lease + 60)
        world.checker.at_rest(patience)
        for number in range(options.nodes):
            world.stop_node(number)
        world.run(4 * lease)
        world.checker.drained()
    except Exception as error:  # noqa: BLE001 - whatever went wrong belongs into the report, with its seed
        known = isinstance(error, AssertionError)
        report.violation = str(error) if known else f"I19: a loop of the engine raised {error!r}"
        report.tail = [_shown(commit) for commit in world.database.commits[-12:]]
    report.slots = sum(record.count for record in world.database.log.values() if record.attempt <= 1)
    report.runs = len({record.run for record in world.database.log.values() if record.attempt})
    report.steps = kernel.steps
    report.faults = +world.faults
    report.statuses = Counter(str(record.status) for record in world.database.log.values())
    report.checked = Counter(world.checker.checked)
    report.digest = world.digest()
    return report


def _shown(commit: Commit) -> str:
    entries = ", ".join(f"{entry.op} {entry.record.run} {entry.record.status}" for entry in commit.entries)
    return f"{commit.at:12.3f} s  {commit.client:8} {commit.kind} {commit.name}  {entries}"
