"""Draw the load of each hour as a picture: a line for each day, two characters for each hour, 60 columns at least.

The characters alone tell the levels, so that the picture is the same without colours; colours are added on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from solocron.clock import from_us
from solocron.schedules import load_zone

__all__ = ["BLOCKS", "PLAIN", "Palette", "Picture", "draw", "levels", "palette", "show"]

_WIDE = 72
"""Columns from which the whole date is shown."""
_LEVELS = 4
_STYLES = ("dim", "blue", "green", "yellow", "bold red")


@dataclass(frozen=True, slots=True)
class Palette:
    """The two characters of an hour with no run, and of each level."""

    none: str
    shades: tuple[str, ...]


BLOCKS = Palette("· ", ("░░", "▒▒", "▓▓", "██"))
PLAIN = Palette(". ", ("--", "++", "##", "@@"))

Cell = tuple[str, str]
"""Characters and their style."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines of cells; the last is the legend."""

    lines: tuple[tuple[Cell, ...], ...]

    def plain(self) -> list[str]:
        return ["".join(text for text, _ in line).rstrip() for line in self.lines]


def palette(encoding: str | None) -> Palette:
    """Return the blocks where the encoding of the output has them, else plain characters."""
    try:
        "".join((BLOCKS.none, *BLOCKS.shades)).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return PLAIN
    return BLOCKS


def levels(runs: Iterable[int]) -> list[int]:
    """Return the most runs of an hour of each level, lowest first.

    The different numbers are split into levels of equal size. A linear or logarithmic scale would show either one herd
    of thousands and nothing else, or hardly a difference between 12 and 21 runs.
    """
    seen = sorted(set(runs) - {0})
    ends = (-(-step * len(seen) // _LEVELS) - 1 for step in range(1, _LEVELS + 1))
    return sorted({seen[at] for at in ends if at >= 0})


def draw(load: Mapping[int, int], zone: str, *, width: int, marks: Palette) -> Picture:
    """Draw the hours of `load`; hours before the first of them stay empty, hours without a run have a dot."""
    days = _by_day(load, zone)
    bounds = levels(runs for hours in days.values() for runs in hours.values())
    wide = width >= _WIDE
    lines: list[tuple[Cell, ...]] = []
    pad, ruler = " " * (15 if wide else 7), "".join(f"{hour:02}    " for hour in range(0, 24, 3))
    lines.append(((pad + ruler + ("     runs" if wide else " runs"), "dim"),))
    for day, hours in days.items():
        label = f"{day:%a} {day.isoformat()} " if wide else f"{day:%a} {day.day:2} "
        cells = [_cell(hours.get(hour), bounds, marks) for hour in range(24)]
        total = sum(hours.values())
        shown = f"{total:,}" if wide and total < 1_000_000 else _short(total)
        amount = f"{shown:>9}" if wide else f"{shown:>5}"
        lines.append(((label, ""), *cells, (amount, "")))
    lines.append(())
    lines.append(tuple(_legend(bounds, marks)))
    return Picture(tuple(lines))


def _by_day(load: Mapping[int, int], zone: str) -> dict[date, dict[int, int]]:
    """Return the runs by day and hour of the clock; an hour that comes twice is one cell."""
    info = load_zone(zone).info
    found: dict[date, dict[int, int]] = {}
    for at, runs in load.items():
        moment: datetime = from_us(at).astimezone(info)
        day = found.setdefault(moment.date(), {})
        day[moment.hour] = day.get(moment.hour, 0) + runs
    return found


def _cell(runs: int | None, bounds: Sequence[int], marks: Palette) -> Cell:
    if runs is None:
        return "  ", ""
    if not runs:
        return marks.none, _STYLES[0]
    level = next((at for at, bound in enumerate(bounds) if runs <= bound), len(bounds) - 1)
    return marks.shades[_shade(level, bounds)], _STYLES[1 + _shade(level, bounds)]


def _shade(level: int, bounds: Sequence[int]) -> int:
    """Return the shade of a level: the highest is the darkest one, and few levels are far apart."""
    return _LEVELS - 1 if len(bounds) == 1 else round(level * (_LEVELS - 1) / (len(bounds) - 1))


def _legend(bounds: Sequence[int], marks: Palette) -> list[Cell]:
    """Return each shade with the most runs that it stands for."""
    cells: list[Cell] = [("runs an hour, up to:" if bounds else "no runs", "")]
    short = [_short(bound) for bound in bounds]
    shown = short if len(set(short)) == len(short) else [f"{bound:,}" for bound in bounds]
    for level, number in enumerate(shown):
        shade = _shade(level, bounds)
        cells += [("  ", ""), (marks.shades[shade], _STYLES[1 + shade]), (f" {number}", "")]
    return cells


def _short(number: int) -> str:
    """Return a number in at most four characters."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            value = number / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(number)


def show(picture: Picture) -> None:
    """Print a picture, with colours where rich may draw."""
    from solocron.cli.output import draws

    if not draws(sys.stdout):
        print("\n".join(picture.plain()))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in picture.lines:
        console.print(Text.assemble(*line), no_wrap=True, overflow="crop", crop=False)
