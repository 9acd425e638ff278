"""The days that a cron expression names, as one bit mask for each of the fourteen kinds of year there are."""

from __future__ import annotations

from calendar import isleap
from datetime import date
from functools import lru_cache

from cronsim import CronSim

from solocron.schedules.field import ANY_TIME

__all__ = ["Days", "days"]

_EPOCH = date(1970, 1, 1).toordinal()
_YEARS = range(1, 10_000)


@lru_cache(maxsize=1024)
def _year(year: int) -> tuple[int, int]:
    """Return the number of its first day, counted from 1970, and its kind: first weekday, leap or not."""
    first = date(year, 1, 1)
    return first.toordinal() - _EPOCH, first.weekday() * 2 + isleap(year)


# Two years of one kind have the same calendar, and any 28 years without a skipped leap day hold all fourteen kinds.
_SAMPLES = {_year(year)[1]: year for year in range(2000, 2028)}


class _Masks(dict[int, int]):
    """Kind of year -> bit n is set when its n-th day matches; cronsim decides which do, once for each kind."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __missing__(self, kind: int) -> int:
        year = _SAMPLES[kind]
        # Parsed again for each kind: keeping the parser's object would cost 6 kB for every expression.
        fields = CronSim(f"0 0 {self.text}", ANY_TIME)
        first = date(year, 1, 1).toordinal()
        mask = 0
        for index in range(366 if isleap(year) else 365):
            day = date.fromordinal(first + index)
            if day.month in fields.months and fields.match_day(day):
                mask |= 1 << index
        self[kind] = mask
        return mask


class Days:
    """A set of days, numbered from 1970; found in closed form within a year, and year by year beyond."""

    __slots__ = ("_masks", "every")

    def __init__(self, text: str) -> None:
        self._masks = _Masks(text)
        self.every = text == "* * *"

    def exist(self) -> bool:
        """True if any year of the 400-year cycle has such a day; that cycle holds all kinds of year."""
        return self.every or any(self._masks[kind] for kind in _SAMPLES)

    def ceil(self, day: int) -> int:
        """Return the first matching day not before `day`; past the year 9999 it is the day after the last."""
        year = date.fromordinal(day + _EPOCH).year
        first, kind = _year(year)
        left = self._masks[kind] >> (day - first)
        while not left:
            year += 1
            if year not in _YEARS:
                return date.max.toordinal() - _EPOCH + 1
            day, kind = _year(year)
            left = self._masks[kind]
        return day + (left & -left).bit_length() - 1

    def floor(self, day: int) -> int:
        """Return the last matching day not after `day`; before the year 1 it is the day before the first."""
        year = date.fromordinal(day + _EPOCH).year
        first, kind = _year(year)
        left = self._masks[kind] & ((2 << (day - first)) - 1)
        while not left:
            year -= 1
            if year not in _YEARS:
                return -_EPOCH
            first, kind = _year(year)
            left = self._masks[kind]
        return first + left.bit_length() - 1

    def count(self, a: int, b: int) -> int:
        """Number of matching days from `a` on, before `b`."""
        return (
            self._rank(b)
            - self._rank(a)
            + sum(self._masks[_year(year)[1]].bit_count() for year in range(_year_of(a), _year_of(b)))
        )

    def _rank(self, day: int) -> int:
        """Number of matching days before it in its year."""
        first, kind = _year(_year_of(day))
        return (self._masks[kind] & ((1 << (day - first)) - 1)).bit_count()


def _year_of(day: int) -> int:
    return date.fromordinal(day + _EPOCH).year


@lru_cache(maxsize=1024)
def days(text: str) -> Days:
    """Return the days of "day-of-month month day-of-week", shared by all expressions that name the same."""
    return Days(text)
