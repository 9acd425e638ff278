"""The main pages and their pictures at fixed data are what they were; a change is told line by line."""

from __future__ import annotations

from difflib import unified_diff

import pytest

from tests.unit.service.outline import FOLDER, PAGES, REWRITE, outlines

_LINES = 60


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return outlines()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_at_fixed_data_is_what_it_was(made: dict[str, str], name: str) -> None:
    was = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    changed = list(unified_diff(was.splitlines(), made[name].splitlines(), "as it was", "as it is", n=2, lineterm=""))
    told = "\n".join(changed[:_LINES])
    more = f"\n... and {len(changed) - _LINES} more lines" if len(changed) > _LINES else ""
    assert not changed, f"\n{told}{more}\n\nIf it is meant, look at it in a browser, then: {REWRITE}"


def test_there_is_no_outline_of_a_page_that_is_gone() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(PAGES)
