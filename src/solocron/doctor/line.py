"""Lines of the doctor: one function for each level, and short lists of names."""

from __future__ import annotations

from collections.abc import Sequence

from solocron.clock import SECOND
from solocron.stores.contract import Check

__all__ = ["FAIL", "OK", "WARN", "fail", "listed", "ok", "seconds", "warn"]

OK, WARN, FAIL = "OK", "WARN", "FAIL"

_LISTED = 5


def ok(name: str, detail: str) -> Check:
    return Check(name, OK, detail)


def warn(name: str, detail: str, remedy: str) -> Check:
    return Check(name, WARN, detail, remedy)


def fail(name: str, detail: str, remedy: str) -> Check:
    return Check(name, FAIL, detail, remedy)


def listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def seconds(us: int) -> str:
    """Format microseconds for people."""
    value = us / SECOND
    return f"{value:.0f} s" if abs(value) >= 10 or us % SECOND == 0 else f"{value:.3g} s"
