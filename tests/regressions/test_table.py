"""The table of known bugs is true: each has a test that names it, and each test named is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.regressions.known import KNOWN, Known

ROOT = Path(__file__).parents[2]
OWN = Path(__file__).with_name("test_known_bugs_of_peers.py")


def named_in(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_list_is_complete() -> None:
    assert [known.name for known in KNOWN] == [f"P{number}" for number in range(1, 22)]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_every_bug_has_a_test_that_names_it(known: Known) -> None:
    assert [name for name in named_in(OWN) if name.startswith(f"test_{known.name.lower()}_")]


@pytest.mark.parametrize("known", [known for known in KNOWN if known.also], ids=lambda known: known.name)
def test_what_is_said_to_cover_it_as_well_is_there(known: Known) -> None:
    for place in known.also:
        file, _, name = place.partition("::")
        assert name in named_in(ROOT / file), f"{known.name}: there is no {place}"


def test_every_test_here_names_a_bug_of_the_list() -> None:
    names = {name for name in named_in(OWN) if name.startswith("test_")}
    assert {name for name in names if not re.match(r"test_p([1-9]|1\d|2[01])_", name)} == set()
