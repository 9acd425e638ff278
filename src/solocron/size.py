"""Reads and writes amounts of memory: a number of bytes, or a string such as "512M"; units are powers of 1,024."""

from __future__ import annotations

import re

from solocron.errors import InvalidError

__all__ = ["format_size", "parse_size"]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_TEXT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(value: int | str, *, what: str = "size") -> int:
    """Return the bytes that `value` means; `what` names it in the error."""
    given: object = value
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    match = _TEXT.fullmatch(given.strip()) if isinstance(given, str) and len(given) <= 64 else None
    found = round(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if found <= 0:
        raise InvalidError(
            f"{what}={value!r:.64} is not an amount of memory; give bytes, or a string such as '512M' or '2G'."
        )
    return found


def format_size(size: int) -> str:
    """Return a size for people: in the largest unit that leaves a number of 1 or more, one digit after the point."""
    unit = next((unit for unit in reversed(_UNITS) if size >= _UNITS[unit]), "")
    return f"{size / _UNITS[unit]:.1f}".removesuffix(".0") + unit
