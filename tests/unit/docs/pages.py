"""Reads the documentation as tests need it: pages, their fenced blocks, tables and links; runs what a page shows.

A block ```` ```python ```` is run with the blocks before it on the same page, as one program. With `title="name.py"`
it is written to that file and imported from there. With `requires="package"` it is only compiled where that package
is missing. Commands in ```` ```console ```` begin with `$ `.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from solocron import Scheduler

__all__ = ["DOCS", "ROOT", "WITHOUT_A_PAGE", "Block", "Program", "blocks", "commands", "pages", "table"]

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

WITHOUT_A_PAGE: set[str] = set()
"""Names of features whose pages are still to be written. Take a name off this list with its page."""

_FENCE = re.compile(r"^```(\w+)?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    attributes: dict[str, str]
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page that is shown to users."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(
            page=page,
            line=text.count("\n", 0, match.start()) + 1,
            language=match[1] or "",
            attributes=dict(_ATTRIBUTE.findall(match[2])),
            text=match[3],
        )
        for match in _FENCE.finditer(text)
    ]
    return [block for block in found if language in (None, block.language)]


def commands(page: Path) -> list[str]:
    """What a page asks its reader to type."""
    return [
        line.removeprefix("$ ")
        for block in blocks(page, "console")
        for line in block.text.splitlines()
        if line.startswith("$ ")
    ]


def table(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, without its head; code marks are taken off, `\\|` is a bar."""
    text = page.read_text(encoding="utf-8")
    match = re.search(rf"^#+ {re.escape(heading)}$", text, re.MULTILINE)
    assert match is not None, f"{page.name} has no heading {heading!r}"
    rows: list[list[str]] = []
    for line in text[match.end() :].splitlines():
        if line.startswith("|"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            rows.append([re.sub(r"`([^`]*)`", r"\1", cell) for cell in cells])
        elif rows or line.startswith("#"):
            break
    assert len(rows) > 2, f"{page.name} has no table under {heading!r}"
    return rows[2:]


class Program:
    """The Python of one page, run in a folder of its own."""

    def __init__(self, page: Path, folder: Path) -> None:
        self._page = page
        self._folder = folder
        self._module = ModuleType(f"page_{page.stem.replace('-', '_').lower()}")
        self._made: list[ModuleType] = []

    def __enter__(self) -> Program:
        sys.modules[self._module.__name__] = self._module
        sys.path.insert(0, str(self._folder))
        return self

    def __exit__(self, *exc: object) -> None:
        for scheduler in self.schedulers():
            scheduler.stop("5s")
        sys.path.remove(str(self._folder))
        for name, module in list(sys.modules.items()):
            if module in (self._module, *self._made) or self._is_ours(module):
                del sys.modules[name]

    def _is_ours(self, module: ModuleType) -> bool:
        """Whether it was imported from the folder; a package without a file of its own has a place all the same."""
        places = [getattr(module, "__file__", None) or "", *(getattr(module, "__path__", None) or ())]
        return any(Path(place).is_relative_to(self._folder) for place in places if place)

    def __getitem__(self, name: str) -> object:
        return vars(self._module)[name]

    def schedulers(self) -> Iterator[Scheduler]:
        """Every scheduler that the page has made."""
        for module in (self._module, *self._made):
            yield from (value for value in vars(module).values() if isinstance(value, Scheduler))

    def run(self) -> int:
        """Run every block; return how many were run, compiled ones not counted."""
        return sum(self._run(block) for block in blocks(self._page, "python"))

    def _run(self, block: Block) -> bool:
        code = compile(block.text, block.place, "exec")
        needs = block.attributes.get("requires", "").split()
        if any(importlib.util.find_spec(name) is None for name in needs):
            return False
        title = block.attributes.get("title")
        if title is None:
            exec(code, vars(self._module))
            return True
        file = self._folder / title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        importlib.invalidate_caches()
        name = title.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self._made.append(importlib.import_module(name))
        return True
