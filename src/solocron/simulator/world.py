"""One simulated world: nodes that run the shipped engine, a store, a network, a nemesis, and someone who checks."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from solocron.jobs.decorators import cron, every
from solocron.model.policy import Backoff, allow, catch_up_all
from solocron.model.timetable import EMPTY, Timetable
from solocron.scheduler import Scheduler
from solocron.schedules import load
from solocron.simulator.checker import Checker, Violation
from solocron.simulator.database import Database
from solocron.simulator.faults import Network, Options
from solocron.simulator.kernel import Kernel, Process
from solocron.simulator.ledger import Ledger, make_body
from solocron.simulator.seams import SimDispatcher, SimRuntime
from solocron.simulator.wire import WireStore
from solocron.telemetry.log import log_event

__all__ = ["Report", "World", "simulate"]


@dataclass(slots=True)
class Member:
    """A node of the fleet, as long as one process lives."""

    process: Process
    runtime: SimRuntime
    store: WireStore
    scheduler: Scheduler


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


class World:
    """Everything of one seed."""

    def __init__(self, options: Options, *, disabled: frozenset[str] = frozenset()) -> None:
        self.options = options
        self.kernel = Kernel(options.seed)
        self.dice = self.kernel.dice
        self.faults: Counter[str] = Counter()
        self.network = Network(self.kernel, options, self.faults)
        self.database = Database(self.kernel, locking=options.locking, idle_timeout=options.lease / 5)
        self.ledger = Ledger()
        self.checker = Checker(self, disabled=disabled)
        self.database.on_commit.append(self.checker.commit)
        self.ledger.on_line.append(self.checker.line)
        self.calm = False
        self.version = 0
        self.plan = [self._draw_job(number) for number in range(options.jobs)]
        self.members: dict[int, Member] = {}
        self._past: list[Member] = []
        self._starts = 0
        self.failure: BaseException | None = None

    # --- nodes ---------------------------------------------------------------------------------------------------

    def start_node(self, number: int) -> None:
        options, dice = self.options, self.dice
        self._starts += 1
        name = f"n{number}.{self._starts}"
        process = Process(self.kernel, name)
        rate = 1.0 + (dice.uniform(-options.clock_rate, options.clock_rate) if not self.calm else 0.0)
        skew = dice.uniform(-options.clock_skew, options.clock_skew)
        self.faults["clock_rate"] += bool(options.clock_rate)
        self.faults["clock_skew"] += bool(options.clock_skew)
        runtime = SimRuntime(process, rate=rate, skew=skew, number=self._starts)
        store = WireStore(self.database, process, self.network, timeout=options.lease / 4, rate=rate)
        scheduler = Scheduler(
            store,
            node=name,
            enabled=True,
            lease=options.lease,
            max_running=options.max_running,
            runtime=runtime,
            dispatchers={
                "thread": SimDispatcher(process, interruptible=False),
                "loop": SimDispatcher(process, interruptible=True),
            },
        )
        scheduler.events.off("*", log_event)
        scheduler.events.on("loop error", self._loop_error)
        for declare in self.plan:
            declare(scheduler, process)
        self.members[number] = Member(process, runtime, store, scheduler)
        process.spawn(scheduler.start, f"{name} start")

    def _loop_error(self, event: Any) -> None:
        """The engine's loops survive anything; in a simulated world an exception in one is a bug."""
        error = event.exception
        if self.failure is None and not isinstance(error, Violation):
            self.failure = error
        elif self.failure is None:
            self.failure = error

    def kill(self, number: int) -> None:
        member = self.members.pop(number, None)
        if member is not None:
            member.process.kill()
            self._past.append(member)

    def stop_node(self, number: int, then: Callable[[], None] | None = None) -> None:
        """SIGTERM: drain and exit."""
        member = self.members.pop(number, None)
        if member is None:
            return
        self._past.append(member)

        def stop() -> None:
            member.scheduler.stop(self.options.lease)
            member.process.kill()
            if then is not None:
                self.kernel.after(0, then)

        member.process.spawn(stop, f"{member.process.name} stop")

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
            "run_in": "loop" if stoppable else "thread",
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

    def resolve(self, spec: Mapping[str, Any] | None) -> Timetable:
        return EMPTY if spec is None else Timetable(load(spec))

    # --- what the checker asks -----------------------------------------------------------------------------------

    def _member_of(self, process: Process) -> Member | None:
        return next((m for m in (*self.members.values(), *self._past) if m.process is process), None)

    def confirmed(self, process: Process, session: str) -> float | None:
        member = self._member_of(process)
        return None if member is None else member.store.last_confirmed.get(session)

    def rate(self, process: Process) -> float:
        member = self._member_of(process)
        return 1.0 if member is None else member.runtime.clock.rate

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
            self.start_node(number)

    def _partition(self) -> None:
        count = self.dice.randint(1, max(1, len(self.members)))
        cut = {self.members[n].process.name for n in self.dice.sample(sorted(self.members), min(count, len(self.members)))}
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
        for member in (*self.members.values(), *self._past):
            member.process.thaw()
        for number in range(self.options.nodes):
            self._back(number)

    def digest(self) -> str:
        """One hash over every commit and every line of the ledger: equal for equal seeds, or something is not seeded."""
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
            world.start_node(number)
        under_fire = options.hours * 3600
        world.unleash(under_fire)
        _run(world, under_fire)
        world.heal()
        # Frozen bodies wake, lost sessions are watched for a lease, dead ones expire, backlogs run.
        patience = 4 * lease + 1
        _run(world, under_fire + 16 * lease + 60)
        world.checker.at_rest(patience)
        for number in range(options.nodes):
            world.stop_node(number)
        _run(world, kernel.now + 4 * lease)
        world.checker.drained()
    except (Violation, AssertionError) as violation:
        report.violation = str(violation)
        report.tail = [_shown(world, line) for line in world.database.commits[-12:]]
    report.slots = sum(record.count for record in world.database.log.values() if record.attempt <= 1)
    report.runs = len({record.run for record in world.database.log.values() if record.attempt})
    report.steps = kernel.steps
    report.faults = +world.faults
    report.statuses = Counter(str(record.status) for record in world.database.log.values())
    report.checked = Counter(world.checker.checked)
    report.digest = world.digest()
    return report


def _run(world: World, until: float) -> None:
    """Let time pass in pieces, so that a failure inside a loop of the engine comes to light."""
    while world.kernel.now < until:
        world.kernel.run(min(until, world.kernel.now + 1.0))
        if world.failure is not None:
            if isinstance(world.failure, AssertionError):
                raise world.failure
            raise Violation("I19", f"a loop of the engine raised {world.failure!r}") from world.failure


def _shown(world: World, commit: Any) -> str:
    return f"{commit.at:10.3f} {commit.client:8} {commit.kind} {commit.name} {[str(e.op) + ' ' + e.record.status + ' ' + e.record.run for e in commit.entries]}"
