"""Patterns of names that no name can match."""

from __future__ import annotations

import string
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.client.patterns import why_unmatchable

LETTERS = string.ascii_letters + string.digits + "_.:-"


@pytest.mark.parametrize("pattern", ["*", "invoice:*", "a?c", "[abc]*", "[!a]", "[]a]", "[!]a]", "[a-c][0-9]"])
def test_a_pattern_that_can_match_is_let_pass(pattern: str) -> None:
    assert why_unmatchable(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[", "its '[' is not closed"),
        ("inv[oice", "its '[' is not closed"),
        ("[]", "its '[' is not closed"),
        ("[z-a]x", "[z-a] fits no character of a name"),
        ("[ /]", "[ /] fits no character of a name"),
        ("a b", "no name has ' '"),
        ("a]", "no name has ']'"),
        ("größe", "no name has 'ö'"),
    ],
)
def test_the_reason_names_the_part(pattern: str, why: str) -> None:
    assert why_unmatchable(pattern) == why


@given(st.text("ab[]!-*?z", max_size=8), st.text("abz-", min_size=1, max_size=4))
def test_what_fits_a_name_is_never_refused(pattern: str, name: str) -> None:
    assert not fnmatchcase(name, pattern) or why_unmatchable(pattern) is None
