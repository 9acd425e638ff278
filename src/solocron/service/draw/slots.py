"""Every slot of a job: a table of cells, each a link with its whole label. Two thousand cells take milliseconds.

It is a table and not an SVG: a screen reader then knows the row and the column of each slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from solocron.service.draw.svg import drawn, text

__all__ = ["GridRow", "SlotCell", "SlotGrid", "draw_grid", "kinds_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCell:
    """One slot, or several that share a cell: its kind, its label and where it leads; no `kind`: no slot."""

    kind: str = ""
    label: str = ""
    href: str | None = None
    chosen: bool = False
    asked: bool = False
    """True for a backfill, a rerun or a trigger: drawn as a dot."""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """A row of the grid; `note` shades it: a day off, with its name."""

    label: str
    cells: tuple[SlotCell, ...]
    today: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotGrid:
    """Rows and columns of a job's slots; without rows there is nothing to draw."""

    caption: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    dense: bool = False
    """True for sixty columns: narrow cells, and a label for every fifth column only."""


def draw_grid(grid: SlotGrid) -> Markup:
    """Draw the table; one cell is a tab stop, the arrow keys reach the others."""
    chosen = any(cell.chosen for row in grid.rows for cell in row.cells)
    reachable = not chosen
    parts = [f'<table class="cal{" dense" if grid.dense else ""}"><caption class="vh">{text(grid.caption)}</caption>']
    parts.append(f'<thead><tr><th scope="col"><span class="vh">{text(grid.corner)}</span></th>')
    for number, label in enumerate(grid.columns):
        words = text(label)
        seen = words if not grid.dense or number % 5 == 0 else f'<span class="vh">{words}</span>'
        parts.append(f'<th scope="col">{seen}</th>')
    parts.append("</tr></thead><tbody>")
    for row in grid.rows:
        shade = ' class="off"' if row.note else ""
        today = ' class="today"' if row.today else ""
        # The name of a day off stands below the picture; the row has room for its date only.
        note = f'<span class="vh">, {text(row.note)}</span>' if row.note else ""
        parts.append(f'<tr{shade}><th scope="row"{today}>{text(row.label)}{note}</th>')
        for cell in row.cells:
            if not cell.kind:
                parts.append("<td></td>")
                continue
            stop = cell.chosen or (reachable and cell.href is not None)
            reachable = reachable and not stop
            parts.append(_cell(cell, stop))
        parts.append("</tr>")
    return drawn(*parts, "</tbody></table>")


def _cell(cell: SlotCell, stop: bool) -> str:
    said = text(cell.label)
    classes = f"cell {text(cell.kind)}" + (" sel" if cell.chosen else "") + (" asked" if cell.asked else "")
    inside = f'<span class="vh">{said}</span>'
    if cell.count > 1:
        inside += f'<span class="many" aria-hidden="true">{cell.count}</span>'
    if cell.href is None:
        return f'<td><span class="{classes}" title="{said}">{inside}</span></td>'
    current = ' aria-current="true"' if cell.chosen else ""
    tab = "" if stop else ' tabindex="-1"'
    return f'<td><a class="{classes}" href="{text(cell.href)}" title="{said}"{tab}{current}>{inside}</a></td>'


def kinds_of(grid: SlotGrid) -> Sequence[str]:
    """Return the kinds that the grid shows, for its legend, in order of appearance."""
    return tuple(dict.fromkeys(cell.kind for row in grid.rows for cell in row.cells if cell.kind))
