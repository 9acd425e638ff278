"""Lay tables out for a terminal of any width: no id and no name is broken in the middle, and no cell is left out.

A table that is too wide gives its columns up from the right, so the columns that are read first stand left. The cells
of a column that was given up follow below their row, with their label, and break only between words. The obvious other
way, to narrow every column and to fold its cells, cuts the ids that a person wants to copy.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Line", "Table", "cells", "wrapped"]

Line = list[tuple[str, str]]
"""One line to print: pieces of text, each with the cell or the kind ("header", "") from which its colour follows."""

_GAP = "  "
_INDENT = "    "
_EMPTY = ("", "-")


class Table:
    """A table that can be printed in parts; later parts keep the columns of the first, or widen them."""

    def __init__(self, headers: Sequence[str], width: int | None) -> None:
        """Align titles that begin with a space to the right. `width` is that of the terminal, None if there is none."""
        self._titles = [header.strip() for header in headers]
        self._right = [header.startswith(" ") for header in headers]
        self._widths = [cells(title) for title in self._titles]
        self._width = width
        self._shown = 0
        """Columns in the header that was printed last; 0 before the first."""

    def lines(self, rows: Iterable[Sequence[str]]) -> Iterator[Line]:
        """Yield the lines of some rows, after a header where there was none or its columns have changed."""
        part = list(rows)
        for at in range(len(self._widths)):
            self._widths[at] = max([self._widths[at], *(cells(row[at]) for row in part)])
        shown = self._fitting()
        if shown != self._shown:
            self._shown = shown
            yield self._row([(title, "header") for title in self._titles[:shown]])
        for row in part:
            yield self._row([(cell, cell) for cell in row[:shown]])
            yield from self._below(row, shown)

    def _fitting(self) -> int:
        """Return how many columns fit; the first is shown in any case."""
        if self._width is None:
            return len(self._widths)
        used, shown = self._widths[0], 1
        for width in self._widths[1:]:
            used += len(_GAP) + width
            if used > self._width:
                break
            shown += 1
        return shown

    def _row(self, pieces: Sequence[tuple[str, str]]) -> Line:
        line: Line = []
        for at, (text, kind) in enumerate(pieces):
            last = at == len(pieces) - 1
            blank = " " * (self._widths[at] - cells(text))
            line += [(blank, ""), (text, kind)] if self._right[at] else [(text, kind), ("" if last else blank, "")]
            if not last:
                line.append((_GAP, ""))
        return line

    def _below(self, row: Sequence[str], shown: int) -> Iterator[Line]:
        """Yield the cells that have no column, as many on a line as fit."""
        room = (self._width or 0) - len(_INDENT)
        line: Line = []
        used = 0
        for title, cell in zip(self._titles[shown:], row[shown:], strict=True):
            if cell in _EMPTY:
                continue
            label = f"{title.lower().replace('(utc)', '(UTC)')} "
            first, *more = wrapped(label + cell, room)
            if line and used + len(_GAP) + cells(first) > room:
                yield [(_INDENT, ""), *line]
                line, used = [], 0
            if line:
                line.append((_GAP, ""))
                used += len(_GAP)
            line += [(label, ""), (first[len(label) :], cell)]
            used += cells(first)
            for text in more:
                yield [(_INDENT, ""), *line]
                line, used = [(text, cell)], cells(text)
        if line:
            yield [(_INDENT, ""), *line]


def wrapped(text: str, width: int) -> list[str]:
    """Break a text between its words; a word that is longer than the width stays whole on a line of its own."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cells(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
