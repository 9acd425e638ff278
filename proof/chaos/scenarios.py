"""The scenarios: every fault at once, a crowd of jobs, a node frozen beside a healthy one, a store that forgets."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from proof.chaos.arena import Arena, patience, schedules_of
from proof.chaos.fault import Fault
from proof.chaos.figures import Figures
from proof.chaos.network_faults import NETWORK_FAULTS
from proof.chaos.node_faults import FREEZE, KILL, NODE_FAULTS
from proof.chaos.places import Place
from proof.chaos.store_faults import CRASH, RESTART, STORE_FAULTS
from proof.chaos.storm import COMBINED, Storm, Tell
from solocron.clock import SystemClock
from solocron.model.documents.run import Status
from solocron.schedules import Schedule
from solocron.stores.contract import Query
from solocron.testing.fleet import Fleet, Incident, Judge, Replica, wait_until
from solocron.testing.fleet.ledger import END, START

__all__ = [
    *("ALL_FAULTS", "LEASE", "beside", "crowd", "storm"),
    *("conclude", "heal", "judges_of", "open_window", "steady_schedules"),
]

LEASE = 3.0
SETTLED_WITHIN = 150.0
ALL_FAULTS: tuple[Fault, ...] = (*NODE_FAULTS, *STORE_FAULTS, *NETWORK_FAULTS)
LONG = ("F20", "F13", "F3", "F6")
AT_MOST_ONCE = ("once",)
ALARMS = ("loop error", "job blocked", "namespace closed")
UNSTEADY = ("changing", "added")
"""Jobs whose schedule is not the same all the time: judged for what ran twice, not for what was due."""


def storm(
    place: Place,
    folder: Path,
    *,
    seconds: float,
    seed: int,
    tell: Tell,
    faults: Sequence[Fault] = ALL_FAULTS,
    kills: int = 8,
    lease: float = LEASE,
    timed: bool = True,
) -> Figures:
    """A few nodes killed in peace, to measure the takeover; then every fault of the matrix that this store knows.

    `timed`: a takeover that takes longer than a lease and a second is a fault.
    """
    figures = Figures(store=place.name, scenario="storm", seconds=seconds, lease=lease, margin=place.margin)
    with Arena(place, folder, ["proof.chaos.jobs.mixed"], lease=lease) as arena:
        arena.start()
        schedules = steady_schedules(arena.fleet)
        judges = judges_of(arena, schedules)
        open_window(arena, judges)
        peaceful = _peaceful_kills(arena, kills, tell)
        enabled = [fault for fault in faults if fault.possible(arena)]
        tempest = Storm(arena, seed=seed, tell=tell)
        # The long ones first, so that they do not prolong the end.
        first = sorted(enabled, key=lambda fault: fault.number not in LONG)
        tempest.rage(seconds, first=first, again=[*enabled, KILL, FREEZE, KILL])
        heal(arena, judges, figures, tell)
        figures.takeovers = _takeovers(arena, schedules, peaceful)
        figures.tier = str(arena.store.capabilities.tier)
        conclude(arena, judges, figures)
    figures.note_strikes({number: tempest.struck[number] for number in (*(f.number for f in enabled), COMBINED)})
    if kills and not figures.takeovers:
        figures.faults.append("no takeover was measured")
    if timed and max(figures.takeovers, default=0) > lease + place.margin:
        figures.faults.append(f"a takeover took {max(figures.takeovers):.2f} s, with a lease of {lease:g} s")
    return figures


def crowd(place: Place, folder: Path, *, seconds: float, seed: int, tell: Tell, lease: float = LEASE) -> Figures:
    """Two hundred jobs every second on five nodes, with kill -9, freezes, and the server restarted and killed."""
    figures = Figures(store=place.name, scenario="crowd", seconds=seconds, lease=lease)
    with Arena(place, folder, ["proof.chaos.jobs.crowd"], lease=lease) as arena:
        arena.start()
        judge = judge_of(arena, schedules_of(arena.fleet))
        open_window(arena, (judge,))
        tempest = Storm(arena, seed=seed, tell=tell)
        server = [fault for fault in (RESTART, CRASH) if fault.possible(arena)]
        first = [KILL, FREEZE, *server[:1], FREEZE, KILL, *server[1:]]
        pause = seconds / (len(first) + 2)
        tempest.rage(seconds, first=first, again=[KILL, FREEZE], every=(pause * 0.8, pause))
        heal(arena, (judge,), figures, tell)
        figures.tier = str(arena.store.capabilities.tier)
        conclude(arena, (judge,), figures)
    figures.note_strikes({fault.number: tempest.struck[fault.number] for fault in (KILL, FREEZE, *server)})
    return figures


def beside(place: Place, folder: Path, *, frozen_for: float, tell: Tell) -> Figures:
    """A node is frozen in the middle of its runs beside a healthy one, with the default lease; then it goes on."""
    figures = Figures(store=place.name, scenario="beside", seconds=frozen_for)
    with Arena(place, folder, ["proof.chaos.jobs.beside"], lease=min(15.0, frozen_for / 2.5), nodes=2) as arena:
        arena.start()
        judge = judge_of(arena, schedules_of(arena.fleet))
        open_window(arena, (judge,))
        ledger = arena.fleet.ledger
        replicas = [berth.replica for berth in arena.berths]
        sleeper, left = _freeze_in_the_middle(arena, replicas)
        (healthy,) = (replica for replica in replicas if replica is not sleeper)
        threading.Event().wait(frozen_for)
        thawed = SystemClock().boot()
        sleeper.thaw()
        # Not its next start: a node whose idea of the time is a little behind may find everything claimed for long.
        sleeper.wait_event("session renewed", within=patience(30), after=thawed)
        tell(f"        frozen for {frozen_for:g} s in the middle of {len(left)} runs, and at work again")
        heal(arena, (judge,), figures, tell)
        conclude(arena, (judge,), figures)
        accepted = _accepted(arena)
        ended = [line for line in ledger.lines(event=END) if line.pid == healthy.pid]
        ran = {line.key: line.at for line in ended if (line.run, line.attempt) in accepted}
        starts = [line for line in ledger.lines(event=START) if line.pid == sleeper.pid]
        # A freeze may hit between the engine's word and the body's first line: that body was under way.
        begun = {(event["run"], event["attempt"]) for event in sleeper.events("started") if event["at"] < thawed}
        again = [
            line for line in starts if ran.get(line.key, line.at) < line.at and (line.run, line.attempt) not in begun
        ]
        figures.faults += [f"ran again after its freeze: {line.key} of {line.node}" for line in again]
        figures.faults += [f"not taken over: {run}" for run in sorted(left - _started_elsewhere(arena, [sleeper]))]
        figures.struck = {FREEZE.number: 1}
    return figures


# --- parts


def _accepted(arena: Arena) -> set[tuple[str, int]]:
    """Return the attempts whose success the store has: on a slow machine a healthy node loses its lease as well."""
    log = arena.store.history(Query(limit=10_000)).records
    return {(record.run, record.attempt) for record in log if record.status is Status.SUCCEEDED}


def steady_schedules(fleet: Fleet) -> dict[str, Schedule]:
    """Return the schedules of the jobs that are judged for what was due as well."""
    return {job.name: job.schedule for job in fleet.scheduler.registry if job.name not in UNSTEADY}


def judge_of(arena: Arena, schedules: Mapping[str, Schedule]) -> Judge:
    """One for these jobs."""
    fleet = arena.fleet
    return Judge(ledger=fleet.ledger, store=arena.store, schedules=schedules, incidents=fleet.incidents)


def judges_of(arena: Arena, schedules: dict[str, Schedule]) -> tuple[Judge, Judge]:
    """One for the jobs that may be repeated and must not be lost, one for those that may be lost and never repeated."""
    strict = {name: schedule for name, schedule in schedules.items() if name not in AT_MOST_ONCE}
    loose = {name: schedule for name, schedule in schedules.items() if name in AT_MOST_ONCE}
    return judge_of(arena, strict), judge_of(arena, loose)


def _peaceful_kills(arena: Arena, kills: int, tell: Tell) -> list[Incident]:
    """Kill nodes in the middle of runs while nothing else is wrong, two at a time, and wait for their runs."""
    before = len(arena.fleet.incidents)
    turns = itertools.cycle(arena.berths)
    while len(arena.fleet.incidents) - before < kills:
        berths = [next(turns) for _ in range(min(2, kills))]
        victims = [berth.replica for berth in berths]
        # Both at one moment: who dies while taking over from the other would make its takeover look slow.
        busy = partial(_are_busy, arena, victims)
        wait_until(busy, within=patience(), what="runs to kill in the middle")
        for victim in victims:
            victim.kill()
        left = {run for victim in victims for run in _runs_of(arena, victim)}
        fresh = [arena.fill(berth) for berth in berths]
        taken_over = partial(_have_started_elsewhere, arena, victims, left)
        wait_until(taken_over, within=patience(), what="the takeover of their runs")
        arena.fleet.wait_ready(fresh, within=patience())
    tell(f"        {kills} nodes killed in peace")
    return arena.fleet.incidents[before:]


def _takeovers(arena: Arena, schedules: dict[str, Schedule], incidents: Sequence[Incident]) -> list[float]:
    """How long the runs of these victims had to wait."""
    judge = Judge(ledger=arena.fleet.ledger, store=arena.store, schedules=schedules, incidents=incidents)
    judge.open()
    return list(judge.verdict().takeovers)


def _runs_of(arena: Arena, replica: Replica) -> set[str]:
    """Return the runs that a node is in the middle of, and that another may repeat."""
    return {line.run for line in arena.fleet.ledger.open() if line.pid == replica.pid and line.job not in AT_MOST_ONCE}


def _are_busy(arena: Arena, replicas: Sequence[Replica]) -> bool:
    return all(_runs_of(arena, replica) for replica in replicas)


def _have_started_elsewhere(arena: Arena, victims: Sequence[Replica], runs: set[str]) -> bool:
    return runs <= _started_elsewhere(arena, victims)


def _started_elsewhere(arena: Arena, victims: Sequence[Replica]) -> set[str]:
    """Return the runs that nodes other than these have started."""
    gone = {replica.pid for replica in victims}
    return {line.run for line in arena.fleet.ledger.lines(event=START) if line.pid not in gone}


def open_window(arena: Arena, judges: Sequence[Judge]) -> None:
    """From now on slots, and the server's calls, count."""
    for judge in judges:
        judge.open()
    arena.place.calls = 0
    arena.place.count()


