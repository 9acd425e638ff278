"""Data on stdout: tables for people, one JSON value for programs. Colours only on a terminal, and only if wanted.

On a terminal tables keep to its width, and rich colours them where it is installed; in a pipe they are plain and of any
width.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from solocron.cli.tables import Line, Table, wrapped
from solocron.printable import clean

__all__ = [
    *("columns", "draws", "dump", "dump_views", "labelled", "note"),
    *("pairs", "progress", "say", "table", "table_in_parts", "tell", "tell_below", "waiting"),
]

_STYLES = {
    **dict.fromkeys(["succeeded", "handed_over", "live", "OK", "on"], "green"),
    **dict.fromkeys(["running", "offered", "waiting"], "cyan"),
    **dict.fromkeys(["cancelled", "skipped", "missed", "dropped", "silent", "WARN", "paused", "disabled"], "yellow"),
    **dict.fromkeys(["failed", "timed_out", "lost", "dead", "FAIL", "orphaned", "stopping"], "bold red"),
}


_NO_BREAK = "\N{NO-BREAK SPACE}"
"""`wrapped` breaks at plain spaces only."""


def say(text: str) -> None:
    """Print one line of the result."""
    print(clean(text))


def tell(text: str) -> None:
    """Print a sentence of the result; on a terminal it is broken between words. Not for what is copied as a command."""
    room, cleaned = columns(), clean(text)
    for line in [cleaned] if room is None else wrapped(cleaned, room):
        print(line)


def tell_below(text: str, indent: int, *, whole: Iterable[str] = ()) -> None:
    """Print a sentence below a heading; a terminal gets it broken between words, but not inside the phrases `whole`."""
    room, cleaned, begin = columns(), clean(text), " " * indent
    if room is None:
        print(f"{begin}{cleaned}")
        return
    for phrase in map(clean, whole):
        cleaned = cleaned.replace(phrase, phrase.replace(" ", _NO_BREAK))
    first, *further = wrapped(cleaned, room - indent - 4)
    for line in [f"{begin}{first}", *(f"{begin}    {one}" for one in further)]:
        print(line.replace(_NO_BREAK, " "))


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


def labelled(label: str, text: str) -> None:
    """Print one line after its level, such as OK or FAIL; on a terminal what does not fit is indented below."""
    room, cleaned = columns(), clean(text)
    first, *more = [cleaned] if room is None else wrapped(cleaned, room - 6)
    show = _coloured if draws(sys.stdout) else _plain
    show([[(f"{label:<5} ", label), (first, "")], *([(" " * 6, ""), (line, "")] for line in more)])


def pairs(rows: Iterable[tuple[str, str]], *, wrap: bool = False) -> None:
    """Print labels and values, aligned; a value of several lines is indented below its label.

    With `wrap`, lines that are too long for the terminal are broken between words.
    """
    shown = list(rows)
    width, room = max((len(label) for label, _ in shown), default=0), columns()
    for label, text in shown:
        lines = clean(text, lines=True).split("\n")
        if wrap and room is not None:
            lines = [part for line in lines for part in wrapped(line, room - width - 2)]
        first, *more = lines
        print(f"{label:<{width}}  {first}".rstrip())
        for line in more:
            print(f"{'':<{width}}  {line}".rstrip())


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; a column whose header begins with a space is aligned to the right."""
    table_in_parts(headers, [rows])


def table_in_parts(headers: Sequence[str], parts: Iterable[Iterable[Sequence[str]]]) -> None:
    """Print a table of any length, each part of it when it comes."""
    grid = Table(headers, columns())
    show = _coloured if draws(sys.stdout) else _plain
    for part in parts:
        show(grid.lines([clean(cell) for cell in row] for row in part))


def columns() -> int | None:
    """Return the width of the terminal that stdout is; None for a pipe or a file, which get lines of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _plain(lines: Iterable[Line]) -> None:
    for line in lines:
        print("".join(text for text, _ in line).rstrip())


def _coloured(lines: Iterable[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        pieces = [(text, "bold" if kind == "header" else _STYLES.get(kind, "")) for text, kind in line]
        shown = Text.assemble(*pieces)  # Text: no markup in users' words
        shown.rstrip()
        console.print(shown, soft_wrap=True)  # the lines are laid out already


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
