"""The six fields of a cron expression: their names and limits, and why a string was refused in one of them.

cronsim decides what is allowed. This module only finds the words for it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from cronsim import CronSim, CronSimError

__all__ = ["ANY_TIME", "FIELDS", "Field"]

ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""Start time for cronsim, which requires one; if only its sets are read, any will do."""

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class Field(NamedTuple):
    """One field: its name, its place in five, lowest and highest value, what `H` chooses from, a hint for people.

    Seconds are ours; they are read by cronsim in the place of the minutes, which have the same values.
    """

    name: str
    place: int
    low: int
    high: int
    hashed: tuple[int, int]
    hint: str
    names: tuple[str, ...] = ()

    @property
    def is_day(self) -> bool:
        return self.name.startswith("day")

    def shown(self, text: str) -> str:
        return f"the {self.name} field {text!r:.60}"

    def value(self, text: str) -> int | None:
        """Return the number that a word or a numeral stands for, allowed or not."""
        if text in self.names:
            return self.names.index(text) + self.low
        return int(text) if text.isdigit() else None

    def why_not(self, text: str) -> str | None:
        """Return why this string cannot stand in this field, and what can; None if it can."""
        reason = next(filter(None, map(self._why_not, text.split(","))), None)
        if reason is None and not self._reads(text):
            reason = f"cannot be read; {self.hint}"
        return reason and f"{self.shown(text)} {reason}."

    def _reads(self, text: str) -> bool:
        alone = ["*"] * 5
        alone[self.place] = text
        try:
            CronSim(" ".join(alone), ANY_TIME)
        except CronSimError:
            return False
        return True

    def _why_not(self, item: str) -> str | None:
        whole, slash, step = item.partition("/")
        low, dash, high = whole.partition("-")
        first, last = self.value(low), self.value(high)
        if not item:
            return "has an empty item; remove the extra comma"
        if slash and step.isdigit() and int(step) == 0:
            return "has a step of 0, which never moves on; use 1 or more"
        if self.is_day and (special := self._special(item)):
            return special
        for value in (first, last):
            if value is not None and not self.low <= value <= self.high:
                return f"is out of range; {self.hint}"
        if dash and first is not None and last is not None and first > last:
            return f"runs backwards; write {self._unwrapped(first, last)}"
        return None

    def _special(self, item: str) -> str | None:
        if item.startswith("L-"):
            return "counts days back from the last, which is not supported; use L for the last day, or day numbers"
        if item.startswith("L") and "/" in item:
            return "has a step after L, which is one day; leave the step out"
        if item[:-1].isdigit() and item.endswith("W"):
            return "asks for the nearest weekday, which is not supported; use LW for the last weekday, or list days"
        if item.endswith("L") and item[:-1] in self.names:
            return f"is written with a number; use {self.value(item[:-1])}L"
        if "#" in item and item.partition("#")[2] not in ("1", "2", "3", "4", "5"):
            return "counts from #1 to #5; no month has more of one weekday"
        if item.isdigit() and int(item) >= 1970:
            return "looks like a year, which has no field; leave it out, or use `at` for a single date"
        return None

    def _unwrapped(self, first: int, last: int) -> str:
        if self.names != _WEEKDAYS:
            return f"{first}-{self.high},{self.low}-{last}"
        # Sunday is both 0 and 7, so a week can be cut behind it.
        return f"{first}-7" + {0: "", 1: ",1"}.get(last, f",1-{last}")


FIELDS = (
    Field("second", 0, 0, 59, (0, 59), "seconds go from 0 to 59"),
    Field("minute", 0, 0, 59, (0, 59), "minutes go from 0 to 59"),
    Field("hour", 1, 0, 23, (0, 23), "hours go from 0 to 23"),
    # H stays below 29, so that no month is left out.
    Field("day of month", 2, 1, 31, (1, 28), "days go from 1 to 31, L is the last, LW the last weekday"),
    Field("month", 3, 1, 12, (1, 12), "months go from 1 to 12 or JAN to DEC", _MONTHS),
    Field(
        "day of week", 4, 0, 7, (0, 6), "days of the week go from 0 to 7 or SUN to SAT, also MON#2 and 5L", _WEEKDAYS
    ),
)
