"""The fleet picture, from the views of nodes and runs: lanes, takeovers, refused results, slots to come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from solocron.service.draw.bars import draw_lease
from solocron.service.draw.timeline import (
    Bar,
    DenseColumn,
    Lane,
    LaneMark,
    TakeoverLine,
    Window,
    axis,
    draw_lanes,
    draw_next,
)
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Choices, tone_of
from solocron.service.pages.words import Reading, plural, short_fence, span
from solocron.views import DenseView, NodeView, RunView

__all__ = [
    *("SKEW", "FleetPart", "LanePart", "RefusedResult", "SlotToCome"),
    *("by_job", "by_node", "lease_left", "refused_by", "shown_skew", "ticks_of", "window_of"),
]

_STEPS = (10, 60, 300, 900, 3_600, 4 * 3_600, 86_400)
_MOST_LANES = 60

SKEW = 1.0
"""Seconds by which a clock may differ from the store's before the difference is marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedResult:
    """A result that came after the run was taken over, and that the store refused."""

    node: str
    run: str
    fence: int
    at: datetime
    outcome: str
    """How the run would have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotToCome:
    """A slot of a job that is not due yet."""

    job: str
    slot: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePart:
    """The label of a lane and its drawing."""

    name: str
    href: str | None
    state: str
    words: tuple[tuple[str, str], ...]
    """What stands below the name: a tone, or none, and words."""
    lease: Markup | None
    svg: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPart:
    """The whole picture: lanes below an axis, the slots to come, and how else to see it."""

    lead: str
    head: str
    axis: Markup
    lanes: tuple[LanePart, ...]
    next: Markup | None
    choices: tuple[Choices, ...]
    zone: str
    queued: bool = False
    """True if a bar is a message that waits in a queue."""
    more: str = ""
    """How many lanes are left out."""


def refused_by(nodes: Iterable[NodeView], run: str | None = None) -> tuple[RefusedResult, ...]:
    """Return the results that the store refused from these nodes, of all runs or of one."""
    return tuple(
        RefusedResult(node=node.node, run=one.run, fence=one.fence, at=one.at, outcome=one.outcome)
        for node in nodes
        for one in node.refused
        if run in (None, one.run)
    )


def lease_left(node: NodeView, now: datetime) -> float:
    """Return the share of a node's lease that is left, 0 to 1."""
    return min(1.0, max(0.0, (node.expires_at - now) / node.lease)) if node.lease else 0.0


def shown_skew(seconds: float) -> str:
    """Return by how much a clock is ahead of the store's, or behind it."""
    return f"{'+' if seconds >= 0 else '−'}{span(abs(seconds))}"


def window_of(now: datetime, seconds: int) -> Window:
    """Return the window that ends a fifth of its span after the present, for the slots to come."""
    return Window(start=now - timedelta(seconds=seconds), end=now + timedelta(seconds=seconds / 5), now=now)


