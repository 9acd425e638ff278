"""The parts that pages are made of: badges, cells, tables, choices, facts, acts. Strings are text, never markup."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

__all__ = [
    "ActLink",
    "Badge",
    "Choice",
    "Choices",
    "Column",
    "Fact",
    "FormField",
    "ListEntry",
    "TableCell",
    "TablePart",
    "TableRow",
    "badge_of",
    "choose",
    "tone_of",
]

_STATUSES = {
    "succeeded": ("ok", "ok"),
    "handed_over": ("ok", "ok"),
    "offered": ("wait", "clock"),
    "running": ("run", "run"),
    "waiting": ("wait", "clock"),
    "failed": ("fail", "fail"),
    "timed_out": ("fail", "clock"),
    "cancelled": ("skip", "fail"),
    "lost": ("lost", "lost"),
    "missed": ("miss", "miss"),
    "skipped": ("skip", "skip"),
    "dropped": ("miss", "skip"),
}
"""Tone and icon of each status; the word stands beside them always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A state told three times: by tone, by icon and by word."""

    tone: str
    icon: str
    word: str


def badge_of(status: str, word: str | None = None) -> Badge:
    """Return the badge of a run's status."""
    tone, icon = _STATUSES.get(status, ("skip", "miss"))
    return Badge(tone=tone, icon=icon, word=word or status.replace("_", " "))


def tone_of(status: str) -> str:
    """Return the tone of a run's status."""
    return _STATUSES.get(status, ("skip", ""))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One cell: text, and what goes with it."""

    text: str = ""
    href: str | None = None
    badge: Badge | None = None
    after: str = ""
    """Muted text behind it."""
    title: str | None = None
    tone: str = ""
    mono: bool = False
    strong: bool = False
    wide: bool = False
    """True for the column that takes the room that is left, and is cut with an ellipsis."""
    clip: bool = False
    """True for text of a person, which is cut after some words."""
    long: bool = False
    """True for sentences, which are wrapped and never cut."""
    picture: Markup | None = None
    until: str | None = None
    """ISO instant from which the script counts down; the text is the value without script."""
    span: int = 1
    acts: tuple[ActLink, ...] = ()
    share: float | None = None
    """Progress, 0 to 1, drawn as a bar before the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; `narrow` keeps it on a phone, `right` aligns numbers."""

    title: str
    right: bool = False
    narrow: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row; `follows` joins it with the row above, as an earlier attempt of the same run."""

    cells: tuple[TableCell, ...]
    chosen: bool = False
    follows: bool = False
    pick: str | None = None
    """The name that a selection of this row sends."""
    keys: tuple[tuple[str, str], ...] = ()
    """Keys that open a dialog while the focus is in the row, each with the address of its act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """A table, and the sentence that stands there when it is empty."""

    label: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    empty: str
    cards: bool = False
    """True if a phone shows a card for each row."""
    stacked: bool = False
    """True if a phone shows each row as a paragraph, with its sentences below."""
    picks: bool = False
    """True if rows can be selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of several ways to see the page."""

    label: str
    href: str
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Ways to see the page of which one is chosen."""

    label: str
    choices: tuple[Choice, ...]


def choose(label: str, chosen: str, options: Iterable[tuple[str, str, str]]) -> Choices:
    """Make the ways to see a page; each option is a value, its words and its address."""
    made = tuple(Choice(label=words, href=href, chosen=value == chosen) for value, words, href in options)
    return Choices(label=label, choices=made)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActLink:
    """A next step: a link to a page, or to the dialog of an act."""

    label: str
    href: str
    icon: str = ""
    dialog: bool = False
    key: str = ""
    """The key that opens it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact of the head: name, value, and a line below."""

    name: str
    value: str
    under: str
    tone: str = ""
    until: str | None = None
    href: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """An input of a form; `kind` is text, search, select, datetime, area, password or hidden."""

    name: str
    label: str
    kind: str = "text"
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEntry:
    """An entry of a list: an icon with its tone, a title, a sentence, something at the right, next steps."""

    title: str
    words: str
    tone: str = ""
    icon: str = ""
    code: str = ""
    """What is quoted behind the sentence: an error, an option."""
    right: str = ""
    href: str | None = None
    acts: tuple[ActLink, ...] = ()
    about: str = ""
    """What the title says of its subject."""
