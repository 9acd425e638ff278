"""Coverage of policies: those that a world had, and how often each made a difference. An unused one was not tested."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from proof.invariants.checker import new_holds
from proof.workloads.ledger import Line
from solocron.clock import to_us
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin
from solocron.testing.simulation.database import Commit

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["POLICIES", "Coverage"]

POLICIES = {
    "shards": "shards of a slot were claimed",
    "nodes": "parts of a slot were claimed by the nodes that they are for",
    "prefer": "the node that had run a job last ran it again",
    "limit": "a run was claimed under a permit",
    "calendar": "slots on days off were left out",
    "on_holiday": "slots that had been moved to a workday were claimed",
    "revisions": "a job was put under a later revision of its calendar",
    "starts": "a job had its first slot after the instant at which it starts",
    "ends": "a job had its last slot before the instant at which it ends",
    "run_now": "a program ran a job on its own thread",
    "backfill": "a slot of a backfill was claimed",
    "rerun": "a slot that was asked for again was claimed",
    "rate": "a missed slot was caught up at its rate",
    "pauses": "slots were skipped because many jobs were paused at once",
    "broker": "a run was picked up from a queue",
    "pause_after": "a job was paused after failures in a row",
    "on_retry": "the function of on_retry was asked before a run was repeated",
    "alarm": "an alarm was raised",
    "alarm cleared": "an alarm was cleared",
}
"""Every policy, with the event that is counted for it."""


class Coverage:
    """Counts what policies did in one world; judges nothing."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._did: Counter[str] = Counter()
        world.database.on_commit.append(self._commit)
        world.ledger.on_line.append(self._line)

    def told(self) -> dict[str, int]:
        """Return how often each policy of this world made a difference."""
        checker, alarms = self._world.checker, self._world.alarms.did
        did = self._did + Counter(
            {
                "calendar": checker.left_out,
                "on_holiday": checker.moved,
                "revisions": checker.revised,
                "alarm": alarms["alarms raised"],
                "alarm cleared": alarms["alarms cleared"],
            }
        )
        return {name: did[name] for name in POLICIES if did[name] or name in self._had()}

    def _had(self) -> set[str]:
        """Return the policies that its jobs and its options ask for."""
        options, plans = self._world.options, self._world.workload.plans
        found = {"on_retry"} if any(plan.asks for plan in plans) else set()
        found |= {name for plan in plans for name, value in plan.policies.items() if value is not None}
        if any(plan.policies["catch_up"] for plan in plans if getattr(plan.policies["catch_up"], "pace", None)):
            found.add("rate")
        found |= {"backfill", "rerun"} if options.request else set()
        found |= {"revisions"} if options.calendars else set()
        found |= {"pauses"} if options.pauses else set()
        found |= {"run_now"} if options.run_now else set()
        found |= {"broker"} if options.broker else set()
        return found | ({"alarm", "alarm cleared"} if options.alarms else set())

    def _commit(self, commit: Commit) -> None:
        before, after = commit.before, commit.after
        if commit.kind is not Kind.JOB or not isinstance(before, Job) or not isinstance(after, Job):
            return
        did = self._did
        for hold in new_holds(commit):
            did["nodes"] += hold.only is not None
            did["shards"] += hold.shard is not None and hold.only is None
            did["limit"] += hold.permit is not None
            did["broker"] += after.definition.hand_over is not None and not hold.handing
            did["backfill"] += hold.origin is Origin.BACKFILL
            did["rerun"] += hold.origin is Origin.RERUN
            did["rate"] += hold.origin is Origin.SCHEDULE and after.paced != before.paced
            last = before.last if after.definition.prefer == "last" else None
            did["run_now"] += hold.final
            did["starts"] += hold.origin is Origin.SCHEDULE and _begins(after, before.cursor, hold.slot)
            did["prefer"] += last is not None and last.node == hold.node
        did["ends"] += after.due_at is None and before.due_at is not None and _ends(after)
        did["pauses"] += sum((record.reason or "").startswith("paused (") for record in commit.records)
        if after.paused is not None and before.paused is None:
            did["pause_after"] += after.paused.by == "solocron"

    def _line(self, line: Line) -> None:
        self._did["on_retry"] += line.what.startswith("answered ")


def _begins(job: Job, cursor: int, slot: int) -> bool:
    """Return whether the first instant of a job lies between its cursor and a slot."""
    starts = (job.definition.schedule or {}).get("starts")
    return starts is not None and cursor < to_us(datetime.fromisoformat(starts)) <= slot


def _ends(job: Job) -> bool:
    """Return whether nothing more comes of a job because it has a last instant."""
    idle = job.paused is None and not job.removed and job.definition.enabled
    return idle and (job.definition.schedule or {}).get("ends") is not None