def heal(arena: Arena, judges: Sequence[Judge], figures: Figures, tell: Tell) -> None:
    """The faults are over: whatever waits must be done soon."""
    healed = time.monotonic()
    for judge in judges:
        judge.close()
    for judge in judges:
        if not judge.wait_settled(within=SETTLED_WITHIN, recorded=judge is not judges[0]):
            figures.faults.append(
                f"still waiting {SETTLED_WITHIN:g} s after the last fault: {len(judge.missing())} slots"
            )
    figures.healed_s = round(time.monotonic() - healed, 1)
    tell(f"        settled {figures.healed_s:g} s after the last fault")


def conclude(arena: Arena, judges: Sequence[Judge], figures: Figures) -> None:
    """Drain, and ask the judges."""
    arena.place.stop_counting()
    fleet = arena.fleet
    figures.faults += [f"ended by itself: {berth.replica!r}" for berth in arena.berths if not berth.replica.alive]
    for replica in fleet.alive():
        replica.term()
    for replica in fleet.alive():
        with suppress(TimeoutError):
            replica.wait(patience())
    strange = [replica for replica in fleet.replicas if replica.process.returncode not in (0, -9)]
    figures.faults += [f"did not drain: {replica!r}: {replica.log()[-500:]}" for replica in strange]
    figures.faults += [f"{replica!r}: {alarm}" for replica in fleet.replicas for alarm in _alarms(replica)]
    for judge in judges:
        verdict = judge.verdict()
        once = judge is not judges[0]
        figures.add(verdict, losses=not once)
        figures.faults += [text for text in verdict.faults if not (once and text.startswith("lost: "))]
    figures.faults = list(dict.fromkeys(figures.faults))
    figures.kills = sum(1 for incident in fleet.incidents if incident.kind == "kill")
    figures.freezes = sum(1 for incident in fleet.incidents if incident.kind == "freeze")
    figures.cuts = sum(berth.proxy.traffic.cut for berth in arena.berths if berth.proxy)
    figures.restarts = arena.place.restarts
    runs = len(fleet.ledger.lines(event=END))
    if arena.place.calls and runs:  # servers of key stores count none
        figures.calls_per_run = round(arena.place.calls / runs, 2)


def _alarms(replica: Replica) -> list[str]:
    """What a node should never have had to tell, whatever was done to it; the first of each kind."""
    told = {event["event"]: event for event in replica.events() if event["event"] in ALARMS}
    return [f"{name}: {event.get('error') or event.get('job')}"[:500] for name, event in told.items()]


def _freeze_in_the_middle(arena: Arena, replicas: Sequence[Replica]) -> tuple[Replica, set[str]]:
    """Freeze a node that has runs under way; return it, and those that it still had when it stood still."""

    def busy() -> Replica | None:
        return next((replica for replica in replicas if len(_runs_of(arena, replica)) >= 2), None)

    while True:
        replica = wait_until(busy, within=patience(30), what="runs on a node to be frozen")
        arena.freeze(replica)
        if left := _runs_of(arena, replica):
            return replica, left
        replica.thaw()
