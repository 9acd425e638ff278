"""Reads and writes durations: a `timedelta`, a number of seconds, or a string such as "1h30m"; never a negative one."""

from __future__ import annotations

import re
from datetime import timedelta

from solocron.errors import InvalidError

__all__ = ["format_duration", "parse_duration", "to_us"]

_UNITS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_WRITTEN = {unit: size for unit, size in _UNITS.items() if unit != "w"}  # people say 30d and 14d, hardly ever 2w

# Each unit at most once, the largest first. Every part is a choice of one kind, so matching is linear.
_TEXT = re.compile(r"\s*".join(rf"(?:([0-9]+(?:\.[0-9]+)?){unit})?" for unit in _UNITS))
_LONGEST = 64


def parse_duration(value: timedelta | int | float | str, *, what: str = "duration") -> timedelta:
    """Return the duration that `value` means, to the microsecond; `what` names it in the error.

    A string without a unit ("90") is refused: a reader could not tell seconds from minutes.
    """
    given: object = value
    if isinstance(given, timedelta):
        found = given
    elif isinstance(given, str):
        found = _from_text(given, what)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        found = _from_us(given * 1_000_000, given, what)
    else:
        raise InvalidError(_refusal(value, what, "is not a duration"))
    if found < timedelta():
        raise InvalidError(_refusal(value, what, "is negative"))
    return found


def format_duration(value: timedelta) -> str:
    """Return the shortest string that `parse_duration` reads back as the same duration: "1h30m".

    A minus sign if negative.
    """
    left = abs(to_us(value))
    parts = []
    for unit, size in _WRITTEN.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    sign = "-" if value < timedelta() else ""
    return sign + "".join(parts) if parts else "0s"


def to_us(value: timedelta) -> int:
    """Return the duration in whole microseconds, exactly."""
    return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds


def _from_text(text: str, what: str) -> timedelta:
    match = _TEXT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or not any(match.groups()):
        raise InvalidError(_refusal(text, what, "is not a duration"))
    us = sum(_amount(number) * size for number, size in zip(match.groups(), _UNITS.values(), strict=True))
    return _from_us(us, text, what)


def _amount(number: str | None) -> int | float:
    if number is None:
        return 0
    return float(number) if "." in number else int(number)


def _from_us(us: int | float, value: object, what: str) -> timedelta:
    try:
        return timedelta(microseconds=round(us))
    except (ValueError, OverflowError):  # NaN, infinity, or more than a timedelta holds
        raise InvalidError(_refusal(value, what, "is not a finite, reasonable length of time")) from None


def _refusal(value: object, what: str, why: str) -> str:
    shown = repr(value)
    if len(shown) > _LONGEST:
        shown = shown[:_LONGEST] + "..."
    return f"{what}: {shown} {why}; give a timedelta, seconds as a number, or a string such as '30s', '1h30m', '250ms'."
