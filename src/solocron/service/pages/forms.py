"""Pages with a form: an act with its preview, login; and the page of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from solocron.service.pages.parts import FormField

__all__ = ["ActPage", "LoginPage", "ProblemPage"]


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
