"""Routing of slots to nodes: pure functions of the document and of the live sessions.

A slot of a job with `nodes=` is cut into parts, each bound to one node, decided once from the live sessions. A part
whose node is gone moves to another node (`nodes=n`), or is recorded as missed (`nodes="all"`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from solocron.clock import SECOND
from solocron.model._fast.values import replace
from solocron.model.applications import can_run
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job, WaitingRun
from solocron.model.documents.run import group_of
from solocron.model.documents.session import Session, is_live

__all__ = ["ELSEWHERE", "NODES", "PREFER", "fleet_of", "moved", "route"]

NODES = 100
"""Maximum number for `nodes=`."""
PREFER = 1 * SECOND
"""How long a job with `prefer="last"` is left to the node that ran it last."""
ELSEWHERE = 5 * SECOND
"""How long a node leaves a job alone if only other nodes have something to do for it."""


def fleet_of(definition: Definition, sessions: Sequence[Session], *, now: int) -> frozenset[str]:
    """Return the names of the live nodes that can run a job."""
    return frozenset(session.node for session in sessions if is_live(session, now=now) and can_run(session, definition))


def route(waiting_run: WaitingRun, nodes: int | str, fleet: frozenset[str], *, node: str) -> tuple[WaitingRun, ...]:
    """Return the parts of a slot, each bound to a node. The first is that of `node`, which makes the decision."""
    others = sorted(fleet - {node}, key=lambda other: _rank(waiting_run.run, other))
    chosen = [node, *others] if nodes == "all" else [node, *others][: int(nodes)]
    # If a part may move, each one lists the nodes of the others; if none may, the list would only take space.
    among = () if nodes == "all" else tuple(chosen)
    return tuple(
        replace(waiting_run, run=f"{waiting_run.run}#{index}", shard=index, shards=len(chosen), only=one, among=among)
        for index, one in enumerate(chosen)
    )


def moved(job: Job, fleet: frozenset[str]) -> tuple[Job, tuple[WaitingRun, ...]]:
    """Return the job with the parts of gone nodes moved to other nodes, and the parts for which there is none."""
    lost: list[WaitingRun] = []
    while True:
        # Searched anew each time: a part that moved has changed what the other parts of its slot list.
        part = next(
            (
                waiting_run
                for waiting_run in job.waiting_runs
                if waiting_run.only is not None and waiting_run.only not in fleet
            ),
            None,
        )
        if part is None:
            return job, tuple(lost)
        new = _substitute(part, fleet) if part.among else None
        rest = tuple(waiting_run for waiting_run in job.waiting_runs if waiting_run is not part)
        if new is None:
            lost.append(part)
            job = replace(job, waiting_runs=rest)
            continue
        among = tuple(new if one == part.only else one for one in part.among)
        group = group_of(part.run)
        job = replace(
            job,
            waiting_runs=(
                *(replace(o, among=among) if group_of(o.run) == group and o.among else o for o in rest),
                replace(part, only=new, among=among),
            ),
            active=tuple(replace(h, among=among) if group_of(h.run) == group and h.among else h for h in job.active),
        )


def _substitute(part: WaitingRun, fleet: Collection[str]) -> str | None:
    """Return a live node that has no part of the slot."""
    free = [node for node in fleet if node not in part.among]
    return min(free, key=lambda node: _rank(part.run, node), default=None)


def _rank(run: str, node: str) -> bytes:
    """Return a sort key of nodes that is the same on every node and differs for every slot."""
    return hashlib.blake2b(f"{group_of(run)}|{node}".encode(), digest_size=8).digest()
