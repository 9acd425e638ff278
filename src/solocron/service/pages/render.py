"""Turns a page and its frame into HTML. Templates come from the package alone, and escape everything."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined

from solocron.service.draw.svg import HATCHES, shown
from solocron.service.pages.frame import Frame
from solocron.service.pages.rows import rows_of
from solocron.service.shown import scrubbed

__all__ = ["DashboardPage", "render", "render_part"]


class DashboardPage(Protocol):
    """A frozen value with the name of its template, its section and its title."""

    template: ClassVar[str]
    section: ClassVar[str]

    @property
    def title(self) -> str:
        """The title of the page, and the last of its crumbs."""
        ...


def render(page: DashboardPage, frame: Frame) -> str:
    """Return the whole page."""
    return _rendered(page, frame, "base.html")


def render_part(page: DashboardPage, frame: Frame) -> str:
    """Return `<main>` alone, for a page that is open already."""
    return _rendered(page, frame, "part.html")


def _rendered(page: DashboardPage, frame: Frame, parent: str) -> str:
    template = _environment().get_template(page.template)
    return template.render(page=page, frame=frame, link=frame.links, hatches=HATCHES, parent=parent)


@cache
def _environment() -> Environment:
    # Every expression is made of its text with control characters spelled out, then escaped: `finalize` runs first.
    made = Environment(
        loader=PackageLoader("solocron.service", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        auto_reload=False,
    )
    made.globals["rows_of"] = rows_of
    return made


def _finalize(value: object) -> object:
    # Exactly `str`: a `Markup` was made by `draw`, which has treated its texts already.
    # Passwords in URLs of notes, reasons and errors are masked here, whatever page shows them.
    return shown(scrubbed(value) if "://" in value else value) if type(value) is str else value
