"""Whole pages of one thing, from its views: a job, a run, a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise

from solocron.service.draw.timeline import Window
from solocron.service.pages.audit import audit_entries
from solocron.service.pages.fleet import RefusedResult, by_node, refused_by, window_of
from solocron.service.pages.job import (
    JobDetailPage,
    band_icon,
    band_of,
    durations_of,
    facts_of,
    further_acts,
    job_acts,
    policies_of,
    state_of,
)
from solocron.service.pages.links import Links
from solocron.service.pages.nodes import NodePage, earlier_table, holds_table, how_ended, node_badge, node_facts
from solocron.service.pages.parts import Badge, Choices, ListEntry, TablePart, choose
from solocron.service.pages.run import RunDetailPage, errors_of, run_acts, run_facts, run_window
from solocron.service.pages.runs import runs_table
from solocron.service.pages.slots import TO_COME, SlotFate, slots_part
from solocron.service.pages.spans import SlotsSpan, shown_span
from solocron.service.pages.story import story_of
from solocron.service.pages.words import Reading, plural
from solocron.stores.contract import Blocked
from solocron.views import AuditView, HoldView, JobView, NodeView, RunView, WhyView

__all__ = ["job_page", "node_page", "run_page"]

_FILTERS = (("", "all"), ("not_well", "not well"), ("running", "running"))


def job_page(
    job: JobView,
    *,
    fates: Sequence[SlotFate],
    runs: Sequence[RunView],
    history: Sequence[RunView],
    reading: Reading,
    links: Links,
    operates: bool,
    chosen: datetime | None = None,
    attempts: Sequence[RunView] = (),
    refused: Sequence[RefusedResult] = (),
    losers: Sequence[NodeView] = (),
    why: WhyView | None = None,
    span: SlotsSpan,
    zones: Choices | None = None,
    status: str = "",
    older: str | None = None,
    upcoming: Sequence[tuple[datetime, str]] = (),
    days_off: Mapping[date, str] | None = None,
    notes: Sequence[str] = (),
    skipped: int | None = None,
    lease_s: float | None = None,
    backfills: tuple[ListEntry, ...] = (),
    audit: Sequence[AuditView] = (),
    aside: Blocked | None = None,
    here: Callable[..., str],
) -> JobDetailPage:
    """Make the page of a job; `fates` oldest first, `attempts` are those of the chosen slot, `refused` of any.

    `runs` are the rows of the table and `history` the last attempts for the durations, both newest first. `here` makes
    the address of this page with other parameters.
    """
    spans = [(one, shown_span(one), here(span=one)) for one in span.names]
    filters = [(one, words, here(status=one or None, cursor=None)) for one, words in _FILTERS]
    ways = (*((zones,) if zones is not None else ()), choose("Span", span.name, spans))
    before, after = _beside(fates, chosen)
    took, late = _percentiles(map(_took, history)), _percentiles(map(_late, history))
    return JobDetailPage(
        name=job.name,
        state=state_of(job, reading.now) if aside is None else Badge(tone="fail", icon="warn", word="set aside"),
        schedule=job.schedule,
        zone=job.zone,
        expression=job.expression,
        about=f"pool {job.pool}" + ("" if job.revision is None else f" · revision {job.revision}"),
        place=job.place,
        band=band_of(job, reading, skipped, aside),
        band_icon=band_icon(job),
        acts=job_acts(job, links, aside),
        more=further_acts(job, links),
        json=links.api(f"/jobs/{job.name}"),
        facts=facts_of(job, reading=reading, links=links, took=took, late=late, accounted=_accounted(fates, span)),
        slots=slots_part(
            fates,
            job=job.name,
            chosen=chosen,
            reading=reading,
            here=here,
            days_off=dict(days_off or {}),
            choices=ways,
        )
        if fates
        else None,
        story=story_of(
            chosen,
            attempts,
            refused=[one for one in refused if attempts and one.run == attempts[-1].run],
            nodes=losers,
            reading=reading,
            links=links,
            before=before,
            after=after,
            verdict="" if why is None else reading.told(why.verdict),
            here=here,
            operates=operates,
            job=job.name,
            fate=next((fate for fate in fates if fate.slot == chosen), None),
        )
        if chosen is not None
        else None,
        runs=runs_table(
            runs,
            reading=reading,
            links=links,
            with_job=False,
            chosen=chosen,
            refused=refused,
            empty=_never(job, status, reading),
        ),
        filters=choose("Filter", status, filters),
        older=older,
        durations=durations_of(history, job=job, reading=reading, links=links),
        next=tuple((reading.stamp(slot), reading.until(slot), note) for slot, note in upcoming),
        policies=policies_of(job, lease_s),
        notes=tuple(notes),
        backfills=backfills,
        audit=audit_entries(audit, reading),
    )


def run_page(
    attempts: Sequence[RunView],
    *,
    nodes: Sequence[NodeView],
    reading: Reading,
    links: Links,
    operates: bool,
    steps: TablePart | None = None,
    values: tuple[tuple[str, str], ...] = (),
    may_show_values: bool = False,
    output: str | None = None,
) -> RunDetailPage:
    """Make the page of a run; `attempts` in order, `nodes` are those that had one of them."""
    last = attempts[-1]
    refused = refused_by(nodes, last.run)
    story = story_of(last.slot, attempts, refused=refused, nodes=nodes, reading=reading, links=links, operates=False)
    started = [run for run in attempts if run.claimed_at]
    show = links.run(last.run, show="values") if may_show_values and not values else None
    return RunDetailPage(
        run=last.run,
        job=last.job,
        job_href=links.job(last.job),
        json=links.api(f"/runs/{last.run}"),
        head=f"slot {reading.day(last.slot)}, {reading.time(last.slot)} in {reading.zone_name}",
        state=story.badge,
        acts=run_acts(last, links) if operates else (),
        facts=run_facts(attempts, reading),
        lanes=by_node(
            nodes=nodes,
            runs=started,
            to_come=(),
            window=run_window(started, reading),
            reading=reading,
            links=links,
        )
        if started and nodes
        else None,
        story=story,
        attempts=runs_table(
            attempts[::-1],
            reading=reading,
            links=links,
            with_job=False,
            refused=refused,
            empty="No attempt is on record.",
        ),
        errors=errors_of(attempts),
        steps=steps,
        values=values,
        values_href=show,
        output=output,
        fence=last.fence,
        key=last.key,
    )


def node_page(
    node: NodeView,
    *,
    holds: Sequence[HoldView] = (),
    runs: Sequence[RunView],
    earlier: Sequence[NodeView] = (),
    reading: Reading,
    links: Links,
) -> NodePage:
    """Make the page of a node; `runs` are its last attempts, `earlier` the sessions before it, newest first."""
    window = _life_of(node, reading.now)
    lost = sum(run.status == "lost" for run in runs)
    band = ""
    if node.state in ("dead", "silent") or (node.state == "ended" and node.reason):
        since = reading.stamp(node.ended_at or node.expires_at, seconds=True)
        taken = f" {plural(lost, 'run')} of it {'was' if lost == 1 else 'were'} lost." if lost else ""
        band = f"{node.state.capitalize()} since {since}: {how_ended(node) or 'its lease ran out'}.{taken}"
    return NodePage(
        name=node.node,
        state=node_badge(node, reading),
        head=f"host {node.host}, pools {', '.join(node.pools)}",
        band=band,
        facts=node_facts(node, reading),
        lanes=by_node(nodes=[node], runs=runs, to_come=(), window=window, reading=reading, links=links),
        holds=holds_table(holds, node, reading=reading, links=links),
        runs=runs_table(runs, reading=reading, links=links, with_job=True, empty="It ran nothing."),
        earlier=earlier_table(earlier, node, reading=reading, links=links),
    )


def _life_of(node: NodeView, now: datetime) -> Window:
    """Return the hour that the picture of a node shows: the last one, or the last one of a node that is gone."""
    over = node.ended_at if node.state in ("dead", "ended") else None
    if over is None or now - over < timedelta(minutes=50):
        return window_of(now, 3_600)
    return Window(start=over - timedelta(minutes=50), end=over + timedelta(minutes=10), now=now)


def _accounted(fates: Sequence[SlotFate], span: SlotsSpan) -> tuple[int, int, str] | None:
    """Return how many slots of the picture are on record, how many came due, and those that did not run."""
    due = [fate.status for fate in fates if fate.status not in (None, TO_COME)]
    if not due:
        return None
    told = Counter(due)
    more = ", ".join(f"{told[one]} {one}" for one in ("failed", "missed", "skipped", "dropped") if told[one])
    return len(due) - told["unaccounted"], len(due), f"{shown_span(span.name)}" + (f": {more}" if more else "")


def _beside(fates: Sequence[SlotFate], chosen: datetime | None) -> tuple[datetime | None, datetime | None]:
    """Return the slots before and after the chosen one."""
    before = next((one.slot for one, two in pairwise(fates) if two.slot == chosen), None)
    after = next((two.slot for one, two in pairwise(fates) if one.slot == chosen), None)
    return before, after


def _never(job: JobView, status: str, reading: Reading) -> str:
    if status or job.last_status is not None:
        return "No run fits this filter."
    first = f"; its first slot is {reading.until(job.next)}" if job.next else ""
    return f"It never ran. It was declared {reading.until(job.created_at)}{first}."


def _took(run: RunView) -> timedelta | None:
    begun = run.started_at or run.claimed_at
    # How long a lost attempt was held says nothing of how long the job takes.
    return None if begun is None or run.finished_at is None or run.status == "lost" else run.finished_at - begun


def _late(run: RunView) -> timedelta | None:
    begun = run.started_at or run.claimed_at
    return None if begun is None or run.attempt != 1 or run.origin != "schedule" else begun - run.slot


def _percentiles(values: Iterable[timedelta | None]) -> tuple[float, float] | None:
    """Return median and 95th percentile in seconds; None if there is no value."""
    known = sorted(value.total_seconds() for value in values if value is not None)
    return (known[len(known) // 2], known[min(len(known) - 1, int(len(known) * 0.95))]) if known else None
