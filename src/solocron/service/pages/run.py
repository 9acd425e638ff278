"""A run: what exactly happened, attempt by attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from solocron.service.draw.timeline import Window
from solocron.service.pages.fleet import FleetPart
from solocron.service.pages.links import Links
from solocron.service.pages.parts import ActLink, Badge, Fact, TablePart, tone_of
from solocron.service.pages.story import StoryPart
from solocron.service.pages.words import Reading, span
from solocron.views import RunView

__all__ = ["ErrorPart", "RunDetailPage", "errors_of", "run_acts", "run_facts", "run_window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPart:
    """The error of one attempt; the newest is open."""

    title: str
    text: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetailPage:
    """One run."""

    template: ClassVar[str] = "run.html"
    section: ClassVar[str] = "runs"
    run: str
    job: str
    job_href: str
    json: str
    """Address of the same run in the API."""
    head: str
    state: Badge
    acts: tuple[ActLink, ...]
    facts: tuple[Fact, ...]
    lanes: FleetPart | None
    story: StoryPart
    attempts: TablePart
    errors: tuple[ErrorPart, ...]
    steps: TablePart | None
    values: tuple[tuple[str, str], ...]
    """Result and payload, as JSON, if they were asked for and may be shown."""
    values_href: str | None
    output: str | None
    fence: int
    key: str

    @property
    def title(self) -> str:
        """The title of the page."""
        return self.run


def errors_of(attempts: Sequence[RunView]) -> tuple[ErrorPart, ...]:
    """Return the errors, the newest first and open."""
    found = [run for run in reversed(attempts) if run.error]
    return tuple(
        ErrorPart(
            title=f"Attempt {run.attempt} on {run.node}: {run.status.replace('_', ' ')}",
            text=run.error or "",
            open=not number,
        )
        for number, run in enumerate(found)
    )


def run_acts(run: RunView, links: Links) -> tuple[ActLink, ...]:
    """Return the acts on a run: cancel while it runs or waits, run again when it has ended."""
    if run.status in ("running", "waiting", "offered"):
        return (ActLink(label="Cancel", href=links.run(run.run, "cancel"), icon="fail", dialog=True, key="c"),)
    again = links.job(run.job, "rerun", slot=run.slot.isoformat())
    return (ActLink(label="Run again", href=again, icon="again", dialog=True, key="t"),)


def run_facts(attempts: Sequence[RunView], reading: Reading) -> tuple[Fact, ...]:
    """Return the facts of the head, of the last attempt."""
    last = attempts[-1]
    started = last.started_at or last.claimed_at
    facts = [
        Fact(name="Slot", value=reading.stamp(last.slot), under=reading.in_utc(last.slot)),
        Fact(
            name="Started",
            value=reading.stamp(started, seconds=True) if started else "not yet",
            under=f"{span(started - last.slot)} after its slot" if started else (last.reason or ""),
        ),
        Fact(
            name="Took",
            value=span((last.finished_at or reading.now) - started) if started else "–",
            under="ended" if last.finished_at else "still running" if started else "did not start",
        ),
        Fact(name="Attempt", value=str(last.attempt), under=last.status.replace("_", " "), tone=tone_of(last.status)),
        Fact(name="Node", value=last.node or "–", under=f"fence {last.fence}" if last.fence else "no fence"),
        Fact(
            name="Origin",
            value=last.origin,
            under=f"by {last.asked_by}"
            if last.asked_by
            else "by the schedule"
            if last.origin == "schedule"
            else "author not told",
        ),
    ]
    return tuple(facts)


def run_window(attempts: Sequence[RunView], reading: Reading) -> Window:
    """Return the window that shows every attempt, with room for words at the right."""
    begin = min([run.slot for run in attempts] + [run.claimed_at for run in attempts if run.claimed_at])
    end = max([run.finished_at or reading.now for run in attempts])
    room = max((end - begin) * 0.06, timedelta(seconds=1))
    return Window(start=begin - room, end=end + 4 * room, now=reading.now)
