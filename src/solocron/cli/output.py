"""Data on stdout: tables for people, one JSON value for programs. Colours only on a terminal, and only if wanted.

rich draws the tables where it is installed and stdout is a terminal; elsewhere they are plain and aligned.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["clean", "draws", "dump", "dump_views", "labelled", "note", "pairs", "progress", "say", "table", "waiting"]

_STYLES = {
    **dict.fromkeys(["succeeded", "live", "OK", "on"], "green"),
    **dict.fromkeys(["running", "waiting"], "cyan"),
    **dict.fromkeys(["cancelled", "skipped", "missed", "dropped", "silent", "WARN", "paused", "disabled"], "yellow"),
    **dict.fromkeys(["failed", "timed_out", "lost", "dead", "FAIL", "orphaned", "stopping"], "bold red"),
}


def say(text: str) -> None:
    """Print one line of the result."""
    print(clean(text))


def note(text: str) -> None:
    """Print on stderr what a person should know beside the result."""
    print(clean(text), file=sys.stderr)


def dump(value: Any) -> int:
    """Print one JSON value; return the exit code 0."""
    print(json.dumps(value, indent=2, allow_nan=False))
    return 0


def dump_views(value: Any) -> int:
    """Print a view, or a list of them, as one JSON value; return the exit code 0."""
    from solocron.views import to_json

    return dump(to_json(value))


def clean(text: str, *, lines: bool = False) -> str:
    """Escape control characters, so that a value cannot move the terminal's cursor or forge a line."""
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def labelled(label: str, text: str) -> None:
    """Print one line after its level, such as OK or FAIL."""
    if not draws(sys.stdout):
        print(f"{label:<5} {clean(text)}")
        return
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text(f"{label:<5} ", style=_STYLES.get(label, "")).append(clean(text), style="none"))


def pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Print labels and values, aligned; a value of several lines is indented below its label."""
    shown = list(rows)
    width = max((len(label) for label, _ in shown), default=0)
    for label, text in shown:
        first, *more = clean(text, lines=True).split("\n")
        print(f"{label:<{width}}  {first}".rstrip())
        for line in more:
            print(f"{'':<{width}}  {line}".rstrip())


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; a column whose header begins with a space is aligned to the right."""
    cleaned = [[clean(cell) for cell in row] for row in rows]
    if draws(sys.stdout):
        _rich_table(headers, cleaned)
    else:
        _plain_table(headers, cleaned)


def _plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    right = [header.startswith(" ") for header in headers]
    lines = [[header.strip() for header in headers], *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headers))]
    for line in lines:
        cells = (
            f"{cell:>{width}}" if flush else f"{cell:<{width}}"
            for cell, width, flush in zip(line, widths, right, strict=True)
        )
        print("  ".join(cells).rstrip())


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        grid.add_column(header.strip(), justify="right" if header.startswith(" ") else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))  # Text: no markup in users' words
    Console(highlight=False).print(grid)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a spinner on a terminal while the body runs; elsewhere print the line once."""
    if not draws(sys.stderr):
        note(text)
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(clean(text))):
        yield


@contextmanager
def progress(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal; elsewhere print a line at the start and one at the end."""
    if not draws(sys.stderr):
        note(f"{text}: {total} runs")
        yield lambda done: None
        note(f"{text}: done")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(clean(text), total=total)
        yield lambda done: bar.update(task, completed=done)


def draws(stream: TextIO) -> bool:
    """Return whether rich may draw there; it honours NO_COLOR by itself."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return False
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True
