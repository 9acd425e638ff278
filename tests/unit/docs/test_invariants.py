"""The invariants of the proof and the tests that name them say the same, word for word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "proof.md"
LISTED = {f"{number}: {text}" for number, text in re.findall(r"^\| (I\d+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)}


def files() -> Iterator[tuple[str, str]]:
    for folder in (ROOT / "tests", ROOT / "src" / "solocron" / "testing"):
        for path in sorted(folder.rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def named() -> dict[str, str]:
    """Sentences of the marker, each with a test that has it."""
    found: dict[str, str] = {}
    for path, text in files():
        for node in ast.walk(ast.parse(text)) if "mark.invariant" in text else ():
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.invariant":
                    (sentence,) = mark.args
                    assert isinstance(sentence, ast.Constant), path
                    found[str(sentence.value)] = path
    return found


def test_they_are_numbered_without_a_gap() -> None:
    assert sorted(int(line[1:].partition(":")[0]) for line in LISTED) == list(range(1, len(LISTED) + 1))


def test_every_invariant_has_a_test_and_every_test_quotes_the_list() -> None:
    found = named()
    assert {sentence: place for sentence, place in found.items() if sentence not in LISTED} == {}
    assert LISTED - found.keys() == set()


def test_no_name_of_a_test_begins_with_a_number() -> None:
    """The number says nothing to a reader; the marker has the sentence."""
    assert [path for path, text in files() if re.search(r"^ *(async )?def test_i\d+_", text, re.MULTILINE)] == []
