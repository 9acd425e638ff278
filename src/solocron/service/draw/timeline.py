"""The fleet: a lane per node or job, a bar per attempt, takeovers with both fences, refused results, slots to come.

Every attempt is drawn. When there are more than `MOST_BARS`, the older ones are put together into columns, and each
column states how many attempts it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from markupsafe import Markup

from solocron.service.draw.svg import drawn, link, pct, px, text

__all__ = [
    "MOST_BARS",
    "Bar",
    "DenseColumn",
    "Lane",
    "LaneMark",
    "LanePicture",
    "TakeoverLine",
    "Window",
    "axis",
    "draw_lanes",
    "draw_next",
]

MOST_BARS = 700
"""A bar costs some 24 bytes of a compressed page, of which all may have 25 kB."""
_MOST_ROWS = 8
_ROW, _BAR, _TALL, _PAD = 17.0, 13.0, 17.0, 8.0
_THINNEST = 0.003
_SEEN = 3.0
"""Pixels at least of what went wrong in a column."""
_WORST = ("fail", "lost", "miss", "run", "skip", "ok")
_LABEL_FROM = 0.055
_NEXT_EDGE = 0.97
"""From here on the number of a slot to come stands before it."""
_NEXT_LAST = 0.995
"""The place of the last one, so that its shape stays whole."""
_WORDS_APART = 0.2
"""Share of the width that the words of a takeover take."""
"""Share of the width from which a bar has room for a label; the bar clips what does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that the picture shows, from `start` to `end`; a picture of the past has `now` after its end."""

    start: datetime
    end: datetime
    now: datetime

    def share(self, at: datetime) -> float:
        """Return where an instant stands, 0 at the left edge and 1 at the right, never outside."""
        return min(1.0, max(0.0, (at - self.start) / (self.end - self.start)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One attempt, from claim to end; `end` is None while it runs."""

    run: str
    attempt: int
    start: datetime
    end: datetime | None
    tone: str
    """`ok`, `run`, `fail` or `lost`: a colour and a shape."""
    label: str
    title: str
    href: str | None
    slot: datetime | None = None
    """Its nominal slot, where the picture shows lanes by job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneMark:
    """Something that happened at an instant in a lane; `kind` is `refused` or `began`."""

    at: datetime
    kind: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseColumn:
    """Attempts of a lane that began in one part of the window, by tone."""

    start: datetime
    end: datetime
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The attempts of one node, or of one job. Between `unheld` pairs the node had no live lease."""

    name: str
    bars: tuple[Bar, ...] = ()
    marks: tuple[LaneMark, ...] = ()
    unheld: tuple[tuple[datetime, datetime], ...] = ()
    began: datetime | None = None
    dense: tuple[DenseColumn, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverLine:
    """A run that went from a lost attempt to the next one; `words` are told beside the lost bar."""

    run: str
    attempt: int
    """The attempt that was lost; the next one took over."""
    at: datetime
    words: tuple[str, ...]


class _Placed(NamedTuple):
    """A bar with its row, its left edge and its width, both as shares."""

    bar: Bar
    row: int
    left: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePicture:
    """The drawing of one lane and its height in pixels."""

    svg: Markup
    height: int


def axis(window: Window, ticks: Sequence[tuple[datetime, str]], now: str) -> Markup:
    """Draw the line of times above the lanes; `ticks` are instants with their labels."""
    parts = ['<svg height="26" aria-hidden="true">', _future(window)]
    for number, (at, label) in enumerate(ticks):
        share = window.share(at)
        x = pct(share)
        # A phone has room for every second label, and for none beside the present.
        narrow = ' class="hide-s"' if number % 2 or 0 < share - window.share(window.now) + 0.45 < 0.5 else ""
        parts.append(f'<text{narrow} x="{x}" dx="4" y="17">{text(label)}</text>')
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="8" y2="26"/>')
    if window.now > window.end:
        return drawn(*parts, "</svg>")
    x = pct(window.share(window.now))
    # The label of the present stands left of its line, unless the line is at the left edge.
    anchor, shift = ("end", -5) if window.share(window.now) > 0.15 else ("start", 5)
    parts.append(f'<text class="nowtag" x="{x}" dx="{shift}" y="17" text-anchor="{anchor}">{text(now)}</text>')
    parts.append(f'<line class="now" x1="{x}" x2="{x}" y1="0" y2="26"/></svg>')
    return drawn(*parts)


def draw_lanes(
    window: Window, lanes: Sequence[Lane], takeovers: Sequence[TakeoverLine] = (), ticks: Iterable[datetime] = ()
) -> tuple[LanePicture, ...]:
    """Draw every lane; a takeover's line runs through all the lanes between its two attempts."""
    lanes = _thinned(window, lanes)
    placed = [_rows(window, lane) for lane in lanes]
    heights = [int(2 * _PAD + max(3, max((one.row for one in rows), default=0) + 1) * _ROW - 4) for rows in placed]
    where = {
        (one.bar.run, one.bar.attempt): (number, _PAD + one.row * _ROW + _BAR / 2)
        for number, rows in enumerate(placed)
        for one in rows
    }
    crossing = _crossings(window, takeovers, where, heights)
    grid = "".join(
        f'<line class="grid" x1="{pct(window.share(at))}" x2="{pct(window.share(at))}" y1="0" y2="100%"/>'
        for at in ticks
    )
    return tuple(
        LanePicture(
            svg=_lane(window, lane, placed[number], heights[number], grid, crossing[number]), height=heights[number]
        )
        for number, lane in enumerate(lanes)
    )


def _lane(
    window: Window, lane: Lane, rows: Sequence[_Placed], height: int, grid: str, crossing: Sequence[str]
) -> Markup:
    parts = [f'<svg height="{height}" role="group" aria-label="{text("Attempts of " + lane.name)}">', grid]
    parts.append(_future(window))
    if lane.began is not None and lane.began > window.start:
        x = pct(window.share(lane.began))
        parts.append(f'<rect class="gone" x="0" y="0" width="{x}" height="100%"/>')
        parts.append(f'<line class="slotline" x1="{x}" x2="{x}" y1="0" y2="100%"/>')
    for start, end in lane.unheld:
        left, right = window.share(start), window.share(end)
        size = f'x="{pct(left)}" y="0" width="{pct(right - left)}" height="100%"'
        parts.append(f'<rect class="gone" {size}/><rect {size} fill="url(#hatch-dead)"/>')
    most = max((sum(column.counts.values()) for column in lane.dense), default=0)
    parts += [_column(window, column, most, height) for column in lane.dense]
    parts += [_bar(window, one) for one in rows]
    parts += crossing
    parts += [_mark(window, mark, height) for mark in lane.marks]
    if window.now <= window.end:
        x = pct(window.share(window.now))
        parts.append(f'<line class="now" x1="{x}" x2="{x}" y1="0" y2="100%"/>')
    parts.append("</svg>")
    # One tab stop a lane, its first bar; the arrow keys reach the others.
    return drawn("".join(parts).replace(' tabindex="-1"', "", 1))


def _future(window: Window) -> str:
    x = window.share(window.now)
    return f'<rect class="future" x="{pct(x)}" y="0" width="{pct(1 - x)}" height="100%"/>' if x < 1 else ""


def _extent(window: Window, bar: Bar) -> tuple[float, float]:
    """Return left edge and width of a bar; a short one is drawn wide enough to be seen, and stays inside."""
    left = window.share(bar.start)
    width = max(_THINNEST, window.share(bar.end or window.now) - left)
    return min(left, 1.0 - width), width


def _rows(window: Window, lane: Lane) -> list[_Placed]:
    """Give each bar the first row in which it overlaps none before it; bars beyond the last row share it."""
    free: list[float] = []
    placed = []
    for bar in sorted(lane.bars, key=lambda one: (one.start, one.run, one.attempt)):
        left, width = _extent(window, bar)
        row = next((number for number, end in enumerate(free) if end <= left), len(free))
        if row == len(free) and row < _MOST_ROWS:
            free.append(0.0)
        row = min(row, _MOST_ROWS - 1)
        free[row] = max(free[row], left + width + 0.0015)
        placed.append(_Placed(bar, row, left, width))
    return placed


def _bar(window: Window, placed: _Placed) -> str:
    bar, row, left, width = placed
    # A failed attempt is taller: colour does not speak alone.
    height = _TALL if bar.tone == "fail" else _BAR
    top = _PAD + row * _ROW - (height - _BAR) / 2
    place = f'x="{pct(left)}" y="{px(top)}" width="{pct(width)}" height="{px(height)}"'
    inside = f'<rect class="bar f-{bar.tone}" {place}/>'
    if bar.tone == "lost":
        inside += f'<rect {place} fill="url(#hatch)"/>'
    if bar.slot is not None:
        x = pct(window.share(bar.slot))
        inside += f'<line class="tick" x1="{x}" x2="{x}" y1="{px(top - 2)}" y2="{px(top + height + 2)}"/>'
    if width >= _LABEL_FROM and bar.label:
        y = px(height / 2 + 3.8)
        inside += f'<svg {place}><text class="onbar {bar.tone}" x="6" y="{y}">{text(bar.label)}</text></svg>'
    return link(bar.href, bar.title, inside)


def _mark(window: Window, mark: LaneMark, height: int) -> str:
    share = window.share(mark.at)
    x, words = pct(share), text(mark.words)
    middle = height / 2 if mark.kind == "began" else _PAD + _BAR / 2
    # Words stand on the side that has room for them.
    side = 'text-anchor="end" dx="-11"' if share + 0.0075 * len(mark.words) > 1 or mark.kind == "began" else 'dx="11"'
    if mark.kind == "began":
        return f'<text class="offbar" x="{x}" y="{px(middle + 4)}" {side}>{words}</text>'
    return (
        f'<g role="img" aria-label="{words}"><title>{words}</title>'
        f'<svg x="{x}" y="{px(middle)}" overflow="visible" width="1" height="1"><circle class="takedot" r="5.2"/>'
        '<path class="mark lost" d="M-2-2L2 2M2-2L-2 2"/></svg>'
        f'<text class="offbar lost" x="{x}" y="{px(middle + 3.8)}" {side}>{words}</text></g>'
    )


def _column(window: Window, column: DenseColumn, most: int, height: int) -> str:
    left, right = window.share(column.start), window.share(column.end)
    total = sum(column.counts.values())
    tall = max(4.0, (height - 2 * _PAD) * total / max(most, 1))
    said = text(f"{total} attempts: " + ", ".join(f"{count} {tone}" for tone, count in sorted(column.counts.items())))
    place = f'x="{pct(left)}" width="{pct(max(right - left - 0.0008, _THINNEST / 2))}"'
    rects, top = "", height - _PAD - tall
    for tone in (one for one in _WORST if column.counts.get(one)):
        # What went wrong hangs from the top and is drawn tall enough to be seen; what is left is the rest.
        rest = height - _PAD - top
        part = min(rest, max(_SEEN, tall * column.counts[tone] / total)) if tone != "ok" else rest
        rects += f'<rect class="f-{tone}" {place} y="{px(top)}" height="{px(part)}"/>'
        top += part
    return f'<g role="img" aria-label="{said}"><title>{said}</title>{rects}</g>'


def _crossings(
    window: Window,
    takeovers: Sequence[TakeoverLine],
    where: Mapping[tuple[str, int], tuple[int, float]],
    heights: Sequence[int],
) -> list[list[str]]:
    """Return the parts of the takeovers' lines for each lane."""
    lines: list[list[str]] = [[] for _ in heights]
    worded: list[list[float]] = [[] for _ in heights]
    for one in takeovers:
        lost, next_one = where.get((one.run, one.attempt)), where.get((one.run, one.attempt + 1))
        if lost is None:
            continue
        share = window.share(one.at)
        x = pct(share)
        (source, from_y), (target, to_y) = lost, next_one or lost
        up = target < source
        for lane in range(min(source, target), max(source, target) + 1) if source != target else ():
            first, last = (to_y + 11, heights[lane]) if lane == target else (0.0, float(heights[lane]))
            if lane == source:
                first, last = (0.0, from_y) if up else (from_y, heights[lane])
            elif lane == target and not up:
                first, last = 0.0, to_y - 11
            lines[lane].append(f'<line class="takeover" x1="{x}" x2="{x}" y1="{px(first)}" y2="{px(last)}"/>')
        if source != target:
            tip = to_y + 8 if up else to_y - 8
            path = "M-4 6L0 0L4 6z" if up else "M-4-6L0 0L4-6z"
            lines[target].append(
                f'<svg x="{x}" y="{px(tip)}" overflow="visible" width="1" height="1">'
                f'<path class="takehead" d="{path}"/></svg>'
            )
        lines[source].append(f'<circle class="takedot" cx="{x}" cy="{px(from_y)}" r="3.6"/>')
        side = 'text-anchor="end" dx="-10"' if share > 0.8 else 'dx="10"'
        # Within one lane the next attempt stands just below: its bar tells who took over, the words tell the fences.
        told, below = (one.words, 20) if source != target else (one.words[-1:], 38)
        if any(abs(share - other) < _WORDS_APART for other in worded[source]):
            continue  # words over words could not be read; the labels of the bars tell them too
        worded[source].append(share)
        top = min(from_y + below, heights[source] - 4 - 14 * (len(told) - 1))
        lines[source] += [
            f'<text class="offbar lost" x="{x}" y="{px(top + 14 * line)}" {side}>{text(words)}</text>'
            for line, words in enumerate(told)
        ]
    return lines


def _thinned(window: Window, lanes: Sequence[Lane]) -> list[Lane]:
    """Put the older bars together when there are too many; the sums stay the same."""
    every = sorted((bar.start for lane in lanes for bar in lane.bars), reverse=True)
    if len(every) <= MOST_BARS:
        return list(lanes)
    step = (window.end - window.start) / 240
    # On the edge of a column, so that no column stands for a part of its bars only.
    edge = window.start + (int((every[MOST_BARS // 2] - window.start) / step) + 1) * step
    return [_thin_lane(window.start, lane, edge, step) for lane in lanes]


def _thin_lane(start: datetime, lane: Lane, edge: datetime, step: timedelta) -> Lane:
    columns: dict[int, Counter[str]] = {}
    for bar in lane.bars:
        if bar.start < edge:
            columns.setdefault(max(0, int((bar.start - start) / step)), Counter())[bar.tone] += 1
    made = tuple(
        DenseColumn(start=start + number * step, end=start + (number + 1) * step, counts=dict(counts))
        for number, counts in sorted(columns.items())
    )
    return replace(lane, bars=tuple(bar for bar in lane.bars if bar.start >= edge), dense=(*lane.dense, *made))


def draw_next(window: Window, slots: Sequence[tuple[datetime, int, str]], words: str) -> LanePicture:
    """Draw the slots to come, right of the present: an instant, how many jobs are due then, and a label each."""
    height, now = 44, pct(window.share(window.now))
    parts = [f'<svg height="{height}" role="group" aria-label="Slots to come">', _future(window)]
    for at, count, label in slots:
        said, y, share = text(label), 30 if count == 1 else 14, window.share(at)
        # A number at the right edge would be cut off there, so it stands before its slot.
        side = 'x="-8" y="4" text-anchor="end"' if share > _NEXT_EDGE else 'x="8" y="4"'
        parts.append(
            f'<g role="img" aria-label="{said}"><title>{said}</title><svg x="{pct(min(share, _NEXT_LAST))}" y="{y}" '
            'overflow="visible" width="1" height="1"><path class="want" d="M0-4L4 0L0 4L-4 0z"/>'
            + (f"<text {side}>{count}</text>" if count > 1 else "")
            + "</svg></g>"
        )
    parts.append(f'<text class="offbar" x="{now}" dx="-8" y="27" text-anchor="end">{text(words)}</text>')
    parts.append(f'<line class="now" x1="{now}" x2="{now}" y1="0" y2="{height}"/></svg>')
    return LanePicture(svg=drawn(*parts), height=height)
