"""CONTRIBUTING.md's map of the tree names every folder that there is, and none that there is not."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def drawn() -> dict[str, set[str]]:
    """Return the folders of the map by the root that they are drawn under."""
    lines = (ROOT / "CONTRIBUTING.md").read_text().split("## The tree")[1].split("\n## ")[0].splitlines()
    found: dict[str, set[str]] = {}
    root = ""
    for line in (line[4:] for line in lines if line.startswith("    ")):
        names = line.split("  ")[0] if not line.startswith(" ") else line[2:].split("  ")[0]
        if not line.startswith(" "):
            root = names.strip().rstrip("/")
            found[root] = set()
        elif not line.startswith("   "):
            found[root] |= {name.rstrip("/") for name in names.split() if name.endswith("/")}
    return found


FACE = {"calendars", "runs", "scheduler", "views"}
"""Folders that tests/unit/face tests together, as users hold them."""
WHOLE = {"demo", "django"}
"""Folders that only whole processes can test: tests/e2e."""


def test_the_unit_tests_mirror_the_package() -> None:
    package, unit = (
        {file.parent.name for file in (ROOT / root).glob("*/*.py")} for root in ("src/solocron", "tests/unit")
    )
    assert unit - package == {"docs", "face", "scripts"}
    assert package - unit == FACE | WHOLE


@pytest.mark.parametrize("root", ["src/solocron", "proof", "tests"])
def test_the_map_names_the_folders_that_there_are(root: str) -> None:
    there = {file.parent.name for file in (ROOT / root).glob("*/*.py")}
    assert drawn()[root] == there
