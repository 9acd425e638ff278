"""A backup is put back under living nodes: three that are busy, and three in a namespace of their own that are quiet.

To the quiet ones another comes just when the store has gone back: it remembers nothing, and must not be the first.

In each way that the store knows it is done twice. Once the backup is some seconds old, more than a beat and less than
two leases: the nodes remember what was lost, and go on by themselves. Once it is older: they stop until an operator has
called `solocron restored`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from proof.chaos.failover import FAULT, conclude, drain, resumed
from proof.chaos.figures import Figures
from proof.chaos.jobs.quiet import PERIOD
from proof.chaos.places import Place
from proof.chaos.recall import Recall
from proof.chaos.scenarios import LEASE
from proof.chaos.storm import Tell
from proof.chaos.vaults import SETTINGS, Vault, vault_of
from solocron.clock import SystemClock
from solocron.scheduler import Scheduler
from solocron.testing.fleet import Fleet
from solocron.testing.fleet.ledger import START
from solocron.testing.proxy import ChaosProxy

__all__ = ["restore"]

SHALLOW, DEEP = 1.0, 3.0
"""Ages of the backup, in leases."""
BEYOND = 2.0
"""Leases that nodes remember."""
BEFORE = 0.7
"""Seconds from the backup to the next slot of the quiet jobs: it is in what is lost."""
AFTER = 0.5
"""Seconds from that slot to the restore, at least."""
WATCHED = 4.0
"""Seconds in which nodes that must not go on are watched."""
CLAIMED = 1.0
"""Seconds after the restore in which a body may still start that was claimed before."""
SETTLED_WITHIN = 60.0
TRIES = 5
JOBS = {"busy": "proof.chaos.jobs.going_back", "quiet": "proof.chaos.jobs.quiet"}
_boot = SystemClock().boot


def restore(
    name: str, folder: Path, *, tell: Tell, ways: Sequence[str] | None = None, ages: Sequence[float] = (SHALLOW, DEEP)
) -> Figures:
    figures = Figures(store=name, scenario="restore")
    began = _boot()
    with ExitStack() as stack:
        place = stack.enter_context(Place(name, settings=SETTINGS.get(name)))
        door = stack.enter_context(ChaosProxy.for_url(place.url)) if place.server else None
        fleets = {}
        for namespace, jobs in JOBS.items():
            (folder / namespace).mkdir()
            fleet = Fleet([jobs], store=place.url, folder=folder / namespace, namespace=namespace, lease=LEASE)
            fleets[namespace] = stack.enter_context(fleet)
        url = door.through(place.url) if door else place.url
        fresh = {fleet: [fleet.spawn(store=url) for _ in range(3)] for fleet in fleets.values()}
        for fleet, replicas in fresh.items():
            fleet.wait_ready(replicas)
        judges = {namespace: Recall(fleet) for namespace, fleet in fleets.items()}
        for judge in judges.values():
            judge.open()
        vault = vault_of(place)
        struck = 0
        for way in ways or vault.ways:
            for age in ages:
                back = _put_back(vault, way, age * LEASE, door, figures, tell)
                newcomer = fleets["quiet"].spawn(store=url)
                struck += not vault.marked()
                if age > BEYOND:
                    back = _told(place, fleets["busy"], back, figures, tell)
                resumed(figures, fleets["busy"], back, LEASE)
                fleets["quiet"].wait_ready([newcomer])
        figures.note_strikes({FAULT: struck})
        figures.seconds = round(_boot() - began, 1)
        for namespace, judge in judges.items():
            scheduler = Scheduler(place.url, namespace=namespace, enabled=True)
            stack.callback(scheduler.stop)
            judge.look_again(scheduler)
            judge.close()
            if not judge.wait_settled(SETTLED_WITHIN, recorded=True):
                figures.notes.append(f"{namespace}: not everything is on record {SETTLED_WITHIN:g} s after the end")
            drain(fleets[namespace], figures)
            conclude(fleets[namespace], judge.find(), figures, tell)
        figures.version = place.version()
    if not figures.said:
        figures.faults.append("the store went back, and no log has a line about it")
    return figures


def _put_back(vault: Vault, way: str, age: float, door: ChaosProxy | None, figures: Figures, tell: Tell) -> float:
    """Restore when the backup is of that age; return when the store was back, in boot time."""
    kept, slot = _back_up(vault, way)
    vault.mark()
    threading.Event().wait(max(0.0, kept + age - _boot(), slot + AFTER - _boot()))
    gone = _boot()
    with _shut(door if way not in vault.open else None):
        vault.restore(way)
    back = _boot()
    figures.restarts += 1
    figures.seconds_lost.append(round(gone - kept, 2))
    tell(f"restore: {way}, {gone - kept:.1f} s lost, restored in {back - gone:.1f} s")
    return back


def _back_up(vault: Vault, way: str) -> tuple[float, float]:
    """Back up shortly before a slot of the quiet jobs, so that it is in what will be lost; boot times of both."""
    before = BEFORE + vault.takes.get(way, 0.0)
    for _ in range(TRIES):
        ahead = time.time() - _boot()
        slot = (_boot() + ahead + before) // PERIOD * PERIOD + PERIOD - ahead
        threading.Event().wait(slot - before - _boot())
        began = _boot()
        kept = vault.back_up(way)
        if kept < slot:
            return kept, slot
        before = BEFORE + 1.3 * (kept - began)  # the machine is busy: begin earlier
    raise RuntimeError(f"the machine is too slow: {TRIES} backups by {way} took too long")


def _told(place: Place, busy: Fleet, back: float, figures: Figures, tell: Tell) -> float:
    """The loss reaches beyond memory: nothing may start until `solocron restored` is called; return when it was."""
    threading.Event().wait(WATCHED)
    early = [line for line in busy.ledger.lines(event=START) if line.at > back + CLAIMED]
    if early:
        figures.faults.append(f"{len(early)} bodies started before an operator had called `solocron restored`")
    for namespace in JOBS:
        command = [sys.executable, "-m", "solocron.cli", "restored", f"--namespace={namespace}"]
        env = {**os.environ, "SOLOCRON_STORE": place.url}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            figures.faults.append(f"`solocron restored` failed: {done.stderr[-500:]}")
    tell(f"restored: {len(early)} bodies had started before it was called")
    return _boot()


@contextmanager
def _shut(door: ChaosProxy | None) -> Iterator[None]:
    """Keep the nodes out."""
    if door is None:
        yield
        return
    door.refuse()
    door.cut()
    try:
        yield
    finally:
        door.accept()
