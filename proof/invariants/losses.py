"""The promise about a store that goes back, put to the test: no attempt starts twice, and no slot goes missing.

What the store forgot, the checker of ordinary worlds would call a violation of its own. So in worlds in which the store
goes back, invariants over the history of commits are left out; what the bodies themselves wrote is judged instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proof.invariants.checker import Violation, new_holds
from proof.invariants.quiescence import every_slot_is_accounted_for
from proof.workloads.ledger import Line
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents import namespace as model
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import NAME, Openness
from solocron.model.documents.run import Origin, group_of
from solocron.model.documents.session import Life, Session
from solocron.scheduler.hooks import core_of
from solocron.testing.simulation.commits import Commit
from solocron.testing.simulation.kernel import Process

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["HISTORY", "GoingBack"]

HISTORY = frozenset({"I2", "I3", "I4", "I5", "I6", "I9", "I10", "I11", "I12", "I13", "I15", "I17", "I20"})
"""Invariants that compare a commit with what was committed before."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One time at which the store went back."""

    at: float
    seconds: float
    failover: bool
    live: frozenset[str]
    """Sessions that live in what is left."""
    all_noticed: bool
    """Whether a renewal that its node was told of, of every living node, is among what was lost."""
    nodes: frozenset[str]
    """Processes of the nodes that lived then."""


@dataclass(frozen=True, slots=True)
class _Start:
    line: Line
    session: str


