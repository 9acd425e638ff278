"""The first tests that a reader meets stay short, stay on the public API, and are all listed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

FUNDAMENTALS = Path(__file__).parents[2] / "fundamentals"
FILES = sorted(FUNDAMENTALS.glob("*.py"))


def test_there_are_ten_and_the_readme_lists_them_in_their_order() -> None:
    listed = re.findall(r"^\| `(\w+\.py)` \|", (FUNDAMENTALS / "README.md").read_text(), re.MULTILINE)
    assert listed == [file.name for file in FILES]
    assert len(listed) == 10


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_short_and_uses_nothing_but_the_public_api(file: Path) -> None:
    text = file.read_text()
    assert len(text.splitlines()) <= 60
    names = {
        name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    ours = {name for name in names if name.startswith(("solocron", "tests"))}
    assert ours <= {"solocron", "solocron.testing.clock", "solocron.testing.cluster"}
