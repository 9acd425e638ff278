"""Plays a tiny world: one integer is one event, so that a failing history is a list of numbers that shrinks well.

Two jobs under policies drawn at random, three nodes that claim, finish, die, come back and send stale writes, people
who trigger, cancel, pause, redefine, remove and restore, and a store clock that runs, jumps and steps back.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from solocron.clock import SECOND, to_us
from solocron.model.documents import session
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold
from solocron.model.documents.run import group_of, run_id
from solocron.model.documents.session import Life, Session
from solocron.model.policy import Backoff, CatchUp, Overlap, allow
from solocron.model.transitions import claiming, commands, finishing, registration
from solocron.model.transitions.finishing import Outcome
from solocron.schedules import At, Cron, Every, Schedule, dump
from tests.simulation.model_history import LATE_FOR, LEASE, World, resolve, small_queues

__all__ = ["EVENTS", "Driver", "play"]

BEAT = LEASE // 3
STARTS = [(2026, 1, 5), (2026, 3, 29), (2026, 10, 25)]
"""A plain day, and the nights in which Paris sets its clocks."""


@dataclass
class Node:
    """What a node knows: its session, the holds it runs, and those it once had and may still write about."""

    name: str
    session: str | None = None
    holds: list[tuple[str, Hold]] = field(default_factory=list)
    past: list[tuple[str, Hold]] = field(default_factory=list)

    def forget(self) -> None:
        """Its session is lost: what it ran becomes a zombie whose writes may still arrive."""
        self.past = (self.past + self.holds)[-20:]
        self.holds, self.session = [], None


class Driver:
    """The nodes, the people and the clock around a world."""

    def __init__(self, code: int) -> None:
        dice = random.Random(code)
        self.world = World(to_us(datetime(*dice.choice(STARTS), tzinfo=UTC)))
        self.nodes = [Node(name) for name in "abc"]
        self.names = ["alpha", "beta"]
        self.seen: Counter[str] = Counter()
        self._serial = 0
        for name in self.names:
            self._define(dice, name)

    def step(self, code: int) -> None:
        """The event that a number stands for, in the world as it is."""
        dice = random.Random(code)
        name = dice.choice(self.names)
        if name not in self.world.jobs:
            self._define(dice, name)
        event = dice.choices(EVENTS, _WEIGHTS)[0]
        self.seen[event.__name__] += 1
        event(self, dice, name)

    # --- time --------------------------------------------------------------------------------------------------------

    def _wait(self, dice: random.Random, name: str) -> None:
        """To the next thing that is due, or a little while; nodes mostly renew in time."""
        due = [job.due_at for job in self.world.jobs.values() if job.due_at is not None and job.due_at > self.world.now]
        if due and dice.random() < 0.5:
            self.world.now = min(min(due) + dice.choice([0, 0, 1, SECOND]), self.world.now + 1800 * SECOND)
        else:
            self.world.now += dice.randrange(2 * BEAT)
        for node in self.nodes:
            if dice.random() < 0.9:
                self._beat(node, node.session)

    def _outage(self, dice: random.Random, name: str) -> None:
        """No node is there for up to a few hundred slots of the busiest job; every session runs out."""
        periods = [3600 * SECOND]
        for job in self.world.jobs.values():
            slots = resolve(job.definition.schedule)
            following = slots.after(self.world.now)
            after = None if following is None else slots.after(following)
            if following is not None and after is not None:
                periods.append(after - following)
        self.world.now += LEASE + dice.randrange(min(periods) * dice.choice([1, 3, 30, 200]))

    def _step_back(self, dice: random.Random, name: str) -> None:
        """The store's clock is set back."""
        self.world.now -= dice.randrange(1, 30 * SECOND)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _begin(self, dice: random.Random, name: str) -> None:
        node = dice.choice(self.nodes)
        if node.session is None:
            self._serial += 1
            node.session = f"{node.name}{self._serial}"
            new = Session(name=node.session, node=node.name, host="h", pid=1, lease=LEASE)
            self.world.on_session("begin", new.name, lambda doc: session.begin(doc, new, now=self.world.now))

    def _renew(self, dice: random.Random, name: str) -> None:
        """A beat; sometimes of a session that the node has long given up."""
        node = dice.choice(self.nodes)
        self._beat(node, node.session or f"{node.name}{dice.randint(1, self._serial or 1)}")

    def _beat(self, node: Node, which: str | None) -> None:
        if which is None:
            return
        renewed = self.world.on_session("renew", which, lambda doc: session.renew(doc, now=self.world.now))
        if which == node.session and not renewed:
            node.forget()

    def _die(self, dice: random.Random, name: str) -> None:
        dice.choice(self.nodes).forget()

    def _claim(self, dice: random.Random, name: str) -> None:
        """Rule 1: the claim commits only if its session is live. Now and then a node asks too early."""
        node = dice.choice(self.nodes)
        job = self.world.jobs.get(name)
        if node.session is None or job is None or not self.world.live(node.session):
            return
        if (job.due_at is None or job.due_at > self.world.now) and dice.random() < 0.9:
            return
        by = claiming.Claimant(session=node.session, node=node.name, late_for=LATE_FOR, alone=dice.random() < 0.5)
        if dice.random() < 0.8:
            by = replace(by, sessions=tuple(self.world.sessions.values()))
        if dice.random() < 0.8:
            by = replace(by, permit="scarce:0")
        hold = self.world.on_job(
            "claim", name, lambda doc: claiming.claim(doc, now=self.world.now, by=by, resolve=resolve), by=by
        )
        if isinstance(hold, Hold):
            node.holds.append((name, hold))

    def _finish(self, dice: random.Random, name: str) -> None:
        node = dice.choice(self.nodes)
        if node.holds:
            where = node.holds.pop(dice.randrange(len(node.holds)))
            node.past.append(where)
            self._end(*where, dice.choices(_OUTCOMES, _OUTCOME_WEIGHTS)[0])

    def _write_again(self, dice: random.Random, name: str) -> None:
        """A reply was lost, or a zombie wakes up: the same write comes once more, or as another one."""
        past = [one for node in self.nodes for one in (*node.past, *node.holds)]
        if past:
            where, hold = dice.choice(past)
            what = dice.choice([self._end, self._hand_back_hold])
            what(where, hold)

    def _end(self, name: str, hold: Hold, outcome: Outcome | None = None) -> None:
        how = outcome or Outcome.succeeded()
        self.world.on_job(
            "finish",
            name,
            lambda doc: finishing.finish(
                doc, run=hold.run, fence=hold.fence, outcome=how, now=self.world.now, resolve=resolve
            ),
            run=hold.run,
            fence=hold.fence,
        )

    def _hand_back(self, dice: random.Random, name: str) -> None:
        node = dice.choice(self.nodes)
        if node.holds:
            where = node.holds.pop(dice.randrange(len(node.holds)))
            node.past.append(where)
            self._hand_back_hold(*where)

    def _hand_back_hold(self, name: str, hold: Hold) -> None:
        self.world.on_job(
            "hand back",
            name,
            lambda doc: finishing.hand_back(
                doc, run=hold.run, fence=hold.fence, now=self.world.now, reason="draining", resolve=resolve
            ),
            run=hold.run,
            fence=hold.fence,
        )

    def _sweep(self, dice: random.Random, name: str) -> None:
        """One step of a sweeper: bury, take one job over, or mark as swept what holds nothing any more."""
        for found in list(self.world.sessions.values()):
            if found.state is Life.LIVE and found.expires_at <= self.world.now:
                self.world.on_session(
                    "bury",
                    found.name,
                    partial(session.bury, now=self.world.now, reason="expired", seen=found.beats),
                )
                return
            if found.state is Life.DEAD:
                self._take_over(found.name)
                return

    def _take_over(self, dead: str) -> None:
        for job in self.world.jobs.values():
            if any(hold.session == dead for hold in job.active):
                take_over = partial(
                    finishing.take_over, session=dead, now=self.world.now, reason="its node died", resolve=resolve
                )
                self.world.on_job("take over", job.name, take_over)
                return
        self.world.on_session("swept", dead, lambda doc: session.swept(doc, now=self.world.now))

    # --- people ------------------------------------------------------------------------------------------------------

    def _trigger(self, dice: random.Random, name: str) -> None:
        request = f"r{dice.randrange(60)}"
        at = None if dice.random() < 0.7 else self.world.now + dice.randrange(600 * SECOND)
        job = self.world.jobs.get(name)
        shards = None if job is None else job.definition.shards
        shard = None if shards is None else dice.choice([None, 1 if isinstance(shards, int) else "us"])
        forgotten = job is not None and all(known.id != request for known in job.requests)
        if job is not None and forgotten and run_id(name, job.incarnation, "trigger", request) in self.world.recorded:
            return  # a client looks older requests up in the log before it asks
        self.world.on_job(
            "trigger",
            name,
            lambda doc: commands.trigger(
                doc, request=request, payload=None, at=at, now=self.world.now, resolve=resolve, shard=shard
            ),
            request=request,
        )

    def _cancel(self, dice: random.Random, name: str) -> None:
        job = self.world.jobs.get(name)
        runs = (
            []
            if job is None
            else [hold.run for hold in job.active] + [waiting_run.run for waiting_run in job.waiting_runs]
        )
        if runs:
            run = dice.choice([*runs, group_of(dice.choice(runs))])
            self.world.on_job(
                "cancel",
                name,
                lambda doc: commands.cancel(doc, run=run, reason="asked", now=self.world.now, resolve=resolve),
            )

    def _pause(self, dice: random.Random, name: str) -> None:
        until = None if dice.random() < 0.4 else self.world.now + dice.randrange(1800 * SECOND)
        self.world.on_job(
            "pause",
            name,
            lambda doc: commands.pause(
                doc, by=None, note=None, until=until, now=self.world.now, late_for=LATE_FOR, resolve=resolve
            ),
        )

    def _resume(self, dice: random.Random, name: str) -> None:
        self.world.on_job("resume", name, lambda doc: commands.resume(doc, now=self.world.now, resolve=resolve))

    def _define(self, dice: random.Random, name: str) -> None:
        self._define_as(name, definition(dice, self.world.now))

    def _define_as(self, name: str, new: Definition) -> None:
        proposal = registration.Proposal(definition=new, source=None)
        self.world.on_job(
            "define",
            name,
            lambda doc: registration.define(
                doc, proposal=proposal, now=self.world.now, late_for=LATE_FOR, resolve=resolve
            ),
        )

    def _remove(self, dice: random.Random, name: str) -> None:
        self.world.on_job(
            "remove",
            name,
            lambda doc: registration.remove(doc, now=self.world.now, late_for=LATE_FOR, resolve=resolve),
        )

    def _restore(self, dice: random.Random, name: str) -> None:
        self.world.on_job(
            "restore", name, lambda doc: registration.move_to_now(doc, fence=0, now=self.world.now, resolve=resolve)
        )

    # --- after the faults --------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """No more faults: the dead are swept, all is resumed and enabled, and one node works off what waits."""
        dice = random.Random(0)
        for node in self.nodes:
            node.forget()
        self.world.now = max([self.world.now, *(found.expires_at for found in self.world.sessions.values())]) + SECOND
        while any(found.state is not Life.SWEPT for found in self.world.sessions.values()):
            self._sweep(dice, "")
        self._begin_here()
        for name in list(self.world.jobs):
            self._resume(dice, name)
            job = self.world.jobs[name]
            if not job.definition.enabled:
                self._define_as(name, replace(job.definition, enabled=True))
        horizon = self.world.now + 1800 * SECOND
        for name in list(self.world.jobs):
            while (due := self.world.jobs[name].due_at) is not None and self.world.jobs[name].waiting:
                if due > horizon or not self._work_off(name, max(due, self.world.now)):
                    return  # it would go on forever: the checkers will say so
        for name in list(self.world.jobs):
            self._work_off(name, max(self.world.now, horizon))

    def _begin_here(self) -> None:
        new = Session(name="healer", node="healer", host="h", pid=1, lease=LEASE)
        self.world.on_session("begin", new.name, lambda doc: session.begin(doc, new, now=self.world.now))

    def _work_off(self, name: str, now: int) -> bool:
        """Claim and finish what is due by then; False when there is no end to it."""
        self.world.now = now
        sessions = tuple(self.world.sessions.values())
        by = claiming.Claimant(session="healer", node="healer", late_for=LATE_FOR, sessions=sessions, permit="scarce:0")
        for _ in range(4_000):
            job = self.world.jobs[name]
            if job.due_at is None or job.due_at > now:
                return True
            hold = self.world.on_job(
                "claim", name, lambda doc: claiming.claim(doc, now=now, by=by, resolve=resolve), by=by
            )
            if hold is not None:
                self._end(name, hold)
        return False


