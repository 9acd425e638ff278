"""A broker between nodes and workers: it loses, doubles, delays and reorders messages, and refuses some.

Workers are processes of their own, which carry messages out. They are killed and frozen as nodes are. A message that
one of them has got is acknowledged already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proof.workloads.jobs import Plan
from solocron.clock import SECOND
from solocron.dispatch.carrier import Carriage, Message, NotAccepted
from solocron.scheduler import Scheduler
from solocron.scheduler.hooks import core_of
from solocron.testing.simulation.fleet import Member
from solocron.testing.simulation.kernel import SimEvent

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["CARRIER", "Broker", "behind_a_broker"]

CARRIER = "queue"
WORKERS = 3


def behind_a_broker(plans: list[Plan]) -> list[Plan]:
    """Return the plans with every other job behind the broker, without what speaks of nodes."""
    apart = {"limit": None, "nodes": None, "prefer": None}
    return [plan.changed({"run_in": CARRIER} | apart) if plan.number % 2 else plan for plan in plans]


class Broker:
    """The carrier of a world, and its workers."""

    follows = True

    def __init__(self, world: World, mean: float) -> None:
        self._world = world
        self._dice = world.dice
        self._mean = mean
        self._workers: dict[int, Member] = {}

    def declare(self, scheduler: Scheduler) -> None:
        if self._mean:
            pickup = round(3 * self._world.options.lease * SECOND)
            core_of(scheduler).carriers[CARRIER] = Carriage(name=CARRIER, carrier=self, pickup=pickup)

    def start(self, until: float) -> None:
        for number in range(WORKERS):
            self._renew(number)
        self._strike_later(until)

    # --- the queue -----------------------------------------------------------------------------------------------

    def publish(self, message: Message) -> None:
        """Take a message from a node, if it is not refused; the answer may be lost."""
        kinds = ("taken", "lost", "doubled", "refused", "no answer")
        kind = "taken" if self._world.calm else self._dice.choices(kinds, (12, 1, 2, 1, 1))[0]
        slowness = self._world.options.lease if not self._world.calm else 0.1  # seconds; in peace a backlog must end
        SimEvent(self._world.kernel).wait(self._dice.uniform(0, 0.1) * slowness)
        self._world.faults["broker"] += kind != "taken"
        if kind == "refused":
            raise NotAccepted("no room")
        for _ in range({"lost": 0, "doubled": 2}.get(kind, 1)):
            slow = self._dice.random() < 0.1 and not self._world.calm
            delay = self._dice.uniform(0, 5 if slow else 0.05) * slowness
            self._world.kernel.after(delay, self._deliver, message)
        if kind == "no answer":
            raise ConnectionError("reset by peer")

    def _deliver(self, message: Message) -> None:
        """Give a message to a worker, which has acknowledged it from then on."""
        member = self._workers[self._dice.randrange(WORKERS)]
        scheduler, world = member.scheduler, self._world

        def carry_out() -> None:
            world.guarded(lambda: world.patient(lambda: scheduler._carry_out(message, None)))

        if member.process.alive:
            member.process.spawn(carry_out, f"{member.process.name} message")

    # --- the workers ---------------------------------------------------------------------------------------------

    def _renew(self, number: int) -> None:
        """Start a worker, with the newest code."""
        self._workers[number] = self._world.join(f"w{number}.{self._world.starts}", declare=True)

    def _strike_later(self, until: float) -> None:
        at = self._world.kernel.now + self._dice.expovariate(1 / self._mean)
        if at < until:
            self._world.kernel.at(at, self._strike, until)

    def _strike(self, until: float) -> None:
        """Kill a worker and start another, or freeze one for less or more than a lease."""
        number = self._dice.randrange(WORKERS)
        process, lease = self._workers[number].process, self._world.options.lease
        if self._dice.random() < 0.5:
            process.kill()
            self._renew(number)
            self._world.faults["broker"] += 1
        elif process.freeze() and process.frozen:
            self._world.kernel.after(self._dice.choice((0.5, 1.1, 3.0)) * lease, process.thaw)
            self._world.faults["broker"] += 1
        self._strike_later(until)

    def heal(self) -> None:
        """Start every worker anew: those of an older deploy lack the functions of a newer one."""
        for number, member in list(self._workers.items()):
            member.process.kill()
            self._renew(number)
