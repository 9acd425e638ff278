"""What happens to nodes: they die, freeze, lie about the time, are deployed anew, get stuck, fork."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import libfaketime

from proof.chaos.arena import patience
from proof.chaos.fault import Fault, Scene
from solocron.testing.fleet import Line, Replica, wait_until
from tests.servers import processes

__all__ = ["BLOCKED", "CANCEL", "CLOCK", "DEPLOY", "FAILPOINT", "FORK", "FREEZE", "KILL", "NODE_FAULTS"]

LIBRARY = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
MOMENTS = ("claimed", "finishing", "renewing", "body-ended", "claiming", "begun", "finished", "step-done", "step-saved")
HOUR = 3600
REACHED_WITHIN = 12.0


def _kill(scene: Scene) -> int:
    arena = scene.arena
    with arena.nodes.lend(2, dice=scene.dice) as berths:
        berth = arena.busy(berths, scene.dice)
        berth.replica.kill()
        arena.fill(berth).wait_event("node started", within=patience())
    return 1


def _freeze(scene: Scene) -> int:
    arena = scene.arena
    with arena.nodes.lend(1, dice=scene.dice) as (berth,):
        arena.freeze(berth.replica)
        scene.rest(arena.lease * scene.pick(1.2, 0.9, 0.5, 2.0, 5.0))
        berth.replica.thaw()
    return 1


def _failpoint(scene: Scene) -> int:
    """Dies, or stops for a lease and a half, at a named place in the engine."""
    arena = scene.arena
    moment, action = scene.dice.choice(MOMENTS), scene.pick("kill", "stop")
    with arena.nodes.lend(1, dice=scene.dice) as (berth,):
        berth.replica.kill()
        victim = arena.fill(berth, failpoint=f"{moment}:{action}:{scene.dice.randint(2, 6)}")
        reached = _ended_or_stopped(victim)
        if reached and victim.alive:
            victim.frozen = True
            scene.rest(arena.lease * 1.5)
            victim.thaw()
        arena.replace(berth)
    return int(reached)


def _ended_or_stopped(victim: Replica) -> bool:
    try:
        wait_until(
            lambda: not victim.alive or processes.stopped(victim.pid),
            within=patience(REACHED_WITHIN),
            what="the failpoint",
        )
    except TimeoutError:
        return False
    return victim.alive or victim.process.returncode == -9


def _clock(scene: Scene) -> int:
    """A node whose wall clock is off, and is set while it runs."""
    arena = scene.arena
    off = scene.pick(HOUR, -HOUR, 24 * HOUR, -24 * HOUR)
    with arena.nodes.lend(1, dice=scene.dice) as (berth,):
        berth.replica.term()
        berth.replica.wait(patience())
        setting = arena.fleet.folder / f"faketime-{scene.turn}"
        setting.write_text(f"{off:+d}s")
        victim = arena.fill(
            berth,
            env={
                "LD_PRELOAD": str(LIBRARY),
                "DONT_FAKE_MONOTONIC": "1",  # what leases are counted on stays true
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_TIMESTAMP_FILE": str(setting),
            },
        )
        victim.wait_event("node started", within=patience())
        for step in (0, -off, scene.dice.choice((0.1, -0.1, 30))):
            scene.rest(arena.lease / 3)
            setting.write_text(f"{step:+g}s")
        scene.rest(arena.lease / 3)
        struck = abs(_off(victim)) > HOUR / 2
        arena.replace(berth)
    return int(struck)


def _off(replica: Replica) -> float:
    """Seconds by which its wall clock was off at its first line of log."""
    first = datetime.strptime(replica.log()[:19], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - both are local
    return (first - datetime.now()).total_seconds()  # noqa: DTZ005


def _deploy(scene: Scene) -> int:
    """Every node in turn drains and comes back with the other release, while old and new work side by side."""
    arena = scene.arena
    arena.release = "1" if arena.release == "2" else "2"
    done = 0
    for berth in arena.berths:
        with arena.nodes.lend(1, among=[berth]):
            berth.replica.term()
            done += berth.replica.wait(patience()) == 0
            arena.fill(berth).wait_event("node started", within=patience())
    return int(done == len(arena.berths))


def _blocked(scene: Scene) -> int:
    """A coroutine that blocks its loop for two leases, every place of a node taken, both processors busy."""
    scheduler, ledger = scene.arena.fleet.scheduler, scene.arena.fleet.ledger
    run = scene.insist(lambda: scheduler.trigger("rude", 2 * scene.arena.lease))
    for _ in range(24):
        scene.insist(lambda: scheduler.trigger("crowding"))
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        scene.rest(scene.arena.lease / 2)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    wait_until(lambda: _said(ledger.lines("rude"), run, "start"), within=60, what="the start of a rude coroutine")
    scene.rest(scene.arena.lease * 2)
    return 1


def _cancel(scene: Scene) -> int:
    """A coroutine is cancelled at whatever it is just awaiting.

    It counts as no strike if the run has no body to cancel. The node died that had claimed it, and it has no retries;
    or a node died while the others checked a store that was restarted, and what was due then was written off.
    """
    scheduler, ledger = scene.arena.fleet.scheduler, scene.arena.fleet.ledger
    run = scene.insist(lambda: scheduler.trigger("patient"))
    wait_until(
        lambda: (
            _said(ledger.lines("patient"), run, "start") or scene.insist(lambda: scheduler.get_run(run)).finished_at
        ),
        within=60,
        what=lambda: f"the start of {run}, of which the store knows {scene.insist(lambda: scheduler.attempts(run))}",
    )
    scene.rest(scene.dice.uniform(0, 0.3))
    scene.insist(lambda: scheduler.cancel(run))
    scene.insist(lambda: scheduler.wait(run, "60s"))
    return int(_said(ledger.lines("patient"), run, "raised"))


def _said(lines: list[Line], run: str, event: str) -> bool:
    return any(line.run == run and line.event == event for line in lines)


def _fork(scene: Scene) -> int:
    """A program that forks after its node has started; the child starts a node too."""
    arena = scene.arena
    with arena.nodes.lend(1, dice=scene.dice) as (berth,):
        berth.replica.term()
        berth.replica.wait(patience())
        forked = arena.fill(berth, program=f"{sys.executable} -m proof.chaos.programs.preload")
        wait_until(
            lambda: len({event["pid"] for event in forked.events("node started")}) == 2,
            within=60,
            what=lambda: f"two nodes of one program:\n{forked.log()[-3000:]}",
        )
        scene.rest(arena.lease)
        forked.term()
        code = forked.wait(patience())
        arena.fill(berth).wait_event("node started", within=patience())
    return int(code == 0)


KILL = Fault("F1", "kill -9 of a node", _kill)
FREEZE = Fault("F2", "node frozen, below and beyond the lease", _freeze)
FAILPOINT = Fault("F3", "node killed or stopped at a failpoint", _failpoint)
CLOCK = Fault("F13", "wall clock off and stepping", _clock)
DEPLOY = Fault("F20", "rolling deploy, old and new code", _deploy)
BLOCKED = Fault("F21", "blocked event loop, full node, busy processors", _blocked)
CANCEL = Fault("F22", "cancellation at an await", _cancel)
FORK = Fault("F23", "fork after start", _fork)
NODE_FAULTS = (KILL, FREEZE, FAILPOINT, CLOCK, DEPLOY, BLOCKED, CANCEL, FORK)
