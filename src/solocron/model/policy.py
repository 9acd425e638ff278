"""The declared choices of a job, as values: overlap, catch-up, backoff. Each knows its own JSON."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from solocron.clock import SECOND
from solocron.duration import format_duration, parse_duration, to_us
from solocron.errors import InvalidError

__all__ = [
    "QUEUE_LIMIT",
    "Backoff",
    "CatchUp",
    "Overlap",
    "allow",
    "catch_up_all",
    "parse_quota",
    "parse_rate",
    "whole",
]

QUEUE_LIMIT = 1_000
"""Maximum number of waiting runs in one job's queue; further ones are `dropped`."""

Span = timedelta | int | float | str


def whole(value: object) -> bool:
    """Return whether a caller's value is a whole number; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Policy for a slot that falls due while an earlier run of the job still runs."""

    kind: str = "skip"
    most: int = 1

    KINDS = ("skip", "queue", "queue-all", "replace", "allow")

    @classmethod
    def parse(cls, value: Overlap | str) -> Overlap:
        if isinstance(value, Overlap):
            return value
        if value in ("skip", "queue", "queue-all", "replace"):
            return _overlap(value)
        raise InvalidError(
            f'overlap={value!r} is not known; choose "skip", "queue", "queue-all", "replace" or allow(n). '
            "Nothing was registered."
        )

    def __str__(self) -> str:
        return f"allow({self.most})" if self.kind == "allow" else self.kind

    def to_json(self) -> Any:
        return [self.kind, self.most] if self.kind == "allow" else self.kind

    @classmethod
    def from_json(cls, value: Any) -> Overlap:
        return cls(value[0], value[1]) if isinstance(value, list) else cls(value)


def allow(n: int) -> Overlap:
    """Let up to `n` runs of the job run at once; further slots are skipped while `n` run."""
    if not whole(n) or not 1 <= n <= QUEUE_LIMIT:
        raise InvalidError(f"allow({n!r}): give a whole number from 1 to {QUEUE_LIMIT}. Nothing was registered.")
    return Overlap("allow", n)


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Policy for missed slots: none, the latest, or all within bounds (times in microseconds)."""

    kind: str = "latest"
    limit: int | None = None
    within: int | None = None
    pace: int | None = None
    """Minimum microseconds between the starts of two missed slots."""

    @classmethod
    def parse(cls, value: CatchUp | str) -> CatchUp:
        if isinstance(value, CatchUp):
            return value
        if value in ("skip", "latest", "all"):
            return _catch_up(value)
        raise InvalidError(
            f'catch_up={value!r} is not known; choose "skip", "latest", "all" or '
            "catch_up_all(limit=, within=, rate=). "
            "Nothing was registered."
        )

    def __str__(self) -> str:
        bounds = {
            "limit": self.limit,
            "within": None if self.within is None else format_duration(timedelta(microseconds=self.within)),
            "pace": None if self.pace is None else format_duration(timedelta(microseconds=self.pace)),
        }
        given = ", ".join(f"{name}={bound}" for name, bound in bounds.items() if bound is not None)
        return f"{self.kind}({given})" if given else self.kind

    def to_json(self) -> Any:
        if self.pace is not None:
            return [self.kind, self.limit, self.within, self.pace]
        return [self.kind, self.limit, self.within] if (self.limit, self.within) != (None, None) else self.kind

    @classmethod
    def from_json(cls, value: Any) -> CatchUp:
        return cls(*value) if isinstance(value, list) else cls(value)


def catch_up_all(*, limit: int | None = None, within: Span | None = None, rate: str | None = None) -> CatchUp:
    """Run every missed slot: the newest `limit` of them, none older than `within`. The rest is recorded as missed.

    `rate="10/m"` starts them evenly, no faster than that. Slots that fall due meanwhile go first.
    """
    if limit is not None and (not whole(limit) or limit < 1):
        raise InvalidError(f"catch_up_all(limit={limit!r}): give a whole number from 1 up. Nothing was registered.")
    return CatchUp(
        "all",
        limit,
        None if within is None else to_us(parse_duration(within, what="catch_up_all(within=)")),
        None if rate is None else parse_rate(rate, what="catch_up_all(rate=)"),
    )


_RATE = re.compile(r"([1-9][0-9]{0,5})/([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def parse_rate(rate: str, *, what: str) -> int:
    """Return the microseconds between two starts at a rate such as "10/m", rounded up."""
    number, period = parse_quota(rate, what=what, untouched="Nothing was changed.")
    return -(-period // number)


def parse_quota(rate: str, *, what: str, untouched: str) -> tuple[int, int]:
    """Return a rate such as "10/m" as a number and the microseconds in which there may be so many."""
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None:
        raise InvalidError(f'{what}: {rate!r:.60} is not a rate; write it like "10/m", "1/s" or "100/h". {untouched}')
    return int(found[1]), _UNITS[found[2]] * SECOND


@dataclass(frozen=True, slots=True, init=False)
class Backoff:
    """Delay of a failed run before its next attempt: `first`, times `factor` each time, never above `cap`."""

    first: int
    factor: float
    cap: int
    jitter: float

    def __init__(self, first: Span = "1s", factor: float = 2, cap: Span = "5m", jitter: float = 0.1) -> None:
        if not 1 <= factor <= 100:
            raise InvalidError(f"Backoff(factor={factor!r}): give a number from 1 to 100. Nothing was registered.")
        if not 0 <= jitter <= 1:
            raise InvalidError(f"Backoff(jitter={jitter!r}): give a number from 0 to 1. Nothing was registered.")
        object.__setattr__(self, "first", to_us(parse_duration(first, what="Backoff(first=)")))
        object.__setattr__(self, "factor", float(factor))
        object.__setattr__(self, "cap", to_us(parse_duration(cap, what="Backoff(cap=)")))
        object.__setattr__(self, "jitter", float(jitter))

    def delay(self, failures: int, seed: str) -> int:
        """Return the microseconds to wait after that many failures.

        The jitter follows from `seed`, so all nodes agree.
        """
        exponent = min(failures - 1, 64)
        plain = min(self.first * self.factor**exponent, self.cap)
        roll = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=6).digest(), "big") / 2**48
        return int(min(plain * (1 + self.jitter * (2 * roll - 1)), self.cap))

    def __str__(self) -> str:
        first, cap = (format_duration(timedelta(microseconds=us)) for us in (self.first, self.cap))
        return f"Backoff(first={first}, factor={self.factor:g}, cap={cap}, jitter={self.jitter:g})"

    def to_json(self) -> Any:
        return [self.first, self.factor, self.cap, self.jitter]

    @classmethod
    def from_json(cls, value: Any) -> Backoff:
        first, factor, cap, jitter = value
        return cls(timedelta(microseconds=first), factor, timedelta(microseconds=cap), jitter)


# Equal policies share one object: a thousand jobs stay small.


@cache
def _overlap(kind: str) -> Overlap:
    return Overlap(kind)


@cache
def _catch_up(kind: str) -> CatchUp:
    return CatchUp(kind)
