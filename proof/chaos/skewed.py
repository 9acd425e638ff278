"""Three nodes on a store of three members, of which one has a clock that is five seconds ahead, or behind.

ZooKeeper's members run in a Java that believes libfaketime: the clock is off for real, and the leader's clock is the
store's. Members of etcd cannot be deceived: a relay before one shifts the time in its replies (`date_relay`), and each
node begins at another member. Nodes change members when one is killed, and the time steps under them.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path

from proof.chaos.arena import patience, patient, schedules_of
from proof.chaos.date_relay import DateRelay
from proof.chaos.figures import Figures
from proof.chaos.node_faults import LIBRARY
from proof.chaos.outage import starts_since
from proof.chaos.quorum import drain_and_judge, longest_silence
from proof.chaos.storm import Tell
from solocron.clock import SECOND, SystemClock
from solocron.stores.url import make_store
from solocron.testing.fleet import Fleet, Judge, Replica, wait_until
from solocron.testing.fleet.ledger import START
from tests.servers.base import Server
from tests.servers.clusters import CLUSTERS, Cluster
from tests.servers.seats import LOOPBACK, Seat

__all__ = ["HEAD_OF_SKEWED", "SKEW", "STORES", "row_of_skewed", "skewed"]

FAULT = "F31"
STORES = ("etcd", "zookeeper")
LEASE = 6.0
SKEW = 5.0
"""Seconds by which one member is ahead; then, in another cluster, behind."""
GONE = 1.5
"""Leases for which a member stays away."""
JOBS = "proof.chaos.jobs.beside"
SETTLED_WITHIN = 90.0
TICK = "1000"
"""Milliseconds, of ZooKeeper: followers give a silent leader up after four of these."""
ELECTION = 5.0
_boot = SystemClock().boot

HEAD_OF_SKEWED = (
    *("store", "one member", "slots", "twice", "lost", "stale accepted", "before their time by the judge's clock"),
    *("takeover from its node, s", "takeover from another, s", "no start, s: it is killed", "another is killed"),
)


def row_of_skewed(figures: Figures) -> tuple[str, ...]:
    """Return the row of a table."""
    return (
        figures.store,
        figures.notes[0],
        f"{figures.slots:,}",
        *(str(n) for n in (figures.duplicates, figures.losses, figures.stale_accepted, figures.early)),
        *(f"{seconds:.1f}" for seconds in (*figures.takeovers, *figures.returns)),
    )


def skewed(name: str, folder: Path, *, tell: Tell, skew: float = SKEW, gone: float = GONE) -> Figures:
    """Kill the node at the wrong clock, one at a right clock, the wrong member, and a right one."""
    figures = Figures(store=name, scenario="skewed" if skew > 0 else "skewed-back")
    figures.notes.append(f"{abs(skew):g} s {'ahead' if skew > 0 else 'behind'}")
    began = _boot()
    with _cluster(name, skew) as (cluster, wrong, hosts):
        path = cluster.fresh_url().rpartition("/")[2]
        urls = [f"{name}://{','.join([*hosts[i:], *hosts[:i]])}/{path}" for i in range(len(hosts))]
        at = cluster.members.index(wrong)
        right = urls[(at + 1) % len(urls)]
        with Fleet([JOBS], store=right, folder=folder, lease=LEASE) as fleet, patient(right) as store:
            nodes = [fleet.spawn(store=url) for url in urls]
            fleet.wait_ready(nodes, within=patience())
            judge = Judge(ledger=fleet.ledger, store=store, schedules=schedules_of(fleet), incidents=fleet.incidents)
            judge.open()
            off = _told_by(hosts[at]) if name == "etcd" else _told_by_leader(right)
            tell(f"        the clock of one member is off by {off:.1f} s")
            if abs(off - skew) > 1.5:
                figures.faults.append(f"the clock of one member was to be off by {skew:g} s, and is by {off:.1f} s")
            for url, which in ((urls[at], nodes[at]), (right, nodes[(at + 1) % len(nodes)])):
                _kill_node(fleet, which, figures, tell)
                fleet.wait_ready([fleet.spawn(store=url)], within=patience())
            for word, member in (("it", wrong), ("another", None)):
                _kill_member(fleet, member or _other(cluster, right, wrong), cluster, figures, word, gone, tell)
            judge.close()
            figures.seconds = round(_boot() - began, 1)
            if not judge.wait_settled(SETTLED_WITHIN, recorded=True):
                figures.faults.append(f"{len(judge.missing())} slots wait {SETTLED_WITHIN:g} s after the last blow")
            figures.tier = str(store.capabilities.tier)
            _conclude(fleet, judge, figures, LEASE + ELECTION + abs(skew) + 1.0)
        figures.version = f"{cluster.kind.__name__} {cluster.members[0].version()}"
    return figures


@contextmanager
def _cluster(name: str, skew: float) -> Iterator[tuple[Cluster, Server, list[str]]]:
    """A cluster, its member with the wrong clock, and the members' addresses as nodes are to know them."""
    seats = [LOOPBACK] * 3
    if name == "zookeeper":
        fake = ("env", f"LD_PRELOAD={LIBRARY}", f"FAKETIME={skew:+g}s", "DONT_FAKE_MONOTONIC=1")
        seats[2] = Seat(LOOPBACK.host, LOOPBACK.peer, fake)
    with ExitStack() as stack:
        cluster = CLUSTERS[name](seats)
        if name == "zookeeper":  # not what is measured here, and a short one makes no quorum on a busy machine
            for member in cluster.members:
                member.settings["tickTime"] = TICK
        stack.enter_context(cluster)
        if name == "zookeeper":
            _make_leader(cluster, cluster.members[2])
        hosts = [f"{one.seat.host}:{one.port}" for one in cluster.members]
        wrong = cluster.members[2]
        if name == "etcd":
            relay = stack.enter_context(DateRelay(wrong.seat.host, wrong.port, skew))
            hosts[2] = f"127.0.0.1:{relay.port}"
        yield cluster, wrong, hosts


