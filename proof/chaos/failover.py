"""Three living nodes on a PostgreSQL that fails over five times, and loses what its standby did not have.

Two nodes know both servers by their URL, one goes by an address that is moved. Asynchronous replication loses the
commits of up to five seconds each time; with `remote_apply` the same cuts must lose nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from proof.chaos.canary import Canary
from proof.chaos.figures import Figures
from proof.chaos.recall import Findings, Recall, first_start, said
from proof.chaos.scenarios import LEASE
from proof.chaos.storm import Tell
from solocron.clock import SystemClock
from solocron.testing.fleet import Fleet, Replica, wait_until
from solocron.testing.proxy import ChaosProxy
from tests.servers.standby import Pair

__all__ = ["FAULT", "LOSSES", "conclude", "drain", "failover", "in_the_middle", "resumed", "within"]

FAULT = "F26"
LOSSES = (0.3, 5.0, 1.0, 3.0, 2.0)
"""Seconds that the standby is behind when it is promoted, in this order."""
PEACE = 2.0
"""Seconds in which each node has renewed its lease, with everything in order, before the next cut."""
SETTLED_WITHIN = 60.0
JOBS = "proof.chaos.jobs.going_back"
ALARMS = ("loop error", "job blocked")
_boot = SystemClock().boot


def within(lease: float) -> float:
    """Seconds from the store's return to the first start (I23): a beat and a second, and the barrier, which is the
    longest time between two renewals: another beat, and a timeout of at most two seconds."""
    return 2 * lease / 3 + 3.0


def failover(
    folder: Path,
    *,
    tell: Tell,
    synchronous: bool = False,
    kill: bool = False,
    losses: Sequence[float] = LOSSES,
    lease: float = LEASE,
) -> Figures:
    """`kill`: with the primary a node dies each time; what it alone remembers is gone, and another takes its place."""
    scenario = "failover-sync" if synchronous else "failover-kill" if kill else "failover-async"
    figures = Figures(store="postgres", scenario=scenario)
    began = _boot()
    with (
        Pair(synchronous=synchronous) as pair,
        ChaosProxy(ChaosProxy.host, pair.primary.port) as address,
        Fleet([JOBS], store=pair.url, folder=folder, lease=lease) as fleet,
    ):
        moved = address.through(f"postgresql://solocron@127.0.0.1:{pair.primary.port}/postgres")
        fleet.wait_ready([fleet.spawn(store=url) for url in (pair.url, pair.url, moved)])
        judge = Recall(fleet)
        judge.open()
        with Canary(pair.url) as canary:
            for loss in losses:
                pair.attach()
                threading.Event().wait(PEACE)
                pair.cut()
                threading.Event().wait(loss)
                victim = in_the_middle(fleet) if kill else None
                pair.primary.kill9()
                if victim is not None:
                    victim.kill()
                gone = _boot()
                pair.fail_over()
                address.redirect(pair.primary.port)
                _note(figures, fleet, canary.lost(), gone=gone, back=_boot(), lease=lease, tell=tell)
                if victim is not None:
                    fleet.wait_ready([fleet.spawn(store=pair.url)])
        judge.close()
        figures.seconds = round(_boot() - began, 1)
        if not judge.wait_settled(SETTLED_WITHIN, recorded=True):
            figures.notes.append(f"not everything is on record {SETTLED_WITHIN:g} s after the last failover")
        drain(fleet, figures)
        conclude(fleet, judge.find(_dead(fleet)), figures, tell)
    if synchronous:
        figures.struck = {FAULT: len(losses)}
        figures.faults += [f"{n} acknowledged commits lost in spite of remote_apply" for n in figures.commits_lost if n]
    else:
        figures.note_strikes({FAULT: sum(1 for n in figures.commits_lost if n)})
        figures.faults += ["a failover lost nothing: it proves nothing" for n in figures.commits_lost if not n]
        if not figures.said:
            figures.faults.append("the store went back, and no log has a line about it")
    return figures


def _note(
    figures: Figures, fleet: Fleet, lost: Sequence[float], *, gone: float, back: float, lease: float, tell: Tell
) -> None:
    """One failover: what was truly lost, and how long until the first start."""
    figures.restarts += 1
    figures.commits_lost.append(len(lost))
    figures.seconds_lost.append(round(gone - lost[0], 2) if lost else 0.0)
    resumed(figures, fleet, back, lease)
    tell(
        f"failover: {len(lost)} acknowledged commits of {figures.seconds_lost[-1]:g} s lost, away for "
        f"{back - gone:.1f} s, first start {figures.returns[-1]:.2f} s after its return"
    )


def resumed(figures: Figures, fleet: Fleet, back: float, lease: float) -> None:
    """Wait for the first start after the store's return. Late is a fault; if none comes, do what a person would do."""
    patience = 3 * lease
    try:
        first = wait_until(lambda: first_start(fleet, back), within=patience, what="a start after the store's return")
    except TimeoutError:
        figures.returns.append(patience)
        figures.faults.append(
            f"I23: nothing started within {patience:g} s of the store's return, until a person helped"
        )
        fleet.scheduler.open().restored()
        return
    figures.returns.append(round(first.at - back, 2))
    if figures.returns[-1] > within(lease):
        figures.faults.append(f"I23: the first start came {figures.returns[-1]:g} s after the store's return")


def drain(fleet: Fleet, figures: Figures) -> None:
    """Let all that live end in order; whatever ended otherwise, or told of what must not be, is a fault."""
    for replica in fleet.alive():
        replica.term()
    for replica in fleet.alive():
        with suppress(TimeoutError):
            replica.wait(60)
    killed = {incident.pid for incident in fleet.incidents if incident.kind == "kill"}
    for replica in fleet.replicas:
        if replica.process.returncode != 0 and replica.pid not in killed:
            figures.faults.append(f"did not drain: {replica!r}: {replica.log()[-500:]}")
        told = {event["event"]: event for event in replica.events() if event["event"] in ALARMS}
        figures.faults += [f"{replica!r}: {name}: {event.get('error')}"[:500] for name, event in told.items()]


def conclude(fleet: Fleet, found: Findings, figures: Figures, tell: Tell) -> None:
    """Add what a judge has found."""
    lines = said(fleet.replicas)
    figures.slots += found.slots
    figures.attempts_twice_once += found.attempts_twice["once"]
    figures.attempts_twice_again += found.attempts_twice["again"]
    figures.slots_twice_once += found.slots_twice["once"]
    figures.slots_twice_again += found.slots_twice["again"]
    figures.duplicates += sum(found.slots_twice.values())
    figures.excused += found.excused
    figures.fences_twice += found.fences_twice
    figures.losses += found.lost
    figures.unrecorded += found.unrecorded
    figures.misrecorded += found.misrecorded
    figures.said += len(lines)
    figures.kills += sum(1 for incident in fleet.incidents if incident.kind == "kill")
    figures.notes += [line.partition(" ")[2].partition(" ")[2] for line in lines[:1]]
    figures.faults += found.faults
    tell(f"{found.slots} slots, {sum(found.attempts_twice.values())} attempts twice, {len(lines)} lines say so")


def in_the_middle(fleet: Fleet) -> Replica:
    """Return a node with runs under way."""

    def look() -> Replica | None:
        pids = {line.pid for line in fleet.ledger.open()}
        return next((replica for replica in fleet.alive() if replica.pid in pids), None)

    return wait_until(look, within=30, what="a node in the middle of a run")


def _dead(fleet: Fleet) -> set[int]:
    return {incident.pid for incident in fleet.incidents if incident.kind == "kill"}