def ticks_of(window: Window, reading: Reading) -> tuple[tuple[datetime, str], ...]:
    """Return instants on round times of the page's zone, at most eight, with their labels."""
    long = (window.end - window.start).total_seconds()
    step = next((size for size in _STEPS if long / size <= 8), _STEPS[-1])
    offset = reading.local(window.start).utcoffset() or timedelta()
    first = (int(window.start.timestamp() + offset.total_seconds()) // step + 1) * step - int(offset.total_seconds())
    found = []
    for seconds in range(first, int(window.end.timestamp()), step):
        at = datetime.fromtimestamp(seconds, tz=window.now.tzinfo)
        # A label beneath that of the present could not be read.
        if abs(window.share(at) - window.share(window.now) + 0.05) > (0.07 if step >= 60 else 0.14):
            found.append((at, reading.day(at) if step >= 86_400 else reading.time(at)))
    return tuple(found)


def by_node(
    *,
    nodes: Sequence[NodeView],
    runs: Sequence[RunView],
    to_come: Sequence[SlotToCome],
    window: Window,
    reading: Reading,
    links: Links,
    choices: tuple[Choices, ...] = (),
    dense: Sequence[DenseView] = (),
) -> FleetPart:
    """Make the picture with a lane for each node, live ones first; of `dense` each node has its own columns."""
    # Live ones first, then those that are silent or dead, then those that ended; each group by name.
    order = {"live": 0, "silent": 1, "dead": 2}
    listed = sorted(nodes, key=lambda node: (order.get(node.state, 3), node.node))
    per_node = defaultdict(list)
    for run in runs:
        per_node[run.node].append(run)
    lanes = [
        Lane(
            name=node.node,
            bars=tuple(_bar(run, reading, links, _label) for run in per_node[node.node] if _is_of(run, node, window)),
            marks=_marks(node, window, reading),
            unheld=_unheld(node, runs, window),
            began=node.started_at,
            dense=_columns(one for one in dense if one.node == node.node and _is_during(one, node)),
        )
        for node in listed[:_MOST_LANES]
    ]
    labels = [_node_label(node, reading, links) for node in listed[:_MOST_LANES]]
    live = sum(node.state == "live" for node in listed[:_MOST_LANES])
    for name, waiting in sorted(_queues(runs).items(), reverse=True):  # below the live nodes
        lanes.insert(live, Lane(name=name, bars=tuple(_bar(run, reading, links, _label) for run in waiting)))
        words = f"queue, {plural(len(waiting), 'message')} {'waits' if len(waiting) == 1 else 'wait'}"
        labels.insert(live, (name, links.runs(status="offered"), "", (("", words),), None))
    together = _columns(one for one in dense if one.node is None)
    if together:
        lanes.insert(0, Lane(name="all nodes", dense=together))
        labels.insert(0, ("all nodes", None, "", (("", "attempts that ended"),), None))
    states = Counter(node.state for node in nodes)
    told = ", ".join(f"{states[state]} {state}" for state in ("live", "silent", "dead", "ended") if states[state])
    return _part(
        lead=f"{told or 'no node'} · each bar is one attempt, from claim to end",
        head="node",
        lanes=lanes,
        labels=labels,
        runs=runs,
        to_come=to_come,
        window=window,
        reading=reading,
        choices=choices,
        left_out=len(listed) - _MOST_LANES,
    )


def by_job(
    *,
    runs: Sequence[RunView],
    to_come: Sequence[SlotToCome],
    window: Window,
    reading: Reading,
    links: Links,
    choices: tuple[Choices, ...] = (),
    dense: Sequence[DenseView] = (),
) -> FleetPart:
    """Make the picture with a lane for each job that ran in the window; a tick before each bar is its slot.

    No index counts by job, so `dense` is drawn in one lane for all of them.
    """
    per_job = defaultdict(list)
    for run in runs:
        if run.claimed_at or run.carrier:
            per_job[run.job].append(run)
    names = sorted(per_job)
    lanes = [
        Lane(name=name, bars=tuple(_bar(run, reading, links, _node, slot=True) for run in per_job[name]))
        for name in names[:_MOST_LANES]
    ]
    labels: list[_Label] = [
        (name, links.job(name), "", (("", plural(len(per_job[name]), "attempt")),), None)
        for name in names[:_MOST_LANES]
    ]
    if dense:
        lanes.insert(0, Lane(name="all jobs", dense=_columns(dense)))
        labels.insert(0, ("all jobs", None, "", (("", "attempts that ended"),), None))
    return _part(
        lead=f"{plural(len(names), 'job')} ran · each bar is one attempt, from claim to end",
        head="job",
        lanes=lanes,
        labels=labels,
        runs=runs,
        to_come=to_come,
        window=window,
        reading=reading,
        choices=choices,
        left_out=len(names) - _MOST_LANES,
    )


_Label = tuple[str, str | None, str, tuple[tuple[str, str], ...], Markup | None]


def _part(
    *,
    lead: str,
    head: str,
    lanes: Sequence[Lane],
    labels: Sequence[_Label],
    runs: Sequence[RunView],
    to_come: Sequence[SlotToCome],
    window: Window,
    reading: Reading,
    choices: tuple[Choices, ...],
    left_out: int,
) -> FleetPart:
    ticks = ticks_of(window, reading)
    drawn = draw_lanes(window, lanes, _takeovers(runs), [at for at, _ in ticks])
    return FleetPart(
        lead=lead,
        head=head,
        axis=axis(window, ticks, f"now {reading.clock(window.now)}"),
        lanes=tuple(
            LanePart(name=name, href=href, state=state, words=words, lease=lease, svg=picture.svg)
            for (name, href, state, words, lease), picture in zip(labels, drawn, strict=True)
        ),
        next=_next(to_come, window, reading),
        choices=choices,
        zone=reading.zone_name,
        queued=any(run.carrier for run in runs),
        more="" if left_out <= 0 else f"{plural(left_out, head)} more, on the page of the {head}s",
    )


def _label(run: RunView) -> str:
    return run.job if run.attempt <= 1 else f"{run.job} · attempt {run.attempt}"


def _node(run: RunView) -> str:
    return run.node or run.carrier or ""


def _queues(runs: Iterable[RunView]) -> dict[str, list[RunView]]:
    """Return the runs whose messages wait to be picked up, by queue."""
    found: dict[str, list[RunView]] = defaultdict(list)
    for run in runs:
        if run.carrier is not None:
            found[run.carrier].append(run)
    return found


def _bar(run: RunView, reading: Reading, links: Links, label: Callable[[RunView], str], *, slot: bool = False) -> Bar:
    start = run.claimed_at or run.slot
    end = "still running" if run.finished_at is None else f"to {reading.clock(run.finished_at)}"
    how = f"{run.node} · {reading.clock(start)} {end} · {run.status.replace('_', ' ')}"
    return Bar(
        run=run.run,
        attempt=run.attempt,
        start=start,
        end=run.finished_at,
        tone=tone_of(run.status),
        label=label(run),
        title=f"{run.job} · attempt {run.attempt} · {run.reason if run.carrier else how}",
        href=links.run(run.run),
        slot=run.slot if slot else None,
    )


def _columns(dense: Iterable[DenseView]) -> tuple[DenseColumn, ...]:
    """Put counts by status together as columns by tone."""
    found: dict[tuple[datetime, datetime], Counter[str]] = defaultdict(Counter)
    for one in dense:
        for status, count in one.counts.items():
            found[one.start, one.end][tone_of(status)] += count
    return tuple(DenseColumn(start=start, end=end, counts=dict(counts)) for (start, end), counts in found.items())


def _is_during(one: DenseView, node: NodeView) -> bool:
    """Return whether a node had this session when a column ended: one of the same name may have had others."""
    return node.started_at <= one.end and (node.ended_at is None or one.start <= node.ended_at)


def _is_of(run: RunView, node: NodeView, window: Window) -> bool:
    """Return whether an attempt is in the window and of this session: a node of the same name may have had others."""
    if run.claimed_at is None or run.claimed_at < node.started_at:
        return False
    if run.finished_at is not None and run.finished_at < window.start:
        return False
    return node.ended_at is None or run.claimed_at <= node.ended_at


def _marks(node: NodeView, window: Window, reading: Reading) -> tuple[LaneMark, ...]:
    late = [one.at for one in node.refused if window.start <= one.at <= window.end]
    marks = [LaneMark(at=at, kind="refused", words="") for at in late[:-1]]
    marks += [LaneMark(at=at, kind="refused", words="woke up, its result was refused") for at in late[-1:]]
    # The words stand left of the line, where there must be room for them.
    if window.share(node.started_at) > 0.15:
        marks.append(LaneMark(at=node.started_at, kind="began", words=f"started {reading.clock(node.started_at)}"))
    return tuple(marks)


def _unheld(node: NodeView, runs: Sequence[RunView], window: Window) -> tuple[tuple[datetime, datetime], ...]:
    """Return when the node had no live lease: since it ended, and from a lost attempt to its refused result."""
    spans = []
    lost = {run.run: run.finished_at for run in runs if run.status == "lost" and run.node == node.node}
    for one in node.refused:
        since = lost.get(one.run)
        if since is not None and since < one.at:
            spans.append((since, one.at))
    over = node.ended_at if node.state in ("dead", "ended") else node.expires_at if node.state == "silent" else None
    if over is not None and over < window.end:
        spans.append((max(over, window.start), window.end))
    return tuple(spans)


def _takeovers(runs: Sequence[RunView]) -> tuple[TakeoverLine, ...]:
    known = {(run.run, run.attempt): run for run in runs}
    found = []
    for run in runs:
        after = known.get((run.run, run.attempt + 1))
        if run.status != "lost" or after is None or after.claimed_at is None or run.finished_at is None:
            continue
        found.append(
            TakeoverLine(
                run=run.run,
                attempt=run.attempt,
                at=run.finished_at,
                words=(
                    f"taken over by {after.node} after {span(after.claimed_at - run.finished_at)}",
                    f"fence {short_fence(run.fence)} → {short_fence(after.fence)}",
                ),
            )
        )
    return tuple(found)


def _node_label(node: NodeView, reading: Reading, links: Links) -> _Label:
    href = links.node(node.session)
    if node.state in ("dead", "ended") and node.ended_at is not None:
        why = f", {node.reason}" if node.reason else ""
        return node.node, href, node.state, (("", f"{node.state} {reading.clock(node.ended_at)}{why}"),), None
    places = f"{node.running} of {node.max_running} running" if node.max_running else f"{node.running} running"
    words = [("", places)]
    if node.skew_s is not None:
        words.append(("miss" if abs(node.skew_s) >= SKEW else "", f"clock {shown_skew(node.skew_s)}"))
    if node.state == "silent":
        words.append(("miss", f"silent, {span(reading.now - node.expires_at)} past its lease"))
    return node.node, href, node.state, tuple(words), draw_lease(lease_left(node, reading.now))


def _next(to_come: Sequence[SlotToCome], window: Window, reading: Reading) -> Markup | None:
    if not to_come:
        return None
    at_once: dict[datetime, list[str]] = defaultdict(list)
    for one in to_come:
        if window.now < one.slot <= window.end:
            at_once[one.slot].append(one.job)
    slots = [
        (at, len(names), f"{reading.clock(at)}: {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}")
        for at, names in sorted(at_once.items())[:200]
    ]
    count = sum(map(len, at_once.values()))
    words = f"{plural(count, 'slot')} in the next {span(window.end - window.now)}; the first node to claim one runs it"
    return draw_next(window, slots, words).svg
