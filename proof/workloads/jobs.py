"""The jobs of a simulated world: drawn from the seed, declared by every node, and changed by every deploy."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from proof.simulator.options import Options
from proof.workloads.ledger import make_asked, make_body, make_poison
from solocron.clock import SECOND, iso
from solocron.jobs.decorators import cron, every
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.model.policy import Backoff, CatchUp, allow, catch_up_all
from solocron.scheduler import Scheduler
from solocron.testing.simulation.kernel import Process

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["Plan", "Workload", "policies", "unreadable"]

HANDOVER = 1.5
"""Seconds, at most, until a permit that was given back is in use again, or the next part of a slot is claimed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One job: when, under which policies, and what its body is like."""

    number: int
    period: float
    expressions: tuple[str, str] | None
    """A cron expression instead of the period, and what a deploy changes it to."""
    longest: float
    stoppable: bool
    policies: dict[str, Any]

    @property
    def name(self) -> str:
        return f"job-{self.number}"

    def changed(self, policies: dict[str, Any]) -> Plan:
        """The same with some policies set."""
        return replace(self, policies={**self.policies, **policies}) if policies else self

    @property
    def asks(self) -> bool:
        """Whether it has an `on_retry`."""
        return self.number % 2 == 0


class Workload:
    """The jobs that each version of the code declares: each version changes, adds and removes some."""

    def __init__(self, options: Options, dice: random.Random) -> None:
        self._poisoned = max(0, int(options.poison) - 1)
        self._lease = options.lease
        drawn = [_draw(number, options.lease, options.nodes, dice) for number in range(options.jobs + 1)]
        self.plans = _within_bounds(_within_the_limit(drawn, options.nodes), options)

    def of(self, version: int) -> list[Plan]:
        """The last two jobs take turns, so that each deploy adds one and removes one."""
        *always, one, other = self.plans
        return [*always, other if version % 2 else one]

    def declare(self, world: World, scheduler: Scheduler, process: Process, version: int) -> None:
        for plan in self.of(version):
            body = make_body(world, process, longest=plan.longest, stoppable=plan.stoppable)
            body.__qualname__ = plan.name
            changed = version and (version + plan.number) % 3 == 0
            policies = {"name": plan.name, **plan.policies}
            if plan.asks:
                policies["on_retry"] = make_asked(world, process)
            if changed and policies["shards"] is not None:
                policies["shards"] = 2  # a deploy may cut otherwise, beside nodes that do not know of it yet
            if plan.expressions is not None:
                when = cron(plan.expressions[1 if changed else 0], tz="Europe/Paris", **policies)
            else:
                when = every(plan.period * 2 if changed else plan.period, **policies)
            scheduler.discover(when(body))
        for number in range(self._poisoned):
            body = make_poison(world, process)
            body.__qualname__ = f"poison-{number}"
            scheduler.discover(every(self._lease, name=f"poison-{number}", retries=1)(body))

    def attempts(self) -> dict[str, int]:
        """Return how often each job may start a run."""
        most = {plan.name: 1 + plan.policies["retries"] for plan in self.plans}
        return most | {f"poison-{number}": 2 for number in range(self._poisoned)}


def _expressions(lease: float, dice: random.Random) -> tuple[str, str]:
    """By the minute, or in slow worlds by the hour and the day: 02:30 is skipped and repeated by the clock changes."""
    if lease <= 60:
        return "* * * * *", "*/2 * * * *"
    return dice.choice((("0 * * * *", "*/30 * * * *"), ("30 2 * * *", "0 3 * * *"), ("30 2 * * *", "30 2 * * *")))


def _draw(number: int, lease: float, nodes: int, dice: random.Random) -> Plan:
    stoppable = dice.random() < 0.5
    plan = Plan(
        number=number,
        period=dice.choice((lease / 3, lease, lease * 2, lease * 4, 60.0)),
        expressions=_expressions(lease, dice) if dice.random() < 0.2 else None,
        longest=dice.choice((0.5, lease, 3 * lease)),
        stoppable=stoppable,
        policies=policies(lease, dice, stoppable=stoppable),
    )
    # A slot of several parts or shards takes its time: one after the other, they must not come faster than that.
    several = "nodes" in plan.policies or plan.policies["shards"] is not None
    slowest = max(lease, _runs(plan, nodes) * HANDOVER)
    return replace(plan, period=max(plan.period, slowest)) if several else plan


def _within_the_limit(plans: list[Plan], nodes: int) -> list[Plan]:
    """The plans with the limit on no more jobs than it can carry: it is scarce, but what waits for it comes to run."""
    left, kept = 1.0, []
    for plan in plans:
        share = _runs(plan, nodes) * HANDOVER / (60.0 if plan.expressions else plan.period)
        if plan.policies["limit"] is None or share <= left:
            left -= 0.0 if plan.policies["limit"] is None else share
            kept.append(plan)
        else:
            kept.append(plan.changed({"limit": None}))
    return kept


def _within_bounds(plans: list[Plan], options: Options) -> list[Plan]:
    """The plans, some of them with a first or a last instant that comes while the world is under fire."""
    dice = random.Random(f"bounds {options.seed}")
    kept = []
    for plan in plans:
        span = options.hours * 3600
        first = dice.uniform(0.05, 0.5) * span
        # Long enough for two slots of the longer period that a deploy may choose.
        last = first + max(dice.uniform(0.1, 0.4) * span, 4 * plan.period)
        which = dice.choice(("", "", "", "starts", "ends", "both"))
        if plan.expressions is not None and which:
            which = "starts"  # a slot may be a day away: one always comes after a first instant
        bounds = {}
        if which in ("starts", "both"):
            bounds["starts"] = iso(round((options.start + first) * SECOND))
        if which in ("ends", "both"):
            bounds["ends"] = iso(round((options.start + last) * SECOND))
        kept.append(plan.changed(bounds))
    return kept


def _runs(plan: Plan, nodes: int) -> int:
    """Return how many runs a slot is at most."""
    placing = plan.policies
    return {"all": nodes, 2: 2}.get(placing.get("nodes"), 3 if placing["shards"] else 1)


def policies(lease: float, dice: random.Random, *, stoppable: bool) -> dict[str, Any]:
    """Any combination of what an owner may choose."""
    drawn: dict[str, Any] = {
        "retries": dice.choice((0, 1, 5)),
        "on_crash": dice.choice(("retry", "retry", "fail")),
        "overlap": dice.choice(("skip", "queue", "queue-all", "replace", allow(3))),
        "catch_up": dice.choice(("skip", "latest", "all", catch_up_all(limit=5, within=20 * lease))),
        "timeout": dice.choice((None, lease)),
        "start_within": dice.choice((None, None, 4 * lease)),
        "on_lost": "cancel" if stoppable else dice.choice(("cancel", "finish")),
        "on_stuck": dice.choice(("hold", "abandon")),
        "backoff": Backoff(first="1s", cap=lease),
        **_placing(dice),
    }
    return drawn | _further(drawn, random.Random(repr(sorted(drawn.items()))))


def _further(drawn: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Choices with dice of their own, made from the others: a new one changes no world that is known by its seed."""
    more: dict[str, Any] = {"pause_after": dice.choice((None, None, 2, 3))}
    if drawn["catch_up"] == "all":
        more["catch_up"] = dice.choice(("all", catch_up_all(rate="30/m"), catch_up_all(limit=20, rate="6/m")))
    elif isinstance(drawn["catch_up"], CatchUp):
        more["catch_up"] = dice.choice((drawn["catch_up"], replace(drawn["catch_up"], pace=2 * SECOND)))
    return more


def _placing(dice: random.Random) -> dict[str, Any]:
    """Draw the policies of placing: shards, nodes, preference, and a limit that jobs share."""
    limit = dice.choice((None, None, None, "scarce:2"))
    chosen: dict[str, Any] = dice.choice(
        ({}, {}, {}, {}, {"shards": 3}, {"shards": ("eu", "us")}, {"nodes": 2}, {"nodes": "all"}, {"prefer": "last"})
    )
    return {"limit": limit, "shards": None, **chosen}


def unreadable() -> Job:
    """A document that no code can make sense of, always due: it must hurt no other job."""
    definition = Definition(handler="job-0", schedule={"kind": "every", "period": "never"})
    return Job(name="unreadable", incarnation=0, definition=definition, cursor=0, due_at=0)
