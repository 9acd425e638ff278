"""A job: what became of each slot, how it behaves, what will happen when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from markupsafe import Markup

from solocron.clock import from_us
from solocron.duration import format_duration
from solocron.model.change import Kind
from solocron.service.draw.bars import DurationDot, draw_durations
from solocron.service.pages.links import Links
from solocron.service.pages.parts import ActLink, Badge, Choices, Fact, ListEntry, TablePart, badge_of, tone_of
from solocron.service.pages.slots import SlotsPart
from solocron.service.pages.story import StoryPart
from solocron.service.pages.words import Reading, number, plural, short_fence, span
from solocron.stores.contract import Blocked
from solocron.views import HoldView, JobView, RunView

__all__ = [
    "DurationsPart",
    "JobDetailPage",
    "band_icon",
    "band_of",
    "durations_of",
    "facts_of",
    "further_acts",
    "job_acts",
    "last_badge",
    "policies_of",
    "state_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationsPart:
    """Durations of the last attempts."""

    svg: Markup
    lead: str
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetailPage:
    """One job."""

    template: ClassVar[str] = "job.html"
    section: ClassVar[str] = "jobs"
    name: str
    state: Badge
    schedule: str
    zone: str
    expression: str | None
    about: str
    place: str | None
    band: str
    """Why it does not run at present: a pause, a missing handler; empty if it does."""
    band_icon: str
    acts: tuple[ActLink, ...]
    more: tuple[ActLink, ...]
    """Acts that are asked for less often."""
    json: str
    """Address of the same job in the API."""
    facts: tuple[Fact, ...]
    slots: SlotsPart | None
    story: StoryPart | None
    runs: TablePart
    filters: Choices
    older: str | None
    durations: DurationsPart | None
    next: tuple[tuple[str, str, str], ...]
    """Slots to come: local time, how far away, note."""
    policies: tuple[ListEntry, ...]
    notes: tuple[str, ...]
    backfills: tuple[ListEntry, ...] = ()
    audit: tuple[ListEntry, ...] = ()

    @property
    def title(self) -> str:
        """The title of the page."""
        return self.name


def state_of(job: JobView, now: datetime) -> Badge:
    """Return the state of a job in a word, the worst first."""
    if any(run.stuck for run in job.running):
        return Badge(tone="fail", icon="warn", word="stuck")
    if job.failures:
        return Badge(tone="fail", icon="fail", word=f"failing {job.failures}")
    if job.orphaned:
        return Badge(tone="miss", icon="warn", word="orphaned")
    if job.running:
        return Badge(tone="run", icon="run", word="running")
    if not job.enabled:
        return Badge(tone="skip", icon="skip", word="disabled")
    if job.paused is not None or job.pauses:
        return Badge(tone="skip", icon="pause", word="paused")
    if job.due_at is not None and (now - job.due_at).total_seconds() > 5:
        return Badge(tone="miss", icon="clock", word=f"late {span(now - job.due_at)}")
    if job.last_status is None:
        return Badge(tone="skip", icon="clock", word="never ran")
    return Badge(tone="ok", icon="ok", word="healthy")


def band_of(job: JobView, reading: Reading, skipped: int | None = None, aside: Blocked | None = None) -> str:
    """Return why the job does not run at present, in a sentence; empty if it does."""
    said = []
    if aside is not None:
        until = reading.stamp(from_us(aside.until))
        said.append(f"Set aside until {until}, because its document fails on its own: {aside.reason}.")
    if job.paused is not None:
        who = f"by {job.paused.by} " if job.paused.by else ""
        until = f" until {reading.stamp(job.paused.until)}" if job.paused.until else ""
        note = f": {job.paused.note}" if job.paused.note else ""
        count = "" if skipped is None else f"; {plural(skipped, 'slot')} skipped so far"
        said.append(f"Paused {who}since {reading.stamp(job.paused.at)}{until}{note}{count}.")
    for pause in job.pauses:
        who = f"by {pause.by} " if pause.by else ""
        said.append(f"A pause of {pause.scope} covers it, {who}since {reading.stamp(pause.at)}.")
    if job.orphaned:
        said.append(f"No live node of pool {job.pool} has the handler {job.handler}.")
    if not job.enabled:
        said.append("Disabled where it is declared.")
    return " ".join(said)


def band_icon(job: JobView) -> str:
    """Return the icon beside that sentence."""
    return "pause" if job.paused is not None or job.pauses else "warn"


def job_acts(job: JobView, links: Links, aside: Blocked | None = None) -> tuple[ActLink, ...]:
    """Return the acts on a job, each of which opens a dialog."""
    pause = (
        ActLink(label="Pause", href=links.job(job.name, "pause"), icon="pause", dialog=True, key="p")
        if job.paused is None
        else ActLink(label="Resume", href=links.job(job.name, "resume"), icon="run", dialog=True, key="p")
    )
    again = ActLink(label="Try again", href=links.set_aside(Kind.JOB, job.name), icon="again", dialog=True)
    return (
        *(() if aside is None else (again,)),
        ActLink(label="Run now", href=links.job(job.name, "trigger"), icon="run", dialog=True, key="t"),
        pause,
        ActLink(label="Backfill", href=links.job(job.name, "backfill"), icon="again", dialog=True),
    )


def further_acts(job: JobView, links: Links) -> tuple[ActLink, ...]:
    """Return the acts on a job that are asked for less often."""
    return (ActLink(label="Rerun failed", href=links.job(job.name, "rerun"), dialog=True),)


def facts_of(
    job: JobView,
    *,
    reading: Reading,
    links: Links,
    took: tuple[float, float] | None,
    late: tuple[float, float] | None,
    accounted: tuple[int, int, str] | None,
) -> tuple[Fact, ...]:
    """Return the facts of the head; `took` and `late` are median and 95th percentile."""
    facts = []
    if job.next is not None:
        place, utc = job.zone.rpartition("/")[2], job.next.astimezone(UTC)
        local = f"{job.next:%H:%M} {place}" + ("" if place == "UTC" else f" · {utc:%H:%M} UTC")
        if reading.local(job.next).date() != reading.local(reading.now).date():
            local += f" · {reading.day(job.next)}"
        facts.append(Fact(name="Next slot", value=reading.until(job.next), under=local, until=job.next.isoformat()))
    else:
        facts.append(Fact(name="Next slot", value="none", under="by trigger, paused or over"))
    if job.running:
        run = job.running[0]
        more = f"{len(job.running) - 1} more · " if len(job.running) > 1 else ""
        words, tone = _lease_of(run)
        under = f"{more}{words} · fence {short_fence(run.fence)}"
        facts.append(Fact(name="Held by", value=run.node or "–", under=under, tone=tone, href=links.run(run.run)))
    else:
        facts.append(Fact(name="Held by", value="no node", under=plural(job.waiting, "run") + " waiting"))
    if job.last_status and job.last_slot:
        word = job.last_status.replace("_", " ")
        facts.append(
            Fact(name="Last slot", value=word, under=reading.stamp(job.last_slot), tone=tone_of(job.last_status))
        )
    else:
        facts.append(Fact(name="Last slot", value="never ran", under=f"declared {reading.until(job.created_at)}"))
    limit = f", limit {span(job.timeout)}" if job.timeout else ", no limit"
    facts.append(_pair("Takes", took, limit))
    facts.append(_pair("Starts late by", late, ""))
    if accounted is not None:
        have, due, more = accounted
        tone = "" if have == due else "fail"
        facts.append(Fact(name="Accounted for", value=f"{number(have)} of {number(due)}", under=more, tone=tone))
    return tuple(facts)


def _lease_of(hold: HoldView) -> tuple[str, str]:
    """Return what is left of the lease under which a run is held, in words, and their tone."""
    left = hold.lease_left_s
    if left is None:
        return "its lease is over, it is taken over next", "lost"
    return (f"lease left {span(left)}", "") if left > 0 else (f"lease over since {span(-left)}", "miss")


def _pair(name: str, pair: tuple[float, float] | None, more: str) -> Fact:
    if pair is None:
        return Fact(name=name, value="–", under="no attempt on record" + more)
    return Fact(name=name, value=span(pair[0]), under=f"p95 {span(pair[1])}{more}")


def durations_of(runs: Sequence[RunView], *, job: JobView, reading: Reading, links: Links) -> DurationsPart | None:
    """Make the picture of how long the last attempts took, oldest at the left; None if none has ended."""
    ended = [run for run in runs if run.claimed_at and run.finished_at][:120][::-1]
    if not ended:
        return None
    took = [
        ((run.finished_at or run.slot) - (run.started_at or run.claimed_at or run.slot)).total_seconds()
        for run in ended
    ]
    ordered = sorted(took)
    p50, p95 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    size, unit = (3_600.0, "hours") if p50 >= 5_400 else (60.0, "minutes") if p50 >= 90 else (1.0, "seconds")
    top = max(took)
    step = next(one for one in _nice() if top / (one * size) <= 4)
    ticks = [(count * step * size, f"{count * step:g}") for count in range(5)]
    dots = [
        DurationDot(
            share=place / max(1, len(ended) - 1),
            took=seconds,
            tone={"ok": "ok", "lost": "lost"}.get(tone_of(run.status), "fail"),
            title=f"{reading.stamp(run.slot)}: {run.status.replace('_', ' ')} in {span(seconds)}",
            href=links.run(run.run),
        )
        for place, (run, seconds) in enumerate(zip(ended, took, strict=True))
    ]
    limit = job.timeout.total_seconds() if job.timeout else None
    label = f"The last {plural(len(ended), 'attempt')}: median {span(p50)}, 95th percentile {span(p95)}"
    return DurationsPart(
        svg=draw_durations(dots, p50=p50, p95=p95, limit=limit, ticks=ticks, label=label),
        lead=f"{unit}, {plural(len(ended), 'attempt')}",
        first=reading.until(ended[0].slot),
    )


def _nice() -> Sequence[float]:
    return [digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 5)]


def policies_of(job: JobView, lease_s: float | None = None) -> tuple[ListEntry, ...]:
    """Return each policy as a sentence with the option beside it: what happens when."""
    lease = f" ({span(lease_s)})" if lease_s else ""
    times = plural(job.retries, "time") if job.retries else "not at all"
    crash = (
        f"another takes over within a second of the lease’s end{lease}"
        if job.on_crash != "fail"
        else "the run ends as lost and no other node takes it over"
    )
    overlap = {
        "skip": "the slot is skipped, on record",
        "queue": "the latest slot waits until it has ended",
        "queue-all": "every slot waits, in order",
        "replace": "it is asked to stop, and the new one runs",
        "allow": f"both run, up to {job.overlap.most} at once",
    }
    catch_up = str(job.catch_up)
    missed = {
        "skip": "the missed slots are put on record and not run",
        "latest": "the latest missed slot is run, the others are put on record",
    }.get(catch_up, "the missed slots are run, within the bounds")
    entries = [
        ListEntry(title="If its node dies", words=crash, code=f"on_crash={job.on_crash}", icon="lost"),
        ListEntry(title="If it raises", words=f"it is tried again {times}", code=f"retries={job.retries}", icon="fail"),
    ]
    if job.timeout:
        limit = format_duration(job.timeout)
        entries.append(
            ListEntry(
                title="If it takes too long",
                words=f"it is stopped after {limit}",
                code=f"timeout={limit}",
                icon="clock",
            )
        )
    entries += [
        ListEntry(
            title="If the one before still runs",
            words=overlap[job.overlap.kind],
            code=f"overlap={job.overlap}",
            icon="skip",
        ),
        ListEntry(title="If no node was there", words=missed, code=f"catch_up={catch_up}", icon="miss"),
    ]
    if job.pause_after:
        entries.append(
            ListEntry(
                title="If it keeps failing",
                words=f"it is paused after {plural(job.pause_after, 'failure')} in a row",
                code=f"pause_after={job.pause_after}",
                icon="pause",
            )
        )
    if job.calendar:
        entries.append(
            ListEntry(
                title="On a day off",
                words=f"its slot is treated by {job.on_holiday or 'skip'}",
                code=f"calendar={job.calendar}",
                icon="cal",
            )
        )
    return tuple(entries)


def last_badge(job: JobView) -> Badge | None:
    """Return the badge of the last outcome; None if it never ran."""
    return None if job.last_status is None else badge_of(job.last_status)
