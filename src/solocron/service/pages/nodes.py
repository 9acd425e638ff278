"""Nodes: is one dead, is its clock right, do all run the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from solocron.service.draw.bars import draw_lease
from solocron.service.pages.fleet import SKEW, FleetPart, lease_left, shown_skew
from solocron.service.pages.links import Links
from solocron.service.pages.overview import held_for, progress_of
from solocron.service.pages.parts import Badge, Choices, Column, Fact, TableCell, TablePart, TableRow
from solocron.service.pages.words import Reading, plural, short_fence, span
from solocron.views import HoldView, NodeView

__all__ = [
    *("NodePage", "NodesPage", "earlier_table", "holds_table", "how_ended", "node_badge", "node_facts", "nodes_table"),
    "unserved_words",
]

_STATES = {"live": ("ok", "ok"), "silent": ("miss", "clock"), "dead": ("lost", "lost"), "ended": ("skip", "skip")}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesPage:
    """Every node of the namespace; `missing` are pools without any."""

    template: ClassVar[str] = "nodes.html"
    section: ClassVar[str] = "nodes"
    lead: str
    missing: tuple[str, ...]
    states: Choices
    table: TablePart

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """One node: its facts, its lane, what it holds, its last attempts, the sessions before it."""

    template: ClassVar[str] = "node.html"
    section: ClassVar[str] = "nodes"
    name: str
    state: Badge
    head: str
    band: str
    facts: tuple[Fact, ...]
    lanes: FleetPart
    holds: TablePart
    runs: TablePart
    earlier: TablePart

    @property
    def title(self) -> str:
        """The title of the page."""
        return self.name


def node_badge(node: NodeView, reading: Reading) -> Badge:
    """Return the state of a node; a silent one with the time since its lease ran out."""
    tone, icon = _STATES.get(node.state, ("skip", "miss"))
    word = node.state
    if node.state == "silent":
        word = f"silent {span(reading.now - node.expires_at)}"
    return Badge(tone=tone, icon=icon, word=word)


def unserved_words(unserved: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence for each pool without a live node."""
    return tuple(
        f"No live node serves pool {pool}: {plural(count, 'job')} {'does' if count == 1 else 'do'} not run."
        for pool, count in sorted(unserved.items())
    )


def nodes_table(
    nodes: Sequence[NodeView],
    *,
    reading: Reading,
    links: Links,
    empty: str,
) -> TablePart:
    """Make the table of nodes; what differs from most of the live ones is marked."""
    live = [node for node in nodes if node.state == "live"]
    usual = {
        what: Counter(getattr(node, what) for node in live).most_common(1)[0][0] if live else None
        for what in ("version", "zone_data", "revision")
    }
    return TablePart(
        label="Nodes",
        columns=(
            Column(title="node"),
            Column(title="state"),
            Column(title="lease left"),
            Column(title="last renewal", narrow=False),
            Column(title="running", right=True),
            Column(title="clock", right=True),
            Column(title="pools", narrow=False),
            Column(title="host", narrow=False),
            Column(title="release", narrow=False),
            Column(title="zone data", narrow=False),
            Column(title="revision", right=True, narrow=False),
            Column(title="since", narrow=False),
        ),
        rows=tuple(_row(node, usual, reading, links) for node in nodes),
        empty=empty,
    )


def _row(node: NodeView, usual: Mapping[str, object], reading: Reading, links: Links) -> TableRow:
    over = node.state in ("dead", "ended")
    if over:
        left = TableCell(text=node.reason or "ended", long=True, tone="lost" if node.state == "dead" else "")
    else:
        picture = draw_lease(lease_left(node, reading.now))
        left = TableCell(picture=picture, text=reading.until(node.expires_at).removeprefix("in "))

    def compared(what: str, text: str) -> TableCell:
        differs = not over and getattr(node, what) != usual[what]
        return TableCell(text=text, tone="miss" if differs else "", after="differs" if differs else "")

    clock = TableCell(text="–", title="not measured")
    if node.skew_s is not None:
        clock = TableCell(text=shown_skew(node.skew_s), tone="miss" if abs(node.skew_s) >= SKEW else "")
    return TableRow(
        cells=(
            TableCell(text=node.node, href=links.node(node.session), strong=True),
            TableCell(badge=node_badge(node, reading)),
            left,
            _renewal(node, reading),
            TableCell(text=f"{node.running} of {node.max_running}" if node.max_running else str(node.running)),
            clock,
            TableCell(text=", ".join(node.pools)),
            TableCell(text=node.host, after=f"pid {node.pid}"),
            compared("version", node.version),
            compared("zone_data", node.zone_data),
            compared("revision", "–" if node.revision is None else str(node.revision)),
            TableCell(text=reading.stamp(node.ended_at or node.started_at) if over else reading.stamp(node.started_at)),
        )
    )


