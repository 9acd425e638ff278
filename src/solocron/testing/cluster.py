"""A simulated cluster of your own jobs: nodes, their deaths and their clocks on virtual time, a year in seconds.

    cluster = Cluster(nightly, nodes=3, start=datetime(2026, 3, 28, 12, tzinfo=UTC))
    cluster.run_until(datetime(2026, 3, 29, 0, 59, tzinfo=UTC))
    cluster.kill(0)
    cluster.run("2h")
    cluster.assert_ran("nightly", times=1)

The engine is the shipped one, unchanged; only threads, time and network are simulated. The same seed gives the same
history. Jobs wait with `cluster.sleep`, never with `time.sleep`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from solocron.client.run_lookup import running_views
from solocron.clock import from_us, to_us
from solocron.duration import parse_duration
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life, Session
from solocron.scheduler import Scheduler
from solocron.testing.simulation.conditions import Conditions
from solocron.testing.simulation.fleet import Member, SimFleet
from solocron.testing.simulation.kernel import Process, SimEvent
from solocron.views import RunView

__all__ = ["Cluster", "Start"]

Span = timedelta | int | float | str


@dataclass(frozen=True, slots=True)
class Start:
    """A body that started: recorded by a wrapper around it, not by the engine."""

    job: str
    run: str
    slot: datetime
    attempt: int
    fence: int
    node: str
    at: datetime


class Cluster:
    """Nodes 0 to n - 1 on one simulated store; time stands still between the calls of `run`."""

    def __init__(
        self,
        *targets: object,
        nodes: int = 3,
        start: datetime | None = None,
        lease: Span = "15s",
        seed: int = 0,
        locking: bool = True,
        **settings: Any,
    ) -> None:
        self.targets = targets
        self.starts: list[Start] = []
        self.events: Counter[str] = Counter()
        self._settings = settings
        begin = start or datetime(2026, 1, 1, tzinfo=UTC)
        conditions = Conditions(
            seed=seed,
            lease=parse_duration(lease, what="lease").total_seconds(),
            max_running=settings.pop("max_running", 32),
            locking=locking,
        )
        self.fleet = SimFleet(conditions, declare=self._declare, epoch=to_us(begin) / 1_000_000)
        for number in range(nodes):
            self.start(number)

    # --- time ----------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The store's time."""
        return from_us(self.fleet.database.clock())

    def run(self, duration: Span) -> None:
        """Let time pass."""
        self.fleet.run(parse_duration(duration, what="duration").total_seconds())

    def run_until(self, moment: datetime) -> None:
        """Let time pass until the store's clock shows a moment."""
        self.fleet.run(max(0.0, (moment - self.now).total_seconds()))

    def sleep(self, duration: Span) -> None:
        """Wait in virtual time; for bodies."""
        SimEvent(self.fleet.kernel).wait(parse_duration(duration, what="duration").total_seconds())

    def step_store_clock(self, by: Span | timedelta) -> None:
        """Step the store's clock; negative with a `timedelta`."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else parse_duration(by).total_seconds()
        self.fleet.database.step += seconds

    # --- nodes ---------------------------------------------------------------------------------------------------

    def start(self, number: int, *targets: object, **settings: Any) -> None:
        """Start a node, if it does not run: a new process, perhaps with other code or other settings."""
        if number not in self.fleet.members:
            before, self.targets = self.targets, targets or self.targets
            self.fleet.start_node(number, **{**self._settings, **settings})
            self.targets = before

    def kill(self, number: int) -> None:
        """Kill a node, as by kill -9."""
        self.fleet.kill(number)

    def stop(self, number: int) -> None:
        """Send SIGTERM: the node drains while time passes."""
        self.fleet.stop_node(number)

    def freeze(self, number: int) -> None:
        """Freeze a node, as by SIGSTOP."""
        self.process(number).freeze()

    def thaw(self, number: int) -> None:
        """Thaw a node, as by SIGCONT."""
        self.process(number).thaw()

    def cut_off(self, number: int) -> None:
        """Cut the node off from the store, in both directions."""
        self.fleet.network.cut_off.add(self.process(number).name)

    def connect(self, number: int) -> None:
        self.fleet.network.cut_off.discard(self.process(number).name)

    def member(self, number: int) -> Member:
        return self.fleet.members[number]

    def process(self, number: int) -> Process:
        return self.fleet.members[number].process

    # --- looking -------------------------------------------------------------------------------------------------

    def job(self, name: str) -> Job:
        """Return the job's document."""
        doc = self.fleet.database.docs[(Kind.JOB, name)][0]
        assert isinstance(doc, Job)
        return doc

    def sessions(self, state: Life = Life.LIVE) -> list[Session]:
        docs = [doc for doc, _ in self.fleet.database.docs.values() if isinstance(doc, Session)]
        return [doc for doc in docs if doc.state is state]

    def runs(self, job: str | None = None) -> list[RunView]:
        """Return what ran and what runs, oldest first."""
        database = self.fleet.database
        jobs = [doc for doc, _ in database.docs.values() if isinstance(doc, Job)]
        running = running_views(jobs, self.sessions(), database.clock())
        views = [*map(RunView.of, database.log.values()), *running]
        return sorted((v for v in views if job in (None, v.job)), key=lambda v: (v.slot, v.attempt))

    def started(self, job: str) -> Iterator[Start]:
        """Return the bodies of a job that started."""
        return (start for start in self.starts if start.job == job)

    def assert_ran(self, job: str, *, times: int | None = None, slots: list[datetime] | None = None) -> None:
        """Assert that every slot started once, so many times, at these slots.

        The failure says what happened instead.
        """
        seen = [start for start in self.starts if start.job == job]
        story = "\n".join(
            f"  {s.at.isoformat()} slot {s.slot.isoformat()} attempt {s.attempt} on {s.node}" for s in seen
        )
        twice = [slot for slot, count in Counter((s.slot, s.attempt) for s in seen).items() if count > 1]
        assert not twice, f"{job} started twice for {twice}:\n{story}"
        if times is not None:
            assert len({s.slot for s in seen}) == times, f"{job} did not run {times} times:\n{story or '  never'}"
        if slots is not None:
            assert sorted({s.slot for s in seen}) == sorted(slots), f"{job} ran at other slots:\n{story or '  never'}"

    def _declare(self, scheduler: Scheduler, process: Process) -> None:
        scheduler.discover(*self.targets)
        scheduler.events.on("*", lambda event: self.events.update([event.name]))

        def note(run: Any, call: Any) -> Any:
            self.starts.append(Start(run.job, run.id, run.slot, run.attempt, run.fence, run.node, self.now))
            return call()

        scheduler.around(note)
