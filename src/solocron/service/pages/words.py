"""Words and numbers of the pages: durations, instants in the reader's zone, fences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

__all__ = ["Reading", "instants_of", "number", "plural", "short_fence", "span"]

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def number(value: int) -> str:
    """Return a number with separators: `2,856`."""
    return f"{value:,}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: `1 slot`, `2,856 slots`."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def span(value: timedelta | float) -> str:
    """Return a duration as people say it, with two units at most: `0.21 s`, `2 m 13 s`, `3 h 05 m`, `4 d 2 h`."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds < 0:
        return "−" + span(-seconds)
    if seconds < 1:
        return f"{seconds:.2f} s" if seconds >= 0.01 or seconds == 0 else f"{seconds * 1_000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} m" + (f" {whole % _MINUTE:02} s" if whole % _MINUTE else "")
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} m"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def short_fence(fence: int) -> str:
    """Return the end of a fence, by which two of them are told apart: `…907441`."""
    digits = str(fence)
    return digits if len(digits) <= 7 else "…" + digits[-6:]


_INSTANT = re.compile(r"(?<![@\w])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def instants_of(sentence: str) -> list[datetime]:
    """Return the instants that a sentence of the record names, in its order."""
    return [datetime.fromisoformat(found[0]) for found in _INSTANT.finditer(sentence)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The zone in which a page tells times, and the store's present."""

    now: datetime
    zone: tzinfo
    zone_name: str

    @property
    def shift_ms(self) -> int:
        """Return the present offset of the zone from UTC in milliseconds: the script goes on from there."""
        return round((self.local(self.now).utcoffset() or timedelta()).total_seconds() * 1_000)

    def local(self, at: datetime) -> datetime:
        """Return the instant in the zone of the page."""
        return at.astimezone(self.zone)

    def time(self, at: datetime, *, seconds: bool = False) -> str:
        """Return the time of day, with whole seconds if it has any; with `seconds` always, to the tenth."""
        local = self.local(at)
        if seconds:
            return f"{local:%H:%M:%S}.{local.microsecond // 100_000}"
        return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"

    def clock(self, at: datetime) -> str:
        """Return the time of day with whole seconds."""
        return f"{self.local(at):%H:%M:%S}"

    def day(self, at: datetime) -> str:
        """Return the day: `Mon 16 Nov`, with the year if it is another one."""
        local, now = self.local(at), self.local(self.now)
        return f"{local:%a} {local.day} {local:%b}" + (f" {local.year}" if local.year != now.year else "")

    def stamp(self, at: datetime, *, seconds: bool = False) -> str:
        """Return the time alone for today, with the weekday for the days around it, else with the day."""
        local, now = self.local(at), self.local(self.now)
        away = abs((local.date() - now.date()).days)
        time = self.clock(at) if seconds else self.time(at)
        if away == 0:
            return time
        return f"{local:%a} {time}" if away < 6 else f"{self.day(at)} {time}"

    def told(self, sentence: str) -> str:
        """Return a sentence of the record with its instants on the clocks of the page."""
        return _INSTANT.sub(lambda found: self.stamp(datetime.fromisoformat(found[0]), seconds=True), sentence)

    def in_utc(self, at: datetime) -> str:
        """Return the time of day in UTC, with the name of the zone."""
        return f"{at.astimezone(UTC):%H:%M:%S} UTC"

    def until(self, at: datetime) -> str:
        """Return how far away an instant is: `in 13 s`, `4 m 02 s ago`, `now`."""
        away = (at - self.now).total_seconds()
        if abs(away) < 0.5:
            return "now"
        # Tenths of a second say nothing about a countdown.
        words = span(float(round(abs(away)))) if abs(away) >= 10 else f"{round(abs(away))} s"
        return f"in {words}" if away > 0 else f"{words} ago"