def _make_leader(cluster: Cluster, wanted: Server) -> None:
    """Restart leaders until the last member leads: of equals the one with the highest number does. Its clock counts."""
    for _ in range(10):
        leader = cluster.leader(cluster.fresh_url())
        if leader is wanted:
            return
        leader.restart()
        cluster.settle()
    raise RuntimeError("the member with the wrong clock does not become the leader")


def _told_by(host: str) -> float:
    """Return the seconds by which the time that a member of etcd tells its clients is ahead."""
    with urllib.request.urlopen(f"http://{host}/version", timeout=5) as reply:
        return parsedate_to_datetime(reply.headers["Date"]).timestamp() - time.time()


def _told_by_leader(url: str) -> float:
    """Return the seconds by which the clock of the store is ahead."""
    with closing(make_store(url)) as store:
        store.open()
        return store.clock() / SECOND - time.time()


def _other(cluster: Cluster, url: str, wrong: Server) -> Server:
    """Return the leader if it is not the wrong one; else another."""
    leader = cluster.leader(url)
    return leader if leader is not wrong else next(one for one in cluster.members if one is not wrong)


def _kill_node(fleet: Fleet, victim: Replica, figures: Figures, tell: Tell) -> None:
    """Kill a node in the middle of a run; note how long after that the last of its runs starts elsewhere."""

    def left() -> set[str]:
        return {line.run for line in fleet.ledger.open() if line.pid == victim.pid}

    wait_until(left, within=patience(), what=f"runs of {victim!r}")
    victim.kill()
    killed, runs = _boot(), left()

    def taken_over() -> list[float]:
        lines = [line for line in fleet.ledger.lines(event=START) if line.pid != victim.pid and line.run in runs]
        return [line.at for line in lines] if {line.run for line in lines} == runs else []

    found = wait_until(taken_over, within=patience(90), what="the takeover of its runs") if runs else [killed]
    figures.takeovers.append(round(max(found) - killed, 2))
    tell(f"        {victim.node} killed with {len(runs)} runs, taken over {figures.takeovers[-1]:.1f} s later")


def _kill_member(
    fleet: Fleet, member: Server, cluster: Cluster, figures: Figures, word: str, gone: float, tell: Tell
) -> None:
    peace = _boot()
    wait_until(lambda: starts_since(fleet, peace) > 8, within=patience(), what="starts in peace")
    member.kill9()
    dead = _boot()
    threading.Event().wait(gone * LEASE)
    member.restart()
    back = _boot()
    cluster.settle()
    wait_until(lambda: starts_since(fleet, back) > 8, within=patience(), what="starts after the member's return")
    silence = longest_silence(fleet, dead)
    figures.returns.append(round(silence, 2))
    figures.struck[FAULT] = figures.struck.get(FAULT, 0) + 1
    tell(f"        {word} is killed for {gone * LEASE:g} s: no start for {silence:.1f} s")


def _conclude(fleet: Fleet, judge: Judge, figures: Figures, bound: float) -> None:
    """A body that starts by a clock that is ahead starts before its time by the others: counted, and no fault."""
    verdict = drain_and_judge(fleet, judge, figures)
    figures.faults += [text for text in verdict.faults if not text.startswith("early: ")]
    slow = [seconds for seconds in (*figures.takeovers, *figures.returns) if seconds > bound]
    figures.faults += [
        f"{seconds:.1f} s, and lease, election, the clocks' difference and a second are {bound:g}" for seconds in slow
    ]
