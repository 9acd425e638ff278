"""One simulated world: nodes that run the shipped engine, a store, a network, a nemesis, and someone who checks."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from proof.invariants.alarms import AlarmWatch
from proof.invariants.checker import Checker
from proof.invariants.losses import HISTORY, GoingBack
from proof.simulator.coverage import Coverage
from proof.simulator.nemesis import Nemesis
from proof.simulator.options import Options
from proof.workloads.broker import Broker, behind_a_broker
from proof.workloads.calendars import Planner, under_calendars
from proof.workloads.clients import Clients
from proof.workloads.effects import Effects
from proof.workloads.jobs import Workload, unreadable
from proof.workloads.ledger import RUN_NOW, Ledger
from proof.workloads.pauses import Operator
from solocron.clock import SECOND
from solocron.errors import RunStopped, SolocronError
from solocron.model.change import Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.session import Life, Session
from solocron.scheduler import Scheduler
from solocron.testing.simulation.database import Commit, Past
from solocron.testing.simulation.fleet import SimFleet
from solocron.testing.simulation.kernel import Process

__all__ = ["Report", "World", "simulate"]


@dataclass(slots=True, kw_only=True)
class Report:
    """The result of one world: its options, its counts, and the first violation."""

    options: Options
    hours: float = 0.0
    slots: int = 0
    runs: int = 0
    starts: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    policies: dict[str, int] = field(default_factory=dict)
    """Times that each policy of this world made a difference."""
    digest: str = ""
    violation: str | None = None
    tail: list[str] = field(default_factory=list)

    @property
    def invariant(self) -> str | None:
        """The invariant that does not hold."""
        return None if self.violation is None else self.violation.partition(":")[0]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "faults": dict(self.faults),
            "statuses": dict(self.statuses),
            "checked": dict(self.checked),
        }


def needs_past(options: Options) -> bool:
    """Whether the store of such a world has to remember how it was."""
    return bool(options.stale_reads or options.forget or options.goes_back)


class World(SimFleet):
    """Everything of one seed: a fleet, jobs, bodies, faults, and the checker."""

    def __init__(self, options: Options, *, disabled: frozenset[str] = frozenset()) -> None:
        past = Past((12 if options.goes_back else 4) * options.lease) if needs_past(options) else None
        self.options = options
        super().__init__(options, declare=self._declare_jobs, epoch=options.start, past=past)
        self.dice = self.kernel.dice
        self.faults = self.network.seen
        lease = round(options.lease * 1_000_000)
        self.late_for = lease + 2 * (lease // 3000 * 1000)
        self.workload = Workload(options, self.dice)
        if options.calendars:
            self.workload.plans = under_calendars(options, self.workload.plans)
        if options.broker:
            self.workload.plans = behind_a_broker(self.workload.plans)
        self.broker = Broker(self, options.broker)
        self.planner = Planner(self)
        self.clients = Clients(self)
        self.operator = Operator(self)
        self.nemesis = Nemesis(self)
        self.ledger = Ledger(self.kernel)
        self.going_back = GoingBack(self)
        self.checker = Checker(self, disabled=disabled | (HISTORY if options.goes_back else frozenset()))
        self.database.on_commit += [self._hash, self.checker.commit, self._watch_burials]
        self.database.on_prune.append(self.checker.pruned)
        self.ledger.on_line.append(self.checker.line)
        self.ledger.on_line.append(self.going_back.line)
        self.effects = Effects(self, options.effects)
        self.alarms = AlarmWatch(self, options.alarms)
        self.coverage = Coverage(self)
        self.calm = False
        """Whether the faults are over."""
        self.quiescent = False
        """Whether what they had left behind is over as well."""
        self.version = 0
        self._own_dice = random.Random(f"programs {options.seed}")
        self.unclean: list[str] = []
        """Nodes that said they had drained and had not."""
        self.killed_in_peace: dict[str, float] = {}
        self.takeovers: list[tuple[float, str]] = []
        """Burials of those: seconds after the last renewal, and the session."""
        self._digest = hashlib.blake2b(digest_size=16)
        if options.poison:
            self.database.put(unreadable())

    # --- nodes ---------------------------------------------------------------------------------------------------

    def start(self, number: int) -> None:
        """A node with clocks of its own, running the newest code."""
        rate, skew = self.options.clock_rate, self.options.clock_skew
        self.faults["clock_rate"] += bool(rate)
        self.faults["clock_skew"] += bool(skew)
        self.start_node(
            number,
            rate=1.0 + self.dice.uniform(-rate, rate),
            skew=self.dice.uniform(-skew, skew),
            keep=self.options.keep,
            revision=self.version if self.options.revisions else None,
        )

    def back(self, number: int) -> None:
        if number not in self.members:
            self.start(number)

    def stopped(self, name: str, process: Process, *, clean: bool) -> None:
        """After a drain of a quiescent world; a node that calls itself clean has left nothing running."""
        if self.quiescent and clean and any(not task.name.endswith("stop") for task in process.tasks):
            self.unclean.append(name)

    def _declare_jobs(self, scheduler: Scheduler, process: Process) -> None:
        if process.name != "client":
            self.workload.declare(self, scheduler, process, self.version)
            self.effects.declare(scheduler, process)
            self.alarms.declare(scheduler)
            self.broker.declare(scheduler)

    def most_attempts(self, job: str) -> int | None:
        """Return how often a run of a job may start."""
        return self.workload.attempts().get(job) or self.clients.attempts.get(job) or self.effects.attempts.get(job)

    def has_ended(self, hold: Hold) -> bool:
        """Whether the body of a claim came to its end; one whose process was killed did not."""
        bodies = (task for task in self.kernel.tasks if task.process.name == hold.node)
        return not any(task.name.endswith((hold.run, RUN_NOW)) for task in bodies)

    def backlog(self) -> int:
        """Return how many runs wait, of jobs that are late by more than a lease and that some node can run.

        What is due does not tell it: a job that is busy is due with its next slot, however long its queue is.
        """
        since = self.database.clock() - round(self.options.lease * SECOND)
        late = [
            job
            for job in self.database.jobs.values()
            if any(at is not None and at < since for at in (job.due_at, self.waits_since(job)))
        ]
        return sum(job.waiting for job in late if job.paused is None and not self.is_orphaned(job))

    def waits_since(self, job: Job) -> int | None:
        """Return since when the oldest run waits that is kept back by nothing but the runs before it; None if none."""
        if job.paused is not None or not job.definition.enabled or self.is_orphaned(job):
            return None
        # What is paced takes its time.
        ranges = [waiting_range.first for waiting_range in job.waiting_ranges if waiting_range.pace is None]
        return min([*(waiting_run.ready_at for waiting_run in job.waiting_runs), *ranges], default=None)

    def is_orphaned(self, job: Job) -> bool:
        """Return whether no running code has its handler, or no code can read it."""
        names = {plan.name for plan in self.workload.of(self.version)}
        handler = job.definition.handler
        return (Kind.JOB, job.name) in self.database.aside or (handler.startswith("job-") and handler not in names)

    # --- what happens beside them --------------------------------------------------------------------------------

    def unleash(self, until: float) -> None:
        self.nemesis.unleash(until)
        if self.options.request:
            self.clients.start(self.options.request, until)
        if self.options.calendars:
            self.planner.start(self.options.calendars, until)
        if self.options.pauses:
            self.operator.start(self.options.pauses, until)
        if self.options.tick:
            self._tick_later(until)
        if self.options.broker:
            self.broker.start(until)
        if self.options.run_now:
            self._run_now_later(until)

    def _run_now_later(self, until: float) -> None:
        at = self.kernel.now + self._own_dice.expovariate(1 / self.options.run_now)
        if at < until:
            self.kernel.at(at, self._run_now, until)

    def _run_now(self, until: float) -> None:
        """A program that runs a job on its own thread; some are killed meanwhile. The next one comes after it."""
        member, dice = self.join(f"tick-now{self._starts}", declare=True), self._own_dice
        plain = [plan for plan in self.workload.of(self.version) if not plan.stoppable]
        names = [plan.name for plan in plain if plan.policies["shards"] is None] or ["nothing"]
        name = dice.choice(names)

        def over() -> None:
            if member.process.alive:
                member.process.kill()
                self._run_now_later(until)

        def run() -> None:
            try:
                member.scheduler.run_now(name, {"here": True})
            except (SolocronError, RunStopped, ValueError):
                pass  # busy, gone, no store; or what the body raises
            self.faults["run_now"] += 1
            over()

        member.process.spawn(lambda: self.guarded(run), f"{member.process.name}{RUN_NOW}")
        self.kernel.after(dice.choice((0.5, 60.0)) * self.options.lease, over)

    def _tick_later(self, until: float) -> None:
        at = self.kernel.now + self.dice.expovariate(1 / self.options.tick)
        if at < until:
            self.kernel.at(at, self._tick, until)

    def _tick(self, until: float) -> None:
        """One pass of an external trigger, in a process of its own; the next one comes when it is over."""
        member = self.join(f"tick{self._starts}", declare=True)

        def tick() -> None:
            self.guarded(lambda: self.patient(member.scheduler.tick))
            self.faults["tick"] += 1
            member.process.kill()
            self._tick_later(until)

        member.process.spawn(tick, f"{member.process.name} tick")

    def heal(self) -> None:
        """Everything works from here on."""
        self.calm = True
        self.network.connect_all()
        self.database.up = True
        for member in (*self.members.values(), *self.past, *self.others.values()):
            member.process.thaw()
        for number in range(self.options.nodes):
            self.back(number)
        self.clients.calm_down()
        if self.options.broker:
            self.broker.heal()

    def kill_in_peace(self) -> None:
        """One node dies in the healed world; how long its takeover takes is measured."""
        member = self.members[0]
        self.killed_in_peace[member.process.name] = self.kernel.now
        self.kill(0)

    # --- what is remembered --------------------------------------------------------------------------------------

    def _watch_burials(self, commit: Commit) -> None:
        before, after = commit.before, commit.after
        if not isinstance(before, Session) or not isinstance(after, Session) or before.state is not Life.LIVE:
            return
        if after.state is Life.DEAD and before.node in self.killed_in_peace:
            self.takeovers.append((commit.at - self.checker.renewed[commit.name], before.node))

    def _hash(self, commit: Commit) -> None:
        """One hash over every commit: equal for equal seeds, or the seed is not all. (A pid would be one too many.)"""
        after = commit.after
        what: tuple[object, ...] = ()
        if isinstance(after, Job):
            held = [(hold.run, hold.fence, hold.session, hold.cancel) for hold in after.active]
            waiting_run = [
                (waiting_run.run, waiting_run.attempt, waiting_run.ready_at) for waiting_run in after.waiting_runs
            ]
            what = (after.cursor, after.fence, after.due_at, held, waiting_run, [s.first for s in after.waiting_ranges])
        elif isinstance(after, Session):
            what = (after.expires_at, after.beats, str(after.state))
        records = [(record.run, record.attempt, str(record.status)) for record in commit.records]
        self._digest.update(repr((commit.now, commit.client, commit.name, what, records)).encode())

    def digest(self) -> str:
        """One hash over every commit and every line of the ledger."""
        return hashlib.blake2b(
            f"{self._digest.hexdigest()} {self.ledger.digest()}".encode(), digest_size=16
        ).hexdigest()


def simulate(options: Options, *, disabled: frozenset[str] = frozenset()) -> Report:
    """Run one world: faults, then healing, then drain; the report says what happened and what did not hold."""
    world = World(options, disabled=disabled)
    report = Report(options=options)
    try:
        _live(world)
    except Exception as error:
        known = isinstance(error, AssertionError)
        report.violation = str(error) if known else f"I19: a loop of the engine raised {error!r}"
        report.tail = [_shown(commit) for commit in list(world.database.commits)[-16:]]
    report.hours = world.kernel.now / 3600
    report.slots = world.checker.slots
    report.runs = len(world.checker.attempts)
    report.starts = world.ledger.starts
    report.steps = world.kernel.steps
    world.faults["poison"] += sum(aside.times for aside in world.database.aside.values())
    report.faults = +world.faults
    report.statuses = Counter({str(status): count for status, count in world.checker.recorded.items()})
    report.checked = Counter(world.checker.checked) + world.effects.did + world.alarms.did + world.going_back.did
    report.policies = world.coverage.told()
    report.digest = world.digest()
    world.kernel.close()
    return report


def _live(world: World) -> None:
    options, lease = world.options, world.options.lease
    for number in range(options.nodes):
        world.start(number)
    under_fire = options.hours * 3600
    world.unleash(under_fire)
    world.run(under_fire)
    world.heal()
    # Frozen bodies wake, lost sessions are watched for a lease, dead ones expire, backlogs run.
    world.run(14 * lease + 60)
    while waiting := world.backlog():
        world.run(8 * lease)
        if world.backlog() >= waiting:
            break  # it does not get less: let the checker say what is stuck
    if options.nodes > 1:
        world.kill_in_peace()
    world.run(2 * lease + 2)
    world.checker.check_quiescence(4 * lease + 1)
    world.going_back.check_quiescence()
    world.effects.check_quiescence()
    world.alarms.check_quiescence()
    world.quiescent = True
    for number in range(options.nodes):
        world.stop_node(number)
    world.run(4 * lease)
    world.checker.drained()


def _shown(commit: Commit) -> str:
    records = ", ".join(f"{record.run} {record.status}" for record in commit.records)
    return f"{commit.at:12.3f} s  {commit.client:8} {commit.kind} {commit.name}  {records}"
