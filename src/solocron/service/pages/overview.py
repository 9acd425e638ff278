"""The overview: is everything all right, what needs a person, which node does what now."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from markupsafe import Markup

from solocron.service.draw.bars import draw_hours, draw_sum
from solocron.service.pages.fleet import FleetPart, SlotToCome, by_job, by_node, window_of
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Column, ListEntry, TableCell, TablePart, TableRow, choose
from solocron.service.pages.words import Reading, number, plural, short_fence, span
from solocron.views import DenseView, NodeView, RunView

__all__ = [
    "SPANS",
    "AccountingPart",
    "CountingPage",
    "EmptyPage",
    "OverviewPage",
    "SumLine",
    "Sums",
    "accounting_of",
    "arguments_of",
    "held_for",
    "next_of",
    "overview_page",
    "places_of",
    "progress_of",
    "running_of",
    "span_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The accounting of the last hours: slots that came due, by what became of them, compared with the schedules."""

    hours: int
    due: int
    counts: Mapping[str, int]
    """By the statuses of slots."""
    taken_over: int
    done_twice: int
    unaccounted: tuple[tuple[str, datetime], ...]
    """Slots that are decided and not on record, the first of them: job and slot."""
    missing: int
    """How many there are."""
    checked_jobs: int
    of_jobs: int
    left_out: Mapping[str, str]
    """Jobs that cannot be compared, and why."""
    by_hour: tuple[Mapping[str, int], ...]
    """What ended in each hour by status, the oldest first; the last one is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLine:
    """One number of the accounting, with where it leads."""

    tone: str
    count: str
    words: str
    href: str | None
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingPart:
    """The sentence of the page, its bar, its numbers, and the slots of each hour."""

    said: str
    verdict: str
    verdict_tone: str
    verdict_href: str | None
    bar: Markup
    lines: tuple[SumLine, ...]
    hours: Markup
    late: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyPage:
    """The overview of a namespace without any job: how to make the first one."""

    template: ClassVar[str] = "empty.html"
    section: ClassVar[str] = "overview"
    why: str
    """Why nothing is there, if even the store is missing."""
    store: str
    """The arguments of `Scheduler` that name the store which is shown."""

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Overview"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingPage:
    """The overview in the first seconds of a service: what is being counted, and how far it is."""

    template: ClassVar[str] = "counting.html"
    section: ClassVar[str] = "overview"
    hours: int
    of: int

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Overview"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage:
    """The overview; with `wall` the accounting and the fleet alone, large."""

    template: ClassVar[str] = "overview.html"
    section: ClassVar[str] = "overview"
    accounting: AccountingPart
    looks: tuple[ListEntry, ...]
    calm: str
    """What stands there when nothing needs a look."""
    running: TablePart
    running_now: int
    """How many attempts run; the table has the first of them."""
    places: str
    soon: tuple[tuple[str, str, str, str], ...]
    """When, its ISO instant, job, address."""
    soon_lead: str
    fleet: FleetPart
    wall: bool = False

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Overview"


def accounting_of(sums: Sums, reading: Reading, links: Links, *, late_p95: float | None = None) -> AccountingPart:
    """Make the accounting; the sentence is green only if every job was compared and nothing is missing."""
    begin = reading.now - timedelta(hours=sums.hours)
    since, missing, counts = begin.isoformat(), sums.missing, sums.counts
    failed = sum(count for status, count in counts.items() if status not in _TONES)
    verdict, tone, href = "Every one is accounted for.", "ok", None
    if missing:
        verdict, tone = f"{plural(missing, 'slot')} {'is' if missing == 1 else 'are'} not accounted for.", "fail"
        href = links.to("/accounting")
    elif sums.checked_jobs < sums.of_jobs:
        verdict, tone = f"{number(sums.checked_jobs)} of {plural(sums.of_jobs, 'job')} checked so far.", "miss"
    elif sums.left_out:
        verdict, tone = f"{plural(len(sums.left_out), 'job')} could not be compared.", "miss"
        href = links.to("/accounting")
    lines = [
        ("ok", counts.get("succeeded", 0), "ran once", "succeeded"),
        ("ok", counts.get("handed_over", 0), "handed over", "handed_over"),
        ("run", counts.get("running", 0), "running", "running"),
        ("wait", counts.get("offered", 0), "in a queue", "offered"),
        ("wait", counts.get("waiting", 0) + counts.get("due", 0), "waiting", "waiting"),
        ("fail", failed, "failed", "failed"),
        ("miss", counts.get("missed", 0), "missed", "missed"),
        ("skip", counts.get("skipped", 0), "skipped by choice", "skipped"),
        ("miss", counts.get("dropped", 0), "dropped", "dropped"),
        ("skip", counts.get("cancelled", 0), "cancelled", "cancelled"),
    ]
    always = {"running", "failed", "missed", "succeeded"}
    shown = [one for one in lines if one[1] or one[3] in always]
    parts = [(tone_, count) for tone_, count, _, _ in shown] + [("none", missing)]
    label = ", ".join(f"{number(count)} {words}" for _, count, words, _ in shown)
    return AccountingPart(
        said=f"{plural(sums.due, 'slot')} came due in the last {sums.hours} hours.",
        verdict=verdict,
        verdict_tone=tone,
        verdict_href=href,
        bar=draw_sum(parts, f"{label}, {number(missing)} unaccounted for"),
        lines=(
            *(
                SumLine(tone=tone_, count=number(count), words=words, href=_listed(status, since, links))
                for tone_, count, words, status in shown
            ),
            SumLine(
                tone="lost",
                count=number(sums.taken_over),
                words="taken over",
                href=links.runs(status="lost", since=since),
                of="of those that ran or run",
            ),
            SumLine(tone="none", count=number(sums.done_twice), words="done twice", href=None),
            SumLine(tone="none", count=number(missing), words="unaccounted for", href=href),
        ),
        hours=draw_hours(
            [_by_tone(hour) for hour in sums.by_hour],
            _hour_marks(reading.now - timedelta(hours=len(sums.by_hour) - 1), len(sums.by_hour), reading),
            "What ended in each hour, by how it ended",
        ),
        late="" if late_p95 is None else f"started within {span(late_p95)} (p95)",
    )


def _by_tone(counts: Mapping[str, int]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for status, count in counts.items():
        found["lost" if status == "lost" else _TONES.get(status, "fail")] += count
    return dict(found)


def _late_p95(runs: Sequence[RunView]) -> float | None:
    """Return how late most first attempts began, in seconds."""
    late = sorted(
        (run.claimed_at - run.slot).total_seconds()
        for run in runs
        if run.claimed_at and run.attempt == 1 and run.origin == "schedule"
    )
    return late[min(len(late) - 1, int(len(late) * 0.95))] if late else None


def _listed(status: str, since: str, links: Links) -> str:
    """Return where the slots of a status are listed."""
    if status == "waiting":
        return links.jobs(state="waiting")
    return links.runs(status=("failed", "timed_out", "lost") if status == "failed" else status, since=since)


def running_of(runs: Sequence[RunView], reading: Reading, links: Links) -> TablePart:
    """Make the table of what runs now, from the holds."""
    return TablePart(
        label="Running now",
        columns=(
            Column(title="job"),
            Column(title="slot"),
            Column(title="attempt", right=True, narrow=False),
            Column(title="held by"),
            Column(title="fence", narrow=False),
            Column(title="for", right=True),
            Column(title="progress", narrow=False),
        ),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=run.job, href=links.run(run.run), strong=True),
                    TableCell(text=reading.stamp(run.slot)),
                    TableCell(text=str(run.attempt), tone="lost" if run.attempt > 1 else ""),
                    TableCell(text=run.node or "", href=links.nodes(q=run.node)),
                    TableCell(text=short_fence(run.fence), title=str(run.fence), mono=True),
                    held_for(run, reading),
                    progress_of(run),
                )
            )
            for run in runs
        ),
        empty="Nothing runs right now.",
    )


def progress_of(run: RunView) -> TableCell:
    """Return what a run tells of its progress, as a bar if it told a share."""
    told = run.progress or {}
    done, total = told.get("done", told.get("current")), told.get("total")
    if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
        share = min(1.0, max(0.0, done / total))
        return TableCell(text=f"{share * 100:.0f} %", share=share, title=f"{done:,} of {total:,}")
    note = told.get("note") or told.get("message")
    return TableCell(text=str(note), wide=True) if note else TableCell(text="not told", tone="skip")


def held_for(run: RunView, reading: Reading) -> TableCell:
    """Return for how long an attempt is held; past its deadline it stands out."""
    if run.claimed_at is None:
        return TableCell(text="–")
    past = run.deadline is not None and run.deadline <= reading.now
    words = span(reading.now - run.claimed_at)
    return TableCell(
        text=words,
        tone="miss" if past or run.stuck else "",
        after="past its deadline" if past else "",
        until=run.claimed_at.isoformat(),
    )


def next_of(slots: Sequence[SlotToCome], reading: Reading, links: Links) -> tuple[tuple[str, str, str, str], ...]:
    """Return the first slots to come: when, the instant, the job and its address."""
    first = sorted(slots, key=lambda one: (one.slot, one.job))[:6]
    return tuple((reading.until(one.slot), one.slot.isoformat(), one.job, links.job(one.job)) for one in first)


def places_of(nodes: Sequence[NodeView]) -> str:
    """Return how many runs the live nodes could take now; empty if one of them has no bound."""
    live = [node for node in nodes if node.state == "live"]
    if not live or any(node.max_running is None for node in live):
        return ""
    return f"{plural(sum((node.max_running or 0) - node.running for node in live), 'place')} free"


def _hour_marks(first: datetime, count: int, reading: Reading) -> list[tuple[int, str]]:
    marks = [
        (hour, f"{reading.local(first + timedelta(hours=hour)):%H:00}")
        for hour in range(0, max(0, count - 3), max(1, count // 3))
    ]
    return [*marks, (count - 1, "now")] if count else []


_TONES = {
    "succeeded": "ok",
    "handed_over": "ok",
    "running": "run",
    "offered": "wait",
    "waiting": "wait",
    "due": "wait",
    "missed": "miss",
    "dropped": "miss",
    "skipped": "skip",
    "cancelled": "skip",
    "unaccounted": "none",
}
"""Tones of the statuses of slots; any other one is a failure."""

SPANS = {"1m": 60, "10m": 600, "1h": 3_600, "6h": 6 * 3_600, "24h": 86_400, "7d": 7 * 86_400}
"""Spans of the fleet picture, in seconds."""


def arguments_of(url: str, namespace: str) -> str:
    """Return the arguments of `Scheduler` for a store; one with a password is named by the environment."""
    named = [] if "***" in url else [json.dumps(url)]
    return ", ".join(named + ([] if namespace == "default" else [f"namespace={json.dumps(namespace)}"]))


def span_of(age: timedelta) -> str:
    """Return the span in which a fleet of this age is drawn unasked: all of it while it is young, else an hour."""
    return next((name for name in ("1m", "10m") if age.total_seconds() <= SPANS[name]), "1h")


def overview_page(
    *,
    sums: Sums,
    nodes: Sequence[NodeView],
    runs: Sequence[RunView],
    running: Sequence[RunView],
    running_now: int,
    to_come: Sequence[SlotToCome],
    looks: tuple[ListEntry, ...],
    reading: Reading,
    links: Links,
    cleared_at: datetime | None = None,
    lanes: str = "node",
    span_name: str = "1h",
    wall: bool = False,
    dense: Sequence[DenseView] = (),
) -> OverviewPage:
    """Make the overview; `runs` are the attempts of the span, `running` the first of the
    `running_now` that the holds name.

    If the span has more attempts than these, the newest ones, `dense` counts the others.
    """
    window = window_of(reading.now, SPANS[span_name])
    tv = 1 if wall else None
    choices = (
        choose(
            "Lanes",
            lanes,
            [(one, f"by {one}", links.overview(lanes=one, span=span_name, tv=tv)) for one in ("node", "job")],
        ),
        choose(
            "Span",
            span_name,
            [(one, f"{one[:-1]} {one[-1]}", links.overview(lanes=lanes, span=one, tv=tv)) for one in SPANS],
        ),
    )
    if lanes == "job":
        fleet = by_job(
            runs=runs, to_come=to_come, window=window, reading=reading, links=links, choices=choices, dense=dense
        )
    else:
        fleet = by_node(
            nodes=nodes,
            runs=runs,
            to_come=to_come,
            window=window,
            reading=reading,
            links=links,
            choices=choices,
            dense=dense,
        )
    if dense:
        until = reading.clock(max(one.end for one in dense))
        words = f"Before {until} a column counts the attempts that ended in it."
        fleet = replace(fleet, more=f"{words} {fleet.more}".strip())
    ahead = [one for one in to_come if reading.now < one.slot <= window.end]
    return OverviewPage(
        accounting=accounting_of(sums, reading, links, late_p95=_late_p95(runs)),
        looks=looks,
        calm=f"Nothing. The last alarm was cleared {reading.until(cleared_at)}." if cleared_at else "Nothing.",
        running=running_of(running, reading, links),
        running_now=running_now,
        places=places_of(nodes),
        soon=next_of(to_come, reading, links),
        soon_lead=f"first of {plural(len(ahead), 'slot')} within {span(window.end - reading.now)}" if ahead else "",
        fleet=fleet,
        wall=wall,
    )
