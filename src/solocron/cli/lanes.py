"""Draw a span of a namespace as lanes of characters: a line for each node or job, a column for each part of the span.

A cell shows the worst of what falls into it, by its character alone, so that the picture is the same without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from solocron.cli.heatmap import Cell, Picture

if TYPE_CHECKING:
    from solocron.views import LaneView, TimelineView

__all__ = ["PLAIN_MARKS", "SHAPES", "LaneMarks", "draw_lanes", "lane_marks"]

_LONGEST_NAME = 28
_FEWEST_COLUMNS = 20
_STATES = {"silent": " silent", "dead": " dead", "ended": " ended", "gone": " gone", "queue": " queue"}
_STEPS = (10, 30, 60, 300, 600, 1_800, 3_600, 4 * 3_600, 86_400)
_LABEL = 9


@dataclass(frozen=True, slots=True)
class LaneMarks:
    """The character of each thing that a cell can show."""

    ok: str
    running: str
    cancelled: str
    failed: str
    lost: str
    refused: str
    to_come: str
    now: str


SHAPES = LaneMarks("━", "▶", "─", "✕", "▒", "⊗", "◇", "│")
PLAIN_MARKS = LaneMarks("=", ">", "-", "!", "x", "#", "o", "|")
_WORST_FIRST = ("refused", "lost", "failed", "running", "cancelled", "ok", "to_come", "now")
_KINDS = {
    "succeeded": "ok",
    "handed_over": "ok",
    "running": "running",
    "offered": "running",
    "cancelled": "cancelled",
    "failed": "failed",
    "timed_out": "failed",
    "lost": "lost",
}
_STYLES = {
    "ok": "green",
    "running": "cyan",
    "cancelled": "yellow",
    "failed": "bold red",
    "lost": "magenta",
    "refused": "bold magenta",
    "to_come": "dim",
    "now": "dim",
}
_WORDS = {
    "ok": "succeeded",
    "running": "running",
    "cancelled": "cancelled",
    "failed": "failed",
    "lost": "lost with its node",
    "refused": "result refused",
    "to_come": "to come",
}


def lane_marks(encoding: str | None) -> LaneMarks:
    """Return the shapes where the encoding of the output has them, else plain characters."""
    try:
        "".join(getattr(SHAPES, kind) for kind in _WORST_FIRST).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return PLAIN_MARKS
    return SHAPES


class _Canvas:
    """The columns of the span, and what each cell of a line shows."""

    def __init__(self, view: TimelineView, columns: int) -> None:
        self.columns = columns
        self._start = view.start
        self._part = (view.end - view.start) / columns

    def at(self, moment: datetime) -> int:
        """Return the column of an instant, which may lie outside."""
        return (moment - self._start) // self._part

    def line(self, things: Sequence[tuple[str, int, int]], marks: LaneMarks) -> list[Cell]:
        """Return the cells of a line; a thing is its kind, its first and its last column."""
        worst: dict[int, str] = {}
        for kind, first, last in things:
            for column in range(max(first, 0), min(last, self.columns - 1) + 1):
                known = worst.get(column, "now")
                worst[column] = min(known, kind, key=_WORST_FIRST.index)
        return [
            (getattr(marks, worst[column]), _STYLES[worst[column]]) if column in worst else (" ", "")
            for column in range(self.columns)
        ]


def draw_lanes(view: TimelineView, *, width: int, marks: LaneMarks) -> Picture:
    """Draw the lanes below an axis of times in UTC, then the slots to come and what the characters mean."""
    names = [lane.name + _STATES.get(lane.state or "", "") for lane in view.lanes]
    label = min(max([len(name) for name in names] + [len("next")]), _LONGEST_NAME)
    canvas = _Canvas(view, max(width - label - 1, _FEWEST_COLUMNS))
    lines: list[tuple[Cell, ...]] = [((" " * (label + 1), ""), (_axis(view, canvas), "dim"))]
    used: set[str] = set()
    for name, lane in zip(names, view.lanes, strict=True):
        things = list(_things(view, lane, canvas))
        used.update(kind for kind, _, _ in things)
        lines.append(((f"{_cut(name, label):<{label}} ", ""), *canvas.line([*things, *_now(view, canvas)], marks)))
    if view.to_come:
        coming = [("to_come", canvas.at(one.slot), canvas.at(one.slot)) for one in view.to_come]
        lines.append((("next".ljust(label + 1), ""), *canvas.line([*coming, *_now(view, canvas)], marks)))
        used.add("to_come")
    legend: list[Cell] = []
    for kind in (kind for kind in _WORDS if kind in used):
        legend += [(getattr(marks, kind), _STYLES[kind]), (f" {_WORDS[kind]}   ", "")]
    return Picture((*lines, (), tuple(legend)) if legend else tuple(lines))


def _things(view: TimelineView, lane: LaneView, canvas: _Canvas) -> Iterator[tuple[str, int, int]]:
    for bar in lane.bars:
        yield _KINDS.get(bar.status, "failed"), canvas.at(bar.start), canvas.at(bar.end or view.now)
    for mark in lane.marks:
        if mark.kind == "refused":
            yield "refused", canvas.at(mark.at), canvas.at(mark.at)
    for part in view.dense:
        if part.node in (None, lane.name) and lane.state is not None:
            worst = min((_KINDS.get(status, "ok") for status in part.counts), key=_WORST_FIRST.index)
            yield worst, canvas.at(part.start), canvas.at(part.end - timedelta(microseconds=1))


def _now(view: TimelineView, canvas: _Canvas) -> list[tuple[str, int, int]]:
    return [("now", canvas.at(view.now), canvas.at(view.now))]


def _axis(view: TimelineView, canvas: _Canvas) -> str:
    """Return times on round instants, so far apart that they can be read."""
    span = (view.end - view.start).total_seconds()
    room = max(canvas.columns // _LABEL, 1)
    step = next((step for step in _STEPS if span / step <= room), _STEPS[-1])
    axis = [" "] * canvas.columns
    for seconds in range(int(view.start.timestamp()) // step * step + step, int(view.end.timestamp()), step):
        moment = datetime.fromtimestamp(seconds, tz=UTC)
        text = f"{moment:%m-%d}" if step >= 86_400 else f"{moment:%H:%M:%S}" if step < 60 else f"{moment:%H:%M}"
        at = canvas.at(moment)
        if at + len(text) <= canvas.columns:
            axis[at : at + len(text)] = text
    return "".join(axis).rstrip()


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}~"
