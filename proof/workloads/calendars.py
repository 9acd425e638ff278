"""Business calendars in a simulated world: jobs that name one, and a planner that keeps changing the days off."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING

from proof.oracles.workdays import local_of
from proof.simulator.options import Options
from proof.workloads.jobs import Plan, policies
from solocron.errors import StoreError
from solocron.model.change import Kind, SmallDocument
from solocron.schedules import WEEKDAYS
from solocron.testing.simulation.kernel import SimEvent

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["CALENDARS", "Planner", "under_calendars"]

CALENDARS = ("works", "bank")
FIRST = 1_000
"""The number of the first job of this kind."""
MANY = 5
WEEKENDS = ((), ("sat", "sun"), ("sun",), ("mon",))


def under_calendars(options: Options, plans: Iterable[Plan]) -> list[Plan]:
    """The plans, some of them under a calendar that leaves days out, and before them some whose slots are moved."""
    dice = random.Random(f"calendars {options.seed}")
    kept = []
    for plan in plans:
        named = {"calendar": dice.choice(CALENDARS)} if dice.random() < 0.4 else {}
        bounded = "starts" in plan.policies or "ends" in plan.policies
        kept.append(plan if bounded else plan.changed(named))
    return [_moving(FIRST + number, options, dice) for number in range(MANY)] + kept


def _moving(number: int, options: Options, dice: random.Random) -> Plan:
    """A job with a slot a week, or a day, at a time that comes while the world is under fire; or every few hours."""
    seconds = 60 + options.start + dice.uniform(0, 0.9) * options.hours * 3600
    at = local_of(round(seconds * 1_000_000), europe=True)
    hours = dice.choice((None, 5, 7, 11)) if options.lease > 60 else None
    rule = dice.choice(("next", "previous"))
    # A day before or after: if that one is off, the slot may be moved to where it is seen.
    days = dice.choice((0, 1, 1, 1, 2)) * (-1 if rule == "next" else 1)
    weekday = (at + timedelta(days=days)).isoweekday() % 7
    expression = f"{at.minute} {at.hour} * * {dice.choice((weekday, weekday, weekday, '*'))}"
    stoppable = dice.random() < 0.5
    named = {"calendar": dice.choice(CALENDARS), "on_holiday": rule}
    return Plan(
        number=number,
        period=(hours or 24) * 3600.0,
        expressions=None if hours else (expression, expression),
        longest=0.5,
        stoppable=stoppable,
        policies={**policies(options.lease, dice, stoppable=stoppable), "limit": None, **named},
    )


class Planner:
    """A process that announces one revision after the other, over the same bad network."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = random.Random(f"planner {world.options.seed}")
        for name in CALENDARS if world.options.calendars else ():
            days = [WEEKDAYS.index(day) for day in self._dice.choice(WEEKENDS)]
            holidays = [[f"{day}", said] for day, said in self._days_off().items()]
            body = {"revision": 1, "weekend": days, "holidays": holidays}
            world.database.put(SmallDocument(kind=Kind.CALENDAR, name=f"{name}@1", body=body))
            world.database.put(SmallDocument(kind=Kind.CALENDAR, name=name, body={"revision": 1}))

    def start(self, mean: float, until: float) -> None:
        member = self._world.join("planner")
        nap = SimEvent(self._world.kernel)

        def live() -> None:
            while True:
                nap.wait(self._dice.expovariate(1 / mean))
                if self._world.kernel.now >= until:
                    return
                self._world.guarded(self._change)

        self._client = member.scheduler.open()
        member.process.spawn(live, "planner")

    def _change(self) -> None:
        """Another content for one of them; whatever becomes of it, it is not repeated."""
        name, weekend = self._dice.choice(CALENDARS), self._dice.choice(WEEKENDS)
        try:
            self._client.calendar(name, weekend=weekend, holidays=self._days_off())
        except StoreError:
            self._world.faults["request unanswered"] += 1
        else:
            self._world.faults["calendars"] += 1

    def _days_off(self) -> dict[date, str]:
        today = local_of(self._world.database.clock(), europe=True).date()
        days = [today + timedelta(days=ahead) for ahead in range(-2, 3)]
        return {day: f"day off {day}" for day in days if self._dice.random() < 0.35}
