"""Patterns of names, as a shell has them: `*`, `?` and `[...]`."""

from __future__ import annotations

import re
import string
from fnmatch import translate

__all__ = ["why_unmatchable"]

_LETTERS = string.ascii_letters + string.digits + "_.:-"
"""The characters that the name of a job or of a pool may have."""
_PART = re.compile(r"\[!?+\]?+[^\]]*+\]|.", re.DOTALL)


def why_unmatchable(pattern: str) -> str | None:
    """Return why no name can ever match a pattern; None if one can.

    `fnmatch` takes such a pattern without a word: it reads a bracket that is not closed as a letter, and a range that
    is the wrong way round as an empty set. A pause or a silence of it would stand, and cover nothing.
    """
    for part in _PART.findall(pattern):
        if part in ("*", "?") or part in _LETTERS:
            continue
        if part == "[":
            return "its '[' is not closed"
        if len(part) == 1:
            return f"no name has {part!r}"
        fits = re.compile(translate(part))
        if not any(fits.match(letter) for letter in _LETTERS):
            return f"{part} fits no character of a name"
    return None
