"""Three nodes on a store of three members, whose leader is killed, frozen, and cut off, one after the other.

Each member is in a network of its own. A leader that is cut off from its peers alone still answers clients: what it
tells or takes then must not count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

from proof.chaos.arena import patience, patient, schedules_of
from proof.chaos.failover import drain, in_the_middle
from proof.chaos.figures import Figures
from proof.chaos.outage import starts_since
from proof.chaos.storm import Tell
from solocron.clock import SystemClock
from solocron.testing.fleet import Fleet, FleetVerdict, Judge, wait_until
from solocron.testing.fleet.ledger import START
from tests.servers.base import Server
from tests.servers.clusters import CLUSTERS, Cluster
from tests.servers.seats import Wires

__all__ = ["HEAD_OF_QUORUM", "LEASE", "drain_and_judge", "longest_silence", "quorum", "row_of_quorum"]

FAULT = "F30"
LEASE = 6.0
JOBS = "proof.chaos.jobs.beside"
NODES = 3
GONE = 1.5
"""Leases for which a leader stays away."""
SETTLED_WITHIN = 90.0
_boot = SystemClock().boot

Blow = Callable[[Cluster, Wires, Server], AbstractContextManager[None]]


@contextmanager
def _killed(cluster: Cluster, wires: Wires, leader: Server) -> Iterator[None]:
    leader.kill9()
    yield
    leader.restart()


@contextmanager
def _frozen(cluster: Cluster, wires: Wires, leader: Server) -> Iterator[None]:
    leader.freeze()
    yield
    leader.thaw()


@contextmanager
def _cut_off(cluster: Cluster, wires: Wires, leader: Server, *, clients: bool) -> Iterator[None]:
    wires.cut(leader.seat, clients=clients)
    yield
    wires.mend(leader.seat)


BLOWS: dict[str, Blow] = {
    "killed": _killed,
    "frozen": _frozen,
    "cut off from its peers": partial(_cut_off, clients=False),
    "cut off": partial(_cut_off, clients=True),
}


HEAD_OF_QUORUM = (
    *("store", "slots", "twice", "lost", "stale accepted", "stale refused"),
    *(f"{word}, s" for word in (*BLOWS, "killed with a node")),
    "takeover then, s",
)


def row_of_quorum(figures: Figures) -> tuple[str, ...]:
    """Return the row of a table: after each blow, the longest time without a start."""
    return (
        figures.store,
        f"{figures.slots:,}",
        *(str(n) for n in (figures.duplicates, figures.losses, figures.stale_accepted, figures.stale_refused)),
        *(f"{seconds:.1f}" for seconds in figures.returns),
        f"{max(figures.takeovers, default=0.0):.1f}",
    )


def quorum(name: str, folder: Path, *, tell: Tell) -> Figures:
    """After each blow: seconds until the next start. At the last death of the leader a node dies with it."""
    figures = Figures(store=name, scenario="quorum")
    began = _boot()
    with Wires() as wires, CLUSTERS[name](wires.seats) as cluster:
        url = cluster.fresh_url()
        with Fleet([JOBS], store=url, folder=folder, lease=LEASE) as fleet, patient(url) as store:
            fleet.start(NODES)
            judge = Judge(ledger=fleet.ledger, store=store, schedules=schedules_of(fleet), incidents=fleet.incidents)
            judge.open()
            for word, blow in BLOWS.items():
                _strike(fleet, cluster, wires, url, figures, word, blow, tell)
            _strike(fleet, cluster, wires, url, figures, "killed with a node", _killed, tell, with_a_node=True)
            judge.close()
            figures.seconds = round(_boot() - began, 1)
            if not judge.wait_settled(SETTLED_WITHIN, recorded=True):
                figures.faults.append(f"{len(judge.missing())} slots wait {SETTLED_WITHIN:g} s after the last blow")
            figures.tier = str(store.capabilities.tier)
            _conclude(fleet, judge, figures, cluster.election)
        figures.version = f"{cluster.kind.__name__} {cluster.members[0].version()}"
    return figures


def _strike(
    fleet: Fleet,
    cluster: Cluster,
    wires: Wires,
    url: str,
    figures: Figures,
    word: str,
    blow: Blow,
    tell: Tell,
    *,
    with_a_node: bool = False,
) -> None:
    peace = _boot()
    wait_until(lambda: starts_since(fleet, peace) > 8, within=patience(), what="starts in peace")
    leader = cluster.leader(url)
    victim = in_the_middle(fleet) if with_a_node else None
    with blow(cluster, wires, leader):
        gone = _boot()
        if victim is not None:
            victim.kill()
        threading.Event().wait(GONE * LEASE)
    back = _boot()
    cluster.settle()
    wait_until(lambda: starts_since(fleet, back) > 8, within=patience(), what="starts after the leader's return")
    silence = longest_silence(fleet, gone)
    figures.returns.append(round(silence, 2))
    figures.struck[FAULT] = figures.struck.get(FAULT, 0) + 1
    figures.notes.append(f"leader {word}: no start for {silence:.1f} s")
    tell(f"        {figures.notes[-1]}")
    if silence > LEASE + cluster.election + 1.0:
        figures.faults.append(f"{figures.notes[-1]}, and {LEASE + cluster.election + 1:g} s are the bound")


def longest_silence(fleet: Fleet, since: float) -> float:
    """Return the longest time without a start that ended after a blow, which may have begun a little before it."""
    starts = sorted(line.at for line in fleet.ledger.lines(event=START) if since - 2.0 < line.at)
    return max(after - before for before, after in pairwise(starts) if after > since)


def drain_and_judge(fleet: Fleet, judge: Judge, figures: Figures) -> FleetVerdict:
    """Drain the nodes and put the counts of the judge into the figures; what it calls a fault is the caller's."""
    drain(fleet, figures)
    verdict = judge.verdict()
    figures.add(verdict)
    figures.kills = sum(1 for incident in fleet.incidents if incident.kind == "kill")
    return verdict


def _conclude(fleet: Fleet, judge: Judge, figures: Figures, election: float) -> None:
    verdict = drain_and_judge(fleet, judge, figures)
    figures.takeovers = list(verdict.takeovers)
    figures.faults += verdict.faults
    if not figures.takeovers:
        figures.faults.append("no takeover was measured")
    elif max(figures.takeovers) > LEASE + election + 1.0:
        figures.faults.append(f"a takeover through the leader's death took {max(figures.takeovers):.2f} s")
