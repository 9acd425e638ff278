"""Pages with a form: an act with its preview, explain, login; and the page of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from solocron.service.pages.links import Links
from solocron.service.pages.parts import Column, FormField, TableCell, TablePart, TableRow
from solocron.service.pages.words import Reading

__all__ = ["ActPage", "ExplainPage", "LoginPage", "ProblemPage", "explain_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActPage:
    """An act before it is done: what will happen, the fields, one button that names it. Also shown as a dialog."""

    template: ClassVar[str] = "act.html"
    section: ClassVar[str] = ""
    title: str
    """The act with its subject, which the button says too: `Pause usage.rollup`."""
    sentences: tuple[str, ...]
    fields: tuple[FormField, ...]
    action: str
    back: str
    problem: str = ""
    """Why it was refused, if it was: nothing was done."""
    method: str = "post"
    """`get` for a form that only asks for more before it can say what it would do."""
    button: str = ""
    """What the button says, if not the title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainPage:
    """An expression in words, with its next slots; no store is read."""

    template: ClassVar[str] = "explain.html"
    section: ClassVar[str] = "explain"
    fields: tuple[FormField, ...]
    words: str
    problem: str
    slots: TablePart | None
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Explain"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPage:
    """One field, the token; the same words for every failure."""

    template: ClassVar[str] = "login.html"
    section: ClassVar[str] = ""
    action: str
    wanted: str
    failed: bool = False

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Log in"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPage:
    """An error as a page: what happened, what was left untouched, what to do."""

    template: ClassVar[str] = "problem.html"
    section: ClassVar[str] = ""
    status: int
    title: str
    detail: str
    request: str


def explain_page(
    *,
    expression: str,
    zone: str,
    words: str,
    slots: Sequence[datetime],
    notes: Sequence[str],
    problem: str,
    reading: Reading,
    links: Links,
) -> ExplainPage:
    """Make the page of an expression; `problem` says why it cannot be read."""
    fields = (
        FormField(
            name="expression", label="Expression", value=expression, hint="for example 15 2 * * MON-FRI", required=True
        ),
        FormField(name="zone", label="Zone", value=zone, hint="for example Europe/Vienna"),
    )
    table = TablePart(
        label="Next slots",
        columns=(Column(title="local"), Column(title="UTC", narrow=False), Column(title="from now", right=True)),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=f"{slot:%a} {slot.day} {slot:%b %Y %H:%M}", strong=True),
                    TableCell(text=f"{slot.astimezone(reading.now.tzinfo):%Y-%m-%d %H:%M}", mono=True),
                    TableCell(text=reading.until(slot)),
                )
            )
            for slot in slots
        ),
        empty="It has no slot in the future.",
    )
    return ExplainPage(fields=fields, words=words, problem=problem, slots=table if words else None, notes=tuple(notes))
