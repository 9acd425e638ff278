"""The main pages at fixed data, as text that a person can compare: `python -m tests.unit.service.outline` rewrites it.

A picture changes with every version of a browser; what the browser is given does not. So the elements of each page,
its pictures in SVG included, are kept one to a line in `outlines/`, and a test says which lines have changed.
"""

from __future__ import annotations

import html.parser
import sys
from pathlib import Path
from urllib.parse import parse_qsl

from solocron.service.pages.render import render_part
from tests.unit.service.every_page import every_page, frame

__all__ = ["FOLDER", "REWRITE", "outlines"]

FOLDER = Path(__file__).parent / "outlines"
REWRITE = "python -m tests.unit.service.outline"
PAGES = ("overview", "overview-by-job", "jobs", "job", "run", "runs", "nodes", "node")
_ALONE = frozenset(["area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"])


class _Outline(html.parser.HTMLParser):
    """Writes each element on a line, below its parent: its tag and classes, its other attributes by name, its text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        given.pop("title", None)  # what it says is in the text as well, for readers that do not point
        classes = "".join(f".{name}" for name in (given.pop("class", "") or "").split())
        rest = [name if value is None else f'{name}="{_short(name, value)}"' for name, value in sorted(given.items())]
        self.lines.append(" ".join([f"{' ' * self._depth}{tag}{classes}", *rest]))
        self._depth += tag not in _ALONE

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._depth -= tag not in _ALONE

    def handle_endtag(self, tag: str) -> None:
        self._depth -= 1

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.lines[-1] += f" | {' '.join(data.split())}"


def _short(name: str, value: str) -> str:
    """Return a value; of an address the path and the names of its parameters."""
    path, _, query = value.partition("?")
    return value if name != "href" or not query else f"{path}?{','.join(key for key, _ in parse_qsl(query))}"


def outlines() -> dict[str, str]:
    """Return the main part of each main page as it is now."""
    made = every_page()
    return {
        name: _outline(render_part(page, frame(reading))) for name, (page, reading) in made.items() if name in PAGES
    }


def _outline(source: str) -> str:
    reader = _Outline()
    reader.feed(source)
    return "".join(f"{line}\n" for line in reader.lines)


def main() -> None:
    """Write every outline anew."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in outlines().items():
        file = FOLDER / f"{name}.txt"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{file.name}\n")


if __name__ == "__main__":
    main()
