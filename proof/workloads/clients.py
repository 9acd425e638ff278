"""People and programs beside the nodes: they trigger, pause, resume, cancel, add and remove, over the same bad network.

What they were promised is remembered, so that the checker can hold the store to it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from proof.invariants.checker import Violation
from proof.workloads.jobs import policies
from solocron.clock import from_us
from solocron.errors import ConflictError, InvalidError, NotFoundError, StoreError
from solocron.model.change import Change, Kind, SmallDocument
from solocron.model.documents.request import run_named
from solocron.model.documents.run import Origin
from solocron.schedules import Every
from solocron.stores.contract import Named, Verdict
from solocron.testing.simulation.kernel import SimEvent

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["Clients"]


class Clients:
    """One process that keeps asking for things."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.requests = 0
        """Different triggers asked for."""
        self.promised: dict[str, None] = {}
        """Runs whose id a client was given."""
        self.left: dict[str, SmallDocument] = {}
        """Runs that a committed transaction has asked for; not waiting if their job was removed before."""
        self.attempts: dict[str, int] = {}
        """Times that each job which was added as data may start a run."""
        self._answers: dict[tuple[str, str], str] = {}
        self._repeat: deque[tuple[str, str]] = deque(maxlen=8)
        self._keys = 0

    def start(self, mean: float, until: float) -> None:
        member = self._world.join("client")
        self._client = member.scheduler.open()
        self._rng = member.runtime.rng
        nap = SimEvent(self._world.kernel)

        def live() -> None:
            while True:
                nap.wait(self._world.dice.expovariate(1 / mean))
                if self._world.kernel.now >= until:
                    return
                self._world.guarded(self._ask)

        member.process.spawn(live, "client")
        member.process.spawn(lambda: self._about_the_past(mean * 4, until), "client, about the past")

    def _about_the_past(self, mean: float, until: float) -> None:
        """Reruns and backfills, with dice of their own."""
        dice = random.Random(self._world.options.seed)
        nap = SimEvent(self._world.kernel)
        while True:
            nap.wait(dice.expovariate(1 / mean))
            if self._world.kernel.now >= until:
                return
            ask = dice.choices((self._rerun, self._backfill, self._cancel_backfill), (3, 3, 1))[0]
            self._world.guarded(lambda ask=ask: self._asking(lambda: ask(dice)))  # type: ignore[misc]

    def _rerun(self, dice: random.Random) -> None:
        """Rerun one known slot, or all of a job that failed."""
        records = self._world.database.log.values()
        ran = sorted({(r.job, r.slot) for r in records if r.origin is Origin.SCHEDULE and r.finished_at and r.attempt})
        if ran and dice.random() < 0.5:
            job, slot = dice.choice(ran)
            self._client.rerun(job, from_us(slot))
            return
        job = dice.choice(sorted(self._world.database.jobs) or ["job-0"])
        now = from_us(self._world.database.clock())
        self._client.rerun(job, failed_since=now - timedelta(seconds=dice.uniform(1, 20 * self._world.options.lease)))

    def _backfill(self, dice: random.Random) -> None:
        job = dice.choice(sorted(self._world.database.jobs) or ["job-0"])
        end = from_us(self._world.database.clock() - 1) - timedelta(seconds=dice.uniform(0, self._world.options.lease))
        start = end - timedelta(seconds=dice.uniform(1, 20 * self._world.options.lease))
        self._client.backfill(job, start, end, limit=10, rate=dice.choice((None, "30/m")))

    def _cancel_backfill(self, dice: random.Random) -> None:
        if under_way := self._client.backfills():
            self._client.cancel(str(dice.choice(under_way).id))

    def _ask(self) -> None:
        """One request of some kind; whatever the network does to it, it may be repeated."""
        ask = self._world.dice.choices(
            (
                *(self._trigger, self._trigger_again, self._leave, self._pause),
                *(self._resume, self._cancel, self._add, self._remove),
            ),
            (6, 4, 4, 1, 2, 2, 1, 1),
        )[0]
        self._asking(ask)

    def _asking(self, ask: Callable[[], None]) -> None:
        try:
            ask()
        except StoreError:
            self._world.faults["request unanswered"] += 1
        except (ConflictError, InvalidError, NotFoundError):
            pass  # said no: disabled, full, gone, nothing there
        else:
            self._world.faults["request"] += 1

    def _job(self) -> str:
        return self._world.dice.choice(sorted(self._world.database.jobs) or ["job-0"])

    def _trigger(self) -> None:
        dice, at = self._world.dice, None
        job = self._job()
        if dice.random() < 0.3:
            at = from_us(self._world.database.clock()) + timedelta(seconds=dice.uniform(-5, self._world.options.lease))
        self.requests += 1
        if dice.random() < 0.5:
            self._promise(self._client.trigger(job, {"n": self.requests}, at=at))
            return
        self._keys += 1
        key = f"key-{self._keys}"
        self._repeat.append((job, key))
        self._keyed(job, key)

    def _trigger_again(self) -> None:
        """The same request once more: its answer was lost, or an operator pressed the button twice."""
        if self._repeat:
            self._keyed(*self._world.dice.choice(list(self._repeat)))

    def _keyed(self, job: str, key: str) -> None:
        """The same key is the same run, for as long as the job is: removed and added again it is another one."""
        before = self._incarnation(job)
        run = self._client.trigger(job, key=key)
        if before != self._incarnation(job):
            return
        known = self._answers.setdefault((f"{job} {before}", key), run)
        if known != run:
            raise Violation("I13", f"the trigger {key} of {job} was answered with {known} and then with {run}")
        self._promise(run)

    def _incarnation(self, job: str) -> int | None:
        found = self._world.database.jobs.get(job)
        return None if found is None else found.incarnation

    def _leave(self) -> None:
        """A trigger in a transaction of one's own, sometimes with a key: promised from its commit on."""
        dice, key = self._world.dice, None
        job = self._job()
        if dice.random() < 0.5:
            self._keys += 1
            key = f"key-{self._keys}"
            self._repeat.append((job, key))
        self.requests += 1
        note = self._client.request(job, {"n": self.requests}, key=key)
        commit = self._client.store.update(Named(Kind.REQUEST, (note.name,)), lambda doc, now: Change(note))
        if commit.results[0].verdict is Verdict.APPLIED:
            self.left[run_named(note)] = note

    def _promise(self, run: str) -> None:
        self.promised[run] = None

    def _pause(self) -> None:
        dice, until = self._world.dice, None
        if dice.random() < 0.7:
            seconds = dice.uniform(1, 4 * self._world.options.lease) + 60
            until = from_us(self._world.database.clock()) + timedelta(seconds=seconds)
        self._client.pause(self._job(), by="operator", note="to see what happens", until=until)

    def _resume(self) -> None:
        paused = [job.name for job in self._world.database.jobs.values() if job.paused]
        if paused:
            self._client.resume(self._world.dice.choice(sorted(paused)))

    def _cancel(self) -> None:
        jobs = self._world.database.jobs.values()
        runs = sorted(
            [hold.run for job in jobs for hold in job.active]
            + [waiting_run.run for job in jobs for waiting_run in job.waiting_runs]
        )
        if runs:
            self._client.cancel(self._world.dice.choice(runs))

    def _add(self) -> None:
        dice, lease = self._world.dice, self._world.options.lease
        name = f"data-{dice.randrange(3)}"
        options = policies(lease, dice, stoppable=True) | {"retries": 1}
        self.attempts[name] = 2
        if self._world.options.calendars and self.requests % 2:
            options["calendar"] = "works"
        handler = dice.choice(self._world.workload.plans).name
        self._client.add(name, handler, Every(dice.choice((lease, 2 * lease))), **options)

    def _remove(self) -> None:
        self._client.remove(f"data-{self._world.dice.randrange(3)}")

    def calm_down(self) -> None:
        """Resume every paused job, in the healed world."""

        def resume() -> None:
            while paused := sorted(job.name for job in self._world.database.jobs.values() if job.paused):
                for job in paused:
                    self._world.patient(partial(self._client.resume, job))

        member = self._world.others.get("client")
        if member is not None:
            member.process.spawn(lambda: self._world.guarded(resume), "client")