class GoingBack:
    """Remembers when the store went back and which attempts had started by then."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.losses: list[Loss] = []
        self.did: Counter[str] = Counter()
        self._starts: dict[tuple[str, int], _Start] = {}
        self._reached: dict[str, list[float]] = {}
        """Times at which each process wrote its session."""
        self._buried: dict[str, list[float]] = {}
        """Times at which a session of each process was buried."""
        self._claimed: dict[tuple[str, int], float] = {}
        """Time at which each claim was granted first."""
        self._requested: dict[str, float] = {}
        """Time at which each run was last requested by a process that is no node."""
        self._taken_in: dict[str, float] = {}
        """Time at which a node last took each run in from a request that a transaction had left."""
        self._openings: list[float] = []
        self._closings: list[float] = []
        self._operator = False
        if world.options.goes_back:
            world.database.on_commit.append(self.commit)

    def happens(self, seconds: float, *, failover: bool) -> None:
        """The store goes back now."""
        world = self._world
        since = world.kernel.now - seconds
        nodes = [m for m in world.members.values() if m.process.alive]
        sessions = [(m, s) for m in nodes if (s := (n := core_of(m.scheduler).node) and n.lease.session)]
        noticed = all(member.store.last_confirmed.get(name, 0.0) >= since for member, name in sessions)
        gone = world.database.go_back(seconds, failover=failover)
        docs = world.database.docs.items()
        live = frozenset(
            name for (kind, name), (doc, _) in docs
            if kind is Kind.SESSION and isinstance(doc, Session) and doc.state is Life.LIVE
        )  # fmt: skip
        names = frozenset(member.process.name for member, _ in sessions)
        self.losses.append(Loss(world.kernel.now, seconds, failover, live, noticed, names))
        self.did["lost commits"] += gone
        self._call_operator()

    def _call_operator(self) -> None:
        """Run `solocron restored` a while after the namespace was closed, as an operator does."""
        if not self._operator:
            self._operator = True
            self._world.kernel.after(3 * self._world.options.lease, self._operate)

    def _operate(self) -> None:
        world = self._world
        self._operator = False
        held = world.database.docs.get((Kind.NAMESPACE, NAME))
        known = model.read(held[0]) if held is not None else None
        self._call_operator()
        if known is None or known.openness is not Openness.CLOSED:
            return
        member = world.join(f"operator{len(self.losses)}.{world.kernel.now:.0f}")

        def restored() -> None:
            try:
                core_of(member.scheduler).client.restored()
            except StoreError:
                pass  # the store is away, or it says which documents it cannot read; this person looks again
            self.did["restored by a person"] += 1
            member.process.kill()

        member.process.spawn(restored, f"{member.process.name} restored")

    # --- I22 -----------------------------------------------------------------------------------------------------

    def line(self, line: Line) -> None:
        if line.what != "start" or not self._world.options.goes_back:
            return
        key = (line.run, line.attempt)
        hold = self._world.checker.granted.get((line.run, line.fence))
        session = "" if hold is None else hold.session
        before = self._starts.get(key)
        self._starts[key] = _Start(line, session)
        self.did["i22_no_attempt_starts_twice"] += 1
        if before is not None and self._is_promised(before, line):
            first = before.line
            raise Violation(
                "I22",
                f"{line.run} attempt {line.attempt} started on {first.process.name} at {first.at:.3f} s (fence "
                f"{first.fence}) and again on {line.process.name} at {line.at:.3f} s (fence {line.fence})",
            )

    def _is_promised(self, first: _Start, second: Line) -> bool:
        claimed = self._claimed.get((first.line.run, first.line.fence), first.line.at)
        losses = [loss for loss in self.losses if claimed <= loss.at <= second.at]
        if not losses:
            return True
        if not all(loss.failover or (loss.all_noticed and self._is_met(loss, second.at)) for loss in losses):
            return False
        asked = self._requested.get(group_of(second.run), 0.0)
        if any(losses[0].at <= at <= asked for at in self._closings):
            return False  # requested again when no node remembered any more that it had been carried out
        if all(self._reaches(first.line.process, loss.at, second.at) for loss in losses):
            return True
        if any(loss.at <= self._taken_in.get(group_of(second.run), 0.0) for loss in losses):
            return False  # the request of a transaction was lost with what became of it, and taken in again
        return self._world.most_attempts(second.job) == 1 and all(first.session in loss.live for loss in losses)

    def _is_met(self, loss: Loss, until: float) -> bool:
        """Whether a node that lived at a loss wrote its session after it; a restarted fleet remembers nothing."""
        return any(loss.at <= at <= until for name in loss.nodes for at in self._reached.get(name, ()))

    def went_back_since(self, moment: float) -> bool:
        return any(loss.at >= moment for loss in self.losses)

    def is_kept(self, process: Process, since: float) -> bool:
        """Whether it is promised that the store has now what a process wrote at a time, however often it went back.

        A process puts back its own locks, keys and steps if it reaches the store in time. Of what a killed process had
        written, and of what is lost when the namespace is closed, nothing is promised.
        """
        now = self._world.kernel.now
        reached = all(self._reaches(process, loss.at, now) for loss in self.losses if since <= loss.at <= now)
        return reached and self.is_noticed(since)

    def is_noticed(self, since: float) -> bool:
        """Whether it is promised that nodes notice each loss since a time, and none of them closed the namespace."""
        losses = [loss for loss in self.losses if loss.at >= since]
        if not all(loss.failover or loss.all_noticed for loss in losses):
            return False
        return not losses or not any(since <= at for at in self._closings)

    def _reaches(self, process: Process, since: float, until: float) -> bool:
        """Whether the process wrote its session between the loss and the opening after it, and was not buried by then.

        The node that opens has looked at the sessions before: who comes within a call or two of it comes too late. One
        that noticed the loss and was cut off before it had put anything back is gone like one that died.
        """
        options = self._world.options
        unsteady = options.slow or options.lost_request or options.lost_reply or options.late_request
        call = options.patience if unsteady else 20 * options.delay
        opened = next((at for at in self._openings if at >= since), until)
        if any(since <= at <= opened for at in self._buried.get(process.name, ())):
            return False
        return process.alive and any(since <= at <= opened - 2 * call for at in self._reached.get(process.name, ()))

    def commit(self, commit: Commit) -> None:
        if commit.kind is Kind.SESSION and isinstance(commit.after, Session) and commit.after.state is Life.LIVE:
            self._reached.setdefault(commit.client, []).append(commit.at)
        elif commit.kind is Kind.SESSION and isinstance(commit.after, Session) and commit.after.state is Life.DEAD:
            self._buried.setdefault(commit.after.node, []).append(commit.at)
        elif commit.kind is Kind.JOB:
            for hold in new_holds(commit):
                self._claimed.setdefault((hold.run, hold.fence), commit.at)
            self._note_requests(commit)
        elif commit.kind is Kind.NAMESPACE:
            before, after = model.read(commit.before), model.read(commit.after)
            if after is not None and after.openness is Openness.CLOSED:
                self._closings.append(commit.at)
            if after is not None and after.openness is Openness.OPEN and before is not None:
                self._openings.append(commit.at)

    def _note_requests(self, commit: Commit) -> None:
        """Note the runs that were requested by this commit, or taken in from what a transaction had left."""
        before, after = commit.before, commit.after
        if not isinstance(after, Job):
            return
        known = set[str]()
        if isinstance(before, Job):
            known = {one.run for one in before.waiting_runs} | {one.run for one in before.active}
        noted = self._requested if commit.client == "client" else self._taken_in
        for one in after.waiting_runs:
            if one.origin is Origin.TRIGGER and one.attempt == 1 and one.run not in known:
                noted[group_of(one.run)] = commit.at

    # --- quiescence-----------------------------------------------------------------------------------------------

    def check_quiescence(self) -> None:
        if not self._world.options.goes_back:
            return
        self._is_open()
        self._no_check_is_open()
        every_slot_is_accounted_for(self._world.checker, "I22")  # as I5, which is left out in these worlds
        self.did["i22_every_slot_is_accounted_for"] += 1

    def _is_open(self) -> None:
        held = self._world.database.docs.get((Kind.NAMESPACE, NAME))
        known = model.read(held[0]) if held is not None else None
        if known is None or known.openness is not Openness.OPEN:
            raise Violation("I22", f"the namespace is {known and known.openness} although every fault is over")
        self.did["i22_the_namespace_opens"] += 1

    def _no_check_is_open(self) -> None:
        for job in self._world.database.jobs.values():
            if job.back is not None and job.paused is None and not self._world.is_orphaned(job):
                raise Violation("I22", f"{job.name} still waits for what nodes remember")
