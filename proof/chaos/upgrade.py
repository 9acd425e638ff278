"""An upgrade under way: the next release brings a new schema while nodes of this one work, and both are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from proof.chaos.arena import Arena, Berth
from proof.chaos.figures import Figures
from proof.chaos.node_faults import FREEZE, KILL
from proof.chaos.places import Place
from proof.chaos.programs.next_release import MADE_UP, NUMBER
from proof.chaos.scenarios import LEASE, conclude, heal, judges_of, open_window, steady_schedules
from proof.chaos.storm import Storm, Tell
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.stores.contract import Store
from solocron.stores.paging import iter_documents
from solocron.stores.redis.store import RedisStore
from solocron.stores.sql.store import SqlStore
from solocron.testing.fleet import wait_until
from solocron.testing.fleet.ledger import START

__all__ = ["UPGRADE", "upgrade"]

UPGRADE = "F28"
NEXT = f"{sys.executable} -m proof.chaos.programs.next_release"
_TOO_NEW = """
import os
from proof.chaos.programs.next_release import install
from solocron.stores.url import make_store
install(number=3, compatible=2)
store = make_store(os.environ["SOLOCRON_STORE"])
store.open()
store.close()
"""


def upgrade(place: Place, folder: Path, *, seconds: float, seed: int, tell: Tell, lease: float = LEASE) -> Figures:
    """Five nodes of this release; two are replaced by the next one, then both kinds work side by side under kills.

    In the end a release that cannot work beside this one raises the bar, and a node of this release must refuse.
    """
    figures = Figures(store=place.name, scenario="upgrade", seconds=seconds)
    target = "proof.chaos.jobs.mixed"
    with Arena(place, folder, [target], lease=lease) as arena:
        arena.start()
        store = arena.fleet.scheduler.open().store
        judges = judges_of(arena, steady_schedules(arena.fleet))
        open_window(arena, judges)
        for berth in arena.berths[:2]:
            berth.program = NEXT
            arena.replace(berth)
        tell(f"        schema {_number(store)}, with {len(arena.berths) - 2} nodes of this release at work")
        tempest = Storm(arena, seed=seed, tell=tell)
        old, new = arena.berths[-1], arena.berths[0]
        tempest.rage(seconds, first=[KILL, FREEZE], again=[KILL, FREEZE], every=(seconds / 8, seconds / 6))
        for berth in (old, new):  # each kind begins anew on the store that the other one uses
            arena.replace(berth)
        _both_work(arena, old, new)
        heal(arena, judges, figures, tell)
        figures.tier = str(store.capabilities.tier)
        conclude(arena, judges, figures)
        figures.faults += _left_by_the_upgrade(store)
        figures.faults += _not_refused(place, target)
    figures.note_strikes({fault.number: tempest.struck[fault.number] for fault in (KILL, FREEZE)})
    figures.struck[UPGRADE] = 1
    return figures


def _both_work(arena: Arena, *berths: Berth) -> None:
    pids = {berth.replica.pid for berth in berths}
    wait_until(
        lambda: pids <= {line.pid for line in arena.fleet.ledger.lines(event=START)},
        within=60,
        what="runs on a node of each release",
    )


def _number(store: Store) -> int | None:
    """Return the schema of an SQL store, the layout of a Redis namespace."""
    if isinstance(store, SqlStore):
        number: int | None = store.schema()
        return number
    assert isinstance(store, RedisStore)
    found = store.layout()
    return found.applied if found else None


def _left_by_the_upgrade(store: Store) -> list[str]:
    """Return what the next release would miss: its schema, or the field that nodes of this release had to keep."""
    number = _number(store)
    faults = [] if number == NUMBER else [f"the schema is {number} and not {NUMBER}"]
    jobs = [job for job in iter_documents(store, Kind.JOB) if isinstance(job, Job) and not job.removed]
    lacking = [job.name for job in jobs if not job.extra.get(MADE_UP)]
    return faults + ([f"nodes of this release dropped a field of the next one: {lacking}"] if lacking else [])


def _not_refused(place: Place, target: str) -> list[str]:
    """Raise the bar as a release would that removes what this one needs; return what a node of this one did wrong."""
    surroundings = {**os.environ, "SOLOCRON_STORE": place.url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", _TOO_NEW], env=surroundings, capture_output=True, check=True, timeout=60)
    command = [sys.executable, "-m", "solocron", "run", target]
    old = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False, timeout=60)
    said = [line for line in old.stderr.splitlines() if " INFO " not in line and not line.startswith("next:")]
    if not old.returncode or len(said) != 1 or "newer than this Solocron can work with" not in said[0]:
        return [f"a node of this release was not refused in one sentence: exit {old.returncode}, {said}"]
    return []
