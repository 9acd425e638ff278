"""The page that walks a slot and a lease through the code names files and functions that exist, and few files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "explanation" / "life-of-a-slot.md"
PACKAGE = ROOT / "src" / "solocron"
ROW = re.compile(r"^\| \d+ \| `([\w/]+\.(?:py|sql|lua))` \| ((?:`[\w.]+`(?:, )?)+) \|", re.MULTILINE)
MOST_FILES = 25


def _ways() -> dict[str, list[tuple[str, list[str]]]]:
    """The rows of each chapter: a file, and what of it is on the way."""
    chapters = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {chapter.splitlines()[0]: ROW.findall(chapter) for chapter in chapters}
    return {
        title: [(file, re.findall(r"`([\w.]+)`", names)) for file, names in rows]
        for title, rows in found.items()
        if rows
    }


def _defined(file: Path) -> set[str]:
    """Every function, class and method of a file, methods as `Class.method`; of other files, every word."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return set(re.findall(r"\w+", text))
    found = set[str]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.AsyncFunctionDef)}
    return found


def test_the_page_has_the_way_of_a_slot_and_of_a_lease() -> None:
    assert list(_ways()) == ["The life of a slot", "The life of a lease"]


@pytest.mark.parametrize("title", ["The life of a slot", "The life of a lease"])
def test_each_step_names_a_file_and_functions_that_exist(title: str) -> None:
    wrong = [
        f"{file}: {name}"
        for file, names in _ways()[title]
        for name in names
        if not (PACKAGE / file).exists() or name not in _defined(PACKAGE / file)
    ]
    assert wrong == []


@pytest.mark.parametrize("title", ["The life of a slot", "The life of a lease"])
def test_the_way_passes_through_few_files(title: str) -> None:
    files = {file for file, _ in _ways()[title]}
    assert 0 < len(files) <= MOST_FILES