def _renewal(node: NodeView, reading: Reading) -> TableCell:
    """Return when it last renewed, and how late its latest late beat was; half a lease late is half way to dead."""
    said = reading.stamp(node.last_renewal, seconds=True)
    if not node.late_s:
        return TableCell(text=said)
    when = "" if node.late_at is None else f"a beat came late at {reading.stamp(node.late_at, seconds=True)}"
    tone = "miss" if node.late_s * 2 >= node.lease.total_seconds() else ""
    return TableCell(text=said, after=f"once {span(node.late_s)} late", title=when, tone=tone)


def holds_table(holds: Sequence[HoldView], node: NodeView, *, reading: Reading, links: Links) -> TablePart:
    """Make the table of what a node holds at present; a takeover leaves it with none."""
    columns = (
        *(Column(title="job"), Column(title="slot"), Column(title="attempt", right=True, narrow=False)),
        *(Column(title="fence", narrow=False), Column(title="for", right=True)),
        *(Column(title="deadline", narrow=False), Column(title="progress", narrow=False)),
    )
    rows = tuple(
        TableRow(
            cells=(
                TableCell(text=hold.job, href=links.run(hold.run), strong=True),
                TableCell(text=reading.stamp(hold.slot)),
                TableCell(text=str(hold.attempt), tone="lost" if hold.attempt > 1 else ""),
                TableCell(text=short_fence(hold.fence), title=str(hold.fence), mono=True),
                held_for(hold, reading),
                TableCell(text=reading.stamp(hold.deadline, seconds=True) if hold.deadline else "none"),
                progress_of(hold),
            )
        )
        for hold in holds
    )
    over = node.state in ("dead", "ended")
    empty = "Its session is over: it holds nothing." if over else "It holds nothing right now."
    return TablePart(label="Holds", columns=columns, rows=rows, empty=empty)


def earlier_table(nodes: Sequence[NodeView], node: NodeView, *, reading: Reading, links: Links) -> TablePart:
    """Make the table of the sessions that began before this one on the same host."""

    def ended(one: NodeView) -> str:
        return "now" if one.ended_at is None else reading.stamp(one.ended_at)

    columns = (
        *(Column(title="node"), Column(title="state"), Column(title="from, to")),
        *(Column(title="lasted", right=True), Column(title="release", narrow=False)),
        *(Column(title="pid", right=True, narrow=False), Column(title="how it ended")),
    )
    rows = tuple(
        TableRow(
            cells=(
                TableCell(text=one.node, href=links.node(one.session), strong=True),
                TableCell(badge=node_badge(one, reading)),
                TableCell(text=f"{reading.stamp(one.started_at)} to {ended(one)}"),
                TableCell(text=span((one.ended_at or reading.now) - one.started_at)),
                TableCell(text=one.version, after="" if one.revision is None else f"revision {one.revision}"),
                TableCell(text=str(one.pid)),
                TableCell(text=how_ended(one), long=True),
            )
        )
        for one in nodes
    )
    empty = f"No other session of {node.host} is on record in the week before this one."
    return TablePart(label="Sessions before it", columns=columns, rows=rows, empty=empty, stacked=True)


def how_ended(node: NodeView) -> str:
    """Return why a session is over and which node found it dead; empty while it lives."""
    if node.ended_at is None:
        return ""
    if node.buried_by is None:
        return node.reason or "it closed its session"
    told = node.reason or "its lease ran out"
    return told if f"buried by {node.buried_by}" in told else f"{told}, buried by {node.buried_by}"


def node_facts(node: NodeView, reading: Reading) -> tuple[Fact, ...]:
    """Return the facts of one node."""
    clock = "–" if node.skew_s is None else shown_skew(node.skew_s)
    ended = node.ended_at is not None and node.state in ("dead", "ended")
    lease = Fact(
        name="Lease",
        value="over" if ended else reading.until(node.expires_at),
        under=node.reason or f"renewed until {reading.clock(node.expires_at)}",
    )
    return (
        lease,
        Fact(
            name="Running", value=str(node.running), under=f"of {node.max_running}" if node.max_running else "no bound"
        ),
        Fact(
            name="Clock",
            value=clock,
            under="against the store",
            tone="miss" if node.skew_s is not None and abs(node.skew_s) >= SKEW else "",
        ),
        Fact(
            name="Release",
            value=node.version,
            under=f"revision {node.revision}" if node.revision is not None else "no revision",
        ),
        Fact(name="Zone data", value=node.zone_data, under="of its machine"),
        Fact(name="Since", value=reading.stamp(node.started_at), under=f"{node.host}, pid {node.pid}"),
    )
