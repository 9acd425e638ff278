"""Five berths on one store: in each a node, before each a proxy; a fault that hurts one has it to itself meanwhile."""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from proof.chaos.jobs.mixed import RELEASE
from proof.chaos.places import Place
from solocron import Scheduler
from solocron.errors import StoreUnavailable
from solocron.schedules import Schedule
from solocron.stores.contract import Store
from solocron.stores.url import make_store
from solocron.testing.fleet import Fleet, Replica, wait_until
from solocron.testing.proxy import ChaosProxy

__all__ = ["NODES", "Arena", "Berth", "Lender", "patience", "patient", "schedules_of"]

NODES = 5
PATIENT = timedelta(seconds=60)
T = TypeVar("T")


def patience(seconds: float = 60.0) -> float:
    """Return how long to wait for what a node does within a second or two on a machine that has nothing else to do."""
    return seconds * max(1.0, os.getloadavg()[0] / 4)


@contextmanager
def patient(url: str) -> Iterator[Store]:
    """A client for a judge: with the lease of its nodes a reply would have a second or less, and a log takes longer."""
    with closing(make_store(url, lease=PATIENT)) as store:
        wait_until(lambda: is_open(store), within=patience(), what="a store that answers")
        yield store


def schedules_of(fleet: Fleet) -> dict[str, Schedule]:
    """Return the schedule of each declared job."""
    return {declared.name: declared.schedule for declared in fleet.scheduler.registry}


def is_open(client: Store | Scheduler) -> bool:
    try:
        client.open()
    except StoreUnavailable:
        return False
    return True


@dataclass(eq=False, slots=True)
class Berth:
    """A place for one node; its proxy stays when the node is replaced."""

    number: int
    proxy: ChaosProxy | None
    replica: Replica = field(init=False)
    program: str | None = None
    """The program of its nodes; None: the fleet's own."""


class Lender(Generic[T]):
    """Lends things to one borrower at a time."""

    def __init__(self, things: Sequence[T]) -> None:
        self.things = tuple(things)
        self._lent: set[int] = set()
        self._changed = threading.Condition()

    @contextmanager
    def lend(
        self, n: int = 1, *, dice: random.Random | None = None, among: Sequence[T] | None = None
    ) -> Iterator[list[T]]:
        """`n` of them, as soon as so many are free."""
        wanted = self.things if among is None else tuple(among)

        def free() -> list[T]:
            return [thing for thing in wanted if id(thing) not in self._lent]

        with self._changed:
            self._changed.wait_for(lambda: len(free()) >= n)
            taken = dice.sample(free(), n) if dice else free()[:n]
            self._lent |= {id(thing) for thing in taken}
        try:
            yield taken
        finally:
            with self._changed:
                self._lent -= {id(thing) for thing in taken}
                self._changed.notify_all()


class Arena:
    """`release` is the one that new nodes get."""

    def __init__(self, place: Place, folder: Path, targets: Sequence[str], *, lease: float, nodes: int = NODES) -> None:
        self.place = place
        self.lease = lease
        self.release = "1"
        self._target = targets[0]
        self.fleet = Fleet(targets, store=place.url, folder=folder, lease=lease, max_running=32)
        self.berths = [Berth(n, ChaosProxy.for_url(place.url) if place.server else None) for n in range(1, nodes + 1)]
        self.store = make_store(place.url, lease=PATIENT)
        """The judge's client. With the nodes' lease a reply had half a second, and the whole log may take longer."""
        self.nodes = Lender(self.berths)
        self.wires = Lender(self.berths)
        self.server = Lender([place])
        self._names = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.store.close()
        self.fleet.close()
        for berth in self.berths:
            if berth.proxy is not None:
                berth.proxy.close()

    def start(self) -> None:
        """All at once on an empty store; then our own clients, whose first calls may be too slow while five begin."""
        self.fleet.wait_ready([self.fill(berth) for berth in self.berths], within=patience())
        for client in (self.fleet.scheduler, self.store):
            wait_until(partial(is_open, client), within=patience(), what="a store that answers")

    def fill(
        self,
        berth: Berth,
        *,
        env: Mapping[str, str] | None = None,
        failpoint: str | None = None,
        program: str | None = None,
    ) -> Replica:
        """Start a new node in a berth whose last one is gone; does not wait for it."""
        node = f"node-{next(self._names)}-at-{berth.number}"
        url = berth.proxy.through(self.place.url) if berth.proxy else self.place.url
        argv, program = None, program or berth.program
        if program is not None:
            argv = [*program.split(), self._target, f"--node={node}", f"--lease={self.lease:g}s"]
            argv.append(f"--events={self.fleet.folder / node}.events")
        env = {RELEASE: self.release, **(env or {})}
        berth.replica = self.fleet.spawn(node, store=url, env=env, failpoint=failpoint, argv=argv)
        return berth.replica

    def replace(self, berth: Berth) -> None:
        """An ordinary node, whatever is there now; ready when this returns, unless the store is away for long."""
        if berth.replica.alive:
            if berth.replica.frozen:
                berth.replica.thaw()
            berth.replica.term()
            berth.replica.wait(patience())
        self.fill(berth).wait_event("node started", within=patience())

    def freeze(self, replica: Replica) -> None:
        """Stop a node wherever it is; on a file, not while it keeps all the others from writing."""
        if self.place.server is None:
            self.fleet.freeze(replica)
        else:
            replica.stop()

    def busy(self, berths: Sequence[Berth], dice: random.Random) -> Berth:
        """One whose node is in the middle of a run, if there is one."""
        pids = {line.pid for line in self.fleet.ledger.open()}
        return dice.choice([berth for berth in berths if berth.replica.pid in pids] or list(berths))
