"""Strikes at what is running: processes, the network, the store, clocks, deploys. Counts only what really happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proof.simulator.options import STRIKES

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["FAILPOINTS", "Nemesis"]

FAILPOINTS = ("claiming", "claimed", "begun", "body-ended", "finishing", "finished", "renewing", "buried")
NEVER_FROZEN = ("begun",)
"""Between the engine's last look and the body's first line: a node frozen there starts a body when it thaws, as a
thread would that was stopped between two instructions. Killing is fine."""


class Nemesis:
    """One for each world; draws when and whom from the world's dice."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = world.dice
        self._lease = world.options.lease

    def unleash(self, until: float) -> None:
        for fault in STRIKES:
            mean = getattr(self._world.options, fault)
            if mean and fault not in ("request", "tick", "run_now", "calendars", "pauses", "broker"):
                self._again(fault, mean, until)

    def _again(self, fault: str, mean: float, until: float) -> None:
        at = self._world.kernel.now + self._dice.expovariate(1 / mean)
        if at < until:
            self._world.kernel.at(at, self._strike, fault, mean, until)

    def _strike(self, fault: str, mean: float, until: float) -> None:
        self._world.faults[fault] += bool(getattr(self, fault)())
        self._again(fault, mean, until)

    def _some(self) -> int | None:
        members = self._world.members
        return self._dice.choice(sorted(members)) if members else None

    # --- processes -----------------------------------------------------------------------------------------------

    def freeze(self, *, suspend: bool = False) -> bool:
        """SIGSTOP for less, about, and more than a lease."""
        number = self._some()
        if number is None:
            return False
        process = self._world.members[number].process
        frozen = process.freeze(suspend=suspend) and process.frozen
        if frozen:
            self._world.kernel.after(self._dice.choice((0.5, 0.9, 1.1, 2.0, 5.0)) * self._lease, process.thaw)
        return frozen

    def suspend(self) -> bool:
        """The machine sleeps: boot time goes on, the clock of waits does not."""
        return self.freeze(suspend=True)

    def kill(self) -> bool:
        """kill -9, and a start after that."""
        number = self._some()
        if number is None:
            return False
        process = self._world.members[number].process
        self._world.kill(number)
        self._world.kernel.after(self._dice.uniform(0, 3 * self._lease), self._world.back, number)
        return not process.alive

    def failpoint(self) -> bool:
        """Arm a place in the engine where the node dies or freezes the next time it comes by; counted when it does."""
        number = self._some()
        if number is None:
            return False
        member = self._world.members[number]
        place = self._dice.choice(FAILPOINTS)
        dies = place in NEVER_FROZEN or self._dice.random() < 0.6

        def reached() -> None:
            if self._world.calm or self._world.members.get(number) is not member:
                return
            self._world.faults["failpoint"] += 1
            if dies:
                self._world.kill(number)
                self._world.kernel.after(self._dice.uniform(0, 3 * self._lease), self._world.back, number)
            else:
                member.process.freeze()
                self._world.kernel.after(self._dice.uniform(0, 3 * self._lease), member.process.thaw)

        member.runtime.failpoints[place] = reached
        return False

    def drain(self) -> bool:
        """SIGTERM, and a start after that."""
        number = self._some()
        if number is None:
            return False
        self._world.stop_node(number, lambda: self._world.back(number))
        return True

    def deploy(self) -> bool:
        """Old and new code together: one node after the other is replaced."""
        self._world.version += 1
        for step, number in enumerate(sorted(self._world.members)):
            self._world.kernel.after(step * self._lease / 2, self._replace, number)
        return True

    def _replace(self, number: int) -> None:
        self._world.stop_node(number, lambda: self._world.back(number))

    # --- the network, the store, its clock -----------------------------------------------------------------------

    def partition(self) -> bool:
        """Cut some or all nodes off from the store, in both directions or only for replies."""
        members, network = self._world.members, self._world.network
        count = self._dice.randint(1, max(1, len(members)))
        chosen = self._dice.sample(sorted(members), min(count, len(members)))
        names = sorted(members[number].process.name for number in chosen)
        cut = network.cut_off if self._dice.random() < 0.7 else network.deaf
        cut.update(names)
        self._world.kernel.after(self._dice.choice((0.5, 1.5, 4.0)) * self._lease, cut.difference_update, names)
        return bool(names)

    def store_restart(self, forgets: int = 0) -> bool:
        """Down for a while; what was not committed is gone."""
        database = self._world.database
        if not database.up:
            return False
        database.up = False
        gone = database.restart(forgets)
        self._world.kernel.after(self._dice.uniform(0, 2 * self._lease), self._up)
        return gone > 0 or not forgets

    def _up(self) -> None:
        self._world.database.up = True

    def forget(self) -> bool:
        """A crash of a store that had not synced its last commits: no tier-A store does this."""
        return self.store_restart(self._dice.randint(1, 40))

    def failover(self) -> bool:
        """The primary dies, and a standby that was behind by some seconds is promoted."""
        lost = self._dice.choice((0.0, 0.02, 0.1, 0.3, 0.7, 1.5)) * self._lease
        return self._go_back(lost, failover=True, away=self._dice.choice((0.02, 0.1, 0.3, 0.8, 1.5)) * self._lease)

    def restore(self) -> bool:
        """Put a backup in the place of the store's contents."""
        lost = self._dice.choice((0.4, 0.8, 1.5, 1.9, 4.0, 9.0)) * self._lease
        return self._go_back(lost, failover=False, away=self._dice.choice((0.0, 0.05, 0.5)) * self._lease)

    def _go_back(self, lost: float, *, failover: bool, away: float) -> bool:
        world = self._world
        if not world.database.up:
            return False
        world.going_back.happens(lost, failover=failover)
        if away:
            world.database.up = False
            world.kernel.after(away, self._up)
        return True

    def clock_step(self) -> bool:
        self._world.database.step += self._dice.choice((-30.0, -1.0, 1.0, 30.0, self._lease / 2, 2 * self._lease))
        return True
