"""Small charts: the bar of the accounting, slots per hour, durations, the strip of the last slots, a lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from solocron.service.draw.svg import drawn, pct, px, text

__all__ = ["DurationDot", "draw_durations", "draw_hours", "draw_lease", "draw_strip", "draw_sum"]

_ORDER = ("ok", "run", "wait", "lost", "fail", "miss", "skip")
_LEAST = 0.008
"""Share that a part of the bar has at least: one failure among a million slots must be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationDot:
    """One attempt: its place from left to right, 0 to 1, how long it took in seconds, and its tone."""

    share: float
    took: float
    tone: str
    title: str
    href: str | None = None


def draw_sum(counts: Sequence[tuple[str, int]], label: str) -> Markup:
    """Draw a bar whose parts add up to the whole; each part is a tone and a number, and each is seen."""
    counted = [(tone, count) for tone, count in counts if count > 0]
    total = sum(count for _, count in counted)
    parts = [f'<svg class="sum" role="img" aria-label="{text(label)}">']
    wide = [max(_LEAST, count / total) for _, count in counted]
    scale = (1 - 0.0025 * (len(wide) - 1)) / sum(wide) if wide else 0.0
    left = 0.0
    for (tone, _), width in zip(counted, wide, strict=True):
        place = f'x="{pct(left)}" y="0" width="{pct(width * scale)}" height="14"'
        parts.append(f'<rect class="f-{tone}" {place}/>')
        if tone in ("skip", "lost"):
            parts.append(f'<rect {place} fill="url(#hatch)"/>')
        left += width * scale + 0.0025
    return drawn(*parts, "</svg>")


def draw_hours(hours: Sequence[Mapping[str, int]], marks: Sequence[tuple[int, str]], label: str) -> Markup:
    """Draw a column for each hour, by tone; `marks` are labels below columns, by number."""
    base, tall = 66.0, 56.0
    most = max((sum(hour.values()) for hour in hours), default=0) or 1
    step = 1 / max(1, len(hours))
    parts = [f'<svg role="img" aria-label="{text(label)}">']
    for number, hour in enumerate(hours):
        y = base
        for tone in _ORDER:
            if count := hour.get(tone, 0):
                # Few among many are drawn tall enough to be seen.
                height = max(3.0, tall * count / most)
                y -= height
                place = f'x="{pct(number * step + step * 0.08)}" width="{pct(step * 0.84)}"'
                parts.append(f'<rect class="f-{tone}" {place} y="{px(y)}" height="{px(height - 0.5)}" rx="1"/>')
    last = len(hours) - 1
    for number, words in marks:
        x, anchor = ("100%", "end") if number == last else (pct(number * step), "start")
        parts.append(f'<text x="{x}" y="80" text-anchor="{anchor}">{text(words)}</text>')
    return drawn(*parts, "</svg>")


def draw_durations(
    dots: Sequence[DurationDot],
    *,
    p50: float,
    p95: float,
    limit: float | None,
    ticks: Sequence[tuple[float, str]],
    label: str,
) -> Markup:
    """Draw how long the last attempts took, with the median, the 95th percentile and the timeout as lines."""
    longest = max([p95, *(dot.took for dot in dots)])
    lines = [("p50", p50), ("p95", p95)]
    # A timeout far above everything would press the dots flat; the page tells it in words.
    if limit is not None and limit <= 3 * longest:
        lines.append(("lim", limit))
    top = max(longest, *(value for _, value in lines)) * 1.08 or 1.0
    base, tall = 104.0, 96.0

    def y(took: float) -> str:
        return px(base - tall * min(took, top) / top)

    parts = [f'<svg role="img" aria-label="{text(label)}">']
    for value, words in ticks:
        if value <= top:
            parts.append(f'<line class="grid" x1="26" x2="100%" y1="{y(value)}" y2="{y(value)}"/>')
            parts.append(f'<text x="20" y="{y(value)}" dy="4" text-anchor="end">{text(words)}</text>')
    parts.append('<svg x="30" width="94%" height="110" overflow="visible">')
    for name, value in lines:
        parts.append(f'<line class="{name}" x1="0" x2="96%" y1="{y(value)}" y2="{y(value)}"/>')
    for dot in dots:
        size = 2 if dot.tone == "ok" else 3
        parts.append(
            f'<circle class="dot-{dot.tone}" cx="{pct(dot.share * 0.96)}" cy="{y(dot.took)}" r="{size}">'
            f"<title>{text(dot.title)}</title></circle>"
        )
    parts.append("</svg>")
    return drawn(*parts, "</svg>")


def draw_strip(cells: Sequence[tuple[str, str]]) -> Markup:
    """Draw the last slots of a job as small cells, oldest first; each is a kind and a label."""
    wide, gap = 6, 1.5
    said = ", ".join(label for _, label in cells[-3:])
    width = max(1, len(cells)) * (wide + gap)
    parts = [
        f'<svg class="strip" width="{px(width)}" height="15" role="img" aria-label="{text("last slots: " + said)}">'
    ]
    for number, (kind, label) in enumerate(cells):
        x = px(number * (wide + gap))
        tall, y = (15, 0) if kind in ("fail", "miss") else (11, 2)
        parts.append(f'<rect class="s-{text(kind)}" x="{x}" y="{y}" width="{wide}" height="{tall}" rx="1.5">')
        parts.append(f"<title>{text(label)}</title></rect>")
    return drawn(*parts, "</svg>")


def draw_lease(left: float) -> Markup:
    """Draw how much of a lease is left, 0 to 1; the number stands beside it in words."""
    left = min(1.0, max(0.0, left))
    low = " low" if left < 1 / 3 else ""
    return drawn(
        '<svg class="lease" aria-hidden="true"><rect class="bg" width="100%" height="4" rx="2"/>'
        f'<rect class="fg{low}" width="{pct(left)}" height="4" rx="2"/></svg>'
    )
