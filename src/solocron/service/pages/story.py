"""The story of a slot: due, claimed, lost, taken over, refused, ended, each with its time, node and fence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from solocron.service.pages.fleet import RefusedResult
from solocron.service.pages.links import Links
from solocron.service.pages.parts import ActLink, Badge, badge_of, tone_of
from solocron.service.pages.slots import TO_COME, SlotFate
from solocron.service.pages.words import Reading, span
from solocron.views import NodeView, RunView

__all__ = ["StoryLine", "StoryPart", "story_of"]

_HAPPENED = {
    "skipped": "Skipped",
    "missed": "Missed",
    "dropped": "Dropped",
    "waiting": "Waiting",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """One thing that happened: in bold, the rest of the sentence, when, and what else is known."""

    what: str
    rest: str = ""
    at: str
    more: str = ""
    mono: bool = False
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryPart:
    """The story of a slot, and where to go from it."""

    title: str
    utc: str
    badge: Badge
    lines: tuple[StoryLine, ...]
    before: str | None
    after: str | None
    acts: tuple[ActLink, ...] = ()
    verdict: str = ""
    """What became of it and why, in one sentence."""
    worried: bool = False
    """True if that is not what was planned."""


def story_of(
    slot: datetime,
    attempts: Sequence[RunView],
    *,
    refused: Sequence[RefusedResult] = (),
    nodes: Sequence[NodeView] = (),
    reading: Reading,
    links: Links,
    before: datetime | None = None,
    after: datetime | None = None,
    verdict: str = "",
    operates: bool = False,
    job: str = "",
    fate: SlotFate | None = None,
    here: Callable[..., str] | None = None,
) -> StoryPart:
    """Tell what became of a slot; `attempts` in order, the one of a slot that did not run alone.

    `nodes` are those that may have lost one of them. Without attempts the fate is told: a slot
    in the middle of several that were recorded together has no record.
    """
    told = [(slot, 0, StoryLine(what="Due", at=reading.time(slot, seconds=True), more=_origin(attempts)))]
    for number, run in enumerate(attempts):
        told += _attempt(run, attempts[number - 1] if number else None, reading)
        told += _last_renewal(run, nodes, reading)
    for one in refused:
        line = StoryLine(
            what="Refused",
            rest=f": {one.node} woke up and wrote “{one.outcome.replace('_', ' ')}”",
            at=reading.time(one.at, seconds=True),
            more=f"fence {one.fence} was old, nothing was kept",
            tone="lost",
        )
        told.append((one.at, 3, line))
    last = attempts[-1] if attempts else None
    job = last.job if last else job
    due = fate is not None and fate.status == "due"
    badge = badge_of("waiting", "due" if due else TO_COME) if last is None else _verdict(last)
    if last is None and fate is not None and fate.status not in (None, TO_COME, "due"):
        badge = badge_of(fate.status or "")
        rest = f": {fate.reason}" if fate.reason else ""
        line = StoryLine(what=badge.word.capitalize(), rest=rest, at=reading.time(slot, seconds=True), tone=badge.tone)
        told.append((slot, 1, line))
    acts: list[ActLink] = []
    if last is not None and last.attempt and here is not None:  # the page of the run itself has no other slots to show
        acts.append(ActLink(label="Open the run", href=links.run(last.run)))
    if last is not None and operates and last.status not in ("running", "waiting", "offered"):
        acts.append(
            ActLink(label="Run again", href=links.job(job, "rerun", slot=slot.isoformat()), icon="again", dialog=True)
        )
    return StoryPart(
        title=f"{reading.day(slot)}, {reading.time(slot)} in {reading.zone_name}",
        utc=reading.in_utc(slot),
        badge=badge,
        lines=tuple(line for _, _, line in sorted(told, key=lambda one: one[:2])),
        before=here(slot=before.isoformat()) if before and here else None,
        after=here(slot=after.isoformat()) if after and here else None,
        acts=tuple(acts),
        verdict=verdict,
        worried=badge.tone not in ("ok", "run"),
    )


def _origin(attempts: Sequence[RunView]) -> str:
    first = attempts[0] if attempts else None
    if first is None or first.origin == "schedule":
        return "by the schedule"
    return f"{first.origin} by {first.asked_by}" if first.asked_by else f"by {first.origin}"


def _verdict(last: RunView) -> Badge:
    word = last.status.replace("_", " ")
    return badge_of(last.status, f"{word} on attempt {last.attempt}" if last.attempt > 1 else word)


def _last_renewal(run: RunView, nodes: Sequence[NodeView], reading: Reading) -> list[tuple[datetime, int, StoryLine]]:
    """Tell when the node of a lost attempt was last heard of; nothing if its session is not on record."""
    if run.status != "lost" or run.claimed_at is None or run.finished_at is None:
        return []
    for node in nodes:
        if node.node != run.node or not node.started_at <= run.claimed_at <= (node.ended_at or reading.now):
            continue
        silent = run.finished_at - node.last_renewal
        if silent.total_seconds() < 0:  # it lives on, so its lease is not why this attempt was lost
            continue
        line = StoryLine(
            what="Last renewal",
            rest=f" of {node.node}",
            at=reading.time(node.last_renewal, seconds=True),
            more=f"then silent for {span(silent)}",
        )
        return [(max(node.last_renewal, run.claimed_at), 3, line)]
    return []


def _attempt(run: RunView, before: RunView | None, reading: Reading) -> list[tuple[datetime, int, StoryLine]]:
    if not run.attempt or run.claimed_at is None:
        word = _HAPPENED.get(run.status, run.status.replace("_", " ").capitalize())
        more = f"{run.count} slots together" if run.count > 1 else ""
        rest = f": {run.reason}" if run.reason else ""
        later = before is not None  # an attempt in a queue comes after the one before it, not at its slot
        at = f"attempt {run.attempt}" if later else reading.time(run.slot, seconds=True)
        line = StoryLine(what=word, rest=rest, at=at, more=more, tone=tone_of(run.status))
        return [(reading.now, 4, line) if later else (run.slot, 1, line)]
    over = before is not None and before.status == "lost"
    since = before.finished_at if over and before and before.finished_at else run.slot
    claimed = StoryLine(
        what=f"Taken over by {run.node}" if over else f"Claimed by {run.node}",
        rest=f", attempt {run.attempt}",
        at=f"+{span(run.claimed_at - since)}",
        more=f"fence {run.fence}",
        mono=True,
        tone="run",
    )
    told = [(run.claimed_at, 2, claimed)]
    if run.finished_at is None:
        told.append(
            (reading.now, 4, StoryLine(what="Running", at=f"for {span(reading.now - run.claimed_at)}", tone="run"))
        )
        return told
    word = run.status.replace("_", " ").capitalize()
    if run.status == "lost":
        rest = f": {run.reason}" if run.reason else ": its lease ran out"
    else:
        rest = f" in {span(run.finished_at - (run.started_at or run.claimed_at))}"
    last_line = (run.error or "").strip().rpartition("\n")[2]
    ended = StoryLine(
        what=word,
        rest=rest,
        at=reading.time(run.finished_at, seconds=True),
        more=last_line or "",
        tone=tone_of(run.status),
    )
    return [*told, (run.finished_at, 1, ended)]