def play(first: int, codes: Iterable[int], *, heal: bool = True) -> Driver:
    """A world begun by one number and driven by others, then healed."""
    with small_queues():
        driver = Driver(first)
        for code in codes:
            driver.step(code)
        if heal:
            driver.heal()
    return driver


def definition(dice: random.Random, now: int) -> Definition:
    """Any policies; a healed world works off what is waiting, so ages and queues are kept small."""
    schedule: Schedule | None = dice.choice(
        [
            None,
            Every("5s"),
            Every("20s"),
            Every("1m"),
            Every("1h"),
            Cron("*/15 * * * *", tz="Europe/Paris"),
            Cron("30 2 * * *", tz="Europe/Paris", dst={"fold": dice.choice(["first", "last", "both"])}),
            At(datetime.fromtimestamp(now // SECOND + dice.randrange(1, 300), UTC)),
        ]
    )
    return Definition(
        handler="work",
        schedule=None if schedule is None else dump(schedule),
        retries=dice.choice([0, 0, 1, 3]),
        backoff=Backoff(first=dice.choice([0, 1, 30]), cap=60),
        on_crash=dice.choice(["retry", "retry", "fail"]),
        overlap=dice.choice([*map(Overlap, ("skip", "queue", "queue-all", "replace")), allow(2)]),
        catch_up=dice.choice(
            [CatchUp("skip"), CatchUp("latest"), CatchUp("all", 40), CatchUp("all", 5), CatchUp("all", 60, 900_000_000)]
        ),
        start_within=dice.choice([None, None, None, 10 * SECOND, 120 * SECOND]),
        enabled=dice.random() < 0.9,
        limit=dice.choice([None, None, "scarce:1"]),
        **dice.choice(_PLACING),
    )


_PLACING: list[dict[str, Any]] = [
    *({}, {}, {}, {"shards": 3}, {"shards": ("eu", "us")}),
    *({"nodes": 2}, {"nodes": "all"}, {"prefer": "last"}),
]
_OUTCOMES = [
    Outcome.succeeded(),
    Outcome.failed("it broke"),
    Outcome.timed_out("too slow"),
    Outcome.cancelled("asked"),
    Outcome.cancelled("shutdown", again=True),
]
_OUTCOME_WEIGHTS = [70, 15, 5, 5, 5]

_TABLE = [
    (18, Driver._wait),
    (1, Driver._outage),
    (1, Driver._step_back),
    (6, Driver._begin),
    (1, Driver._renew),
    (1, Driver._die),
    (30, Driver._claim),
    (16, Driver._finish),
    (4, Driver._write_again),
    (2, Driver._hand_back),
    (6, Driver._sweep),
    (3, Driver._trigger),
    (1, Driver._cancel),
    (1, Driver._pause),
    (3, Driver._resume),
    (0.5, Driver._define),
    (0.3, Driver._remove),
    (0.2, Driver._restore),
]
_WEIGHTS, EVENTS = [weight for weight, _ in _TABLE], [event for _, event in _TABLE]
