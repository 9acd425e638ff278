"""Cron expressions in a zone, with a chosen rule for the hours that clock changes skip and repeat."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

from solocron.clock import from_us, to_us
from solocron.errors import InvalidError, ScheduleError
from solocron.schedules.native import FIRST, LAST, MICRO, Native
from solocron.schedules.parse import is_wildcard, parse
from solocron.schedules.readings import Wall
from solocron.schedules.shorthand import resolve, tidy, uses_hash
from solocron.schedules.zone import load_zone, zone_data_version, zone_name
from solocron.schedules.zoned import Local

__all__ = ["DEFAULT_DST", "Cron", "new_year_of_the_zone_data"]

_DST = {"gap": ("run-after", "skip"), "fold": ("first", "last", "both")}

DEFAULT_DST = {"gap": "run-after", "fold": "first"}
"""As in Debian's cron."""


class Cron(Native):
    """The readings that an expression matches, as instants in `tz`.

    A fixed time in a gap runs once right after it, in a fold once, the first; `dst` chooses otherwise. An expression
    whose minute or hour begins with `*` matches every reading that occurs. `H` is derived from `seed`, the job's name.
    Without an `H` the seed is dropped, so that equal schedules are equal.
    """

    __slots__ = ("_line", "expression", "fold", "gap", "seed", "zone")

    expression: str
    gap: str
    fold: str
    seed: str | None
    _line: Wall | Local

    def __init__(
        self,
        expression: str,
        *,
        tz: str | tzinfo = "UTC",
        dst: Mapping[str, str] | None = None,
        seed: str | None = None,
    ) -> None:
        try:
            text = tidy(expression)
            seed = seed if uses_hash(text) else None
            gap, fold = _rules(dst)
            zone = zone_name(tz)
            line = _line(" ".join(resolve(text, seed)), zone, gap, fold)
        except ScheduleError as refused:
            raise ScheduleError(f"cron {_shown(expression)}: {refused}") from None
        put = object.__setattr__
        put(self, "expression", sys.intern(text))
        put(self, "zone", zone)
        put(self, "gap", gap)
        put(self, "fold", fold)
        put(self, "seed", seed)
        put(self, "_line", line)

    @property
    def dst(self) -> dict[str, str]:
        """The rule for fixed times, whole."""
        return {"gap": self.gap, "fold": self.fold}

    @property
    def fields(self) -> tuple[str, ...]:
        """Second, minute, hour, day of month, month and day of week, with `@daily`, `?` and `H` resolved."""
        return resolve(self.expression, self.seed)

    @property
    def wall(self) -> Wall:
        """The readings that match, before any zone."""
        return self._line if isinstance(self._line, Wall) else self._line.wall

    def after_us(self, us: int) -> int | None:
        at = us // MICRO + 1
        found = self._line.ceil(at if at > FIRST else FIRST) if at < LAST else LAST
        return found * MICRO if found < LAST else None

    def before_us(self, us: int) -> int | None:
        at = (us - 1) // MICRO
        found = self._line.floor(at if at < LAST else LAST - 1) if at >= FIRST else FIRST - 1
        return found * MICRO if found >= FIRST else None

    def count_us(self, a: int, b: int) -> int:
        first, end = max(a // MICRO + 1, FIRST), min(b // MICRO + 1, LAST)
        return self._line.count(first, end) if first < end else 0

    def nominal(self, us: int) -> str | None:
        if self.zone == "UTC":
            return None
        reading = from_us(us).astimezone(load_zone(self.zone).info)
        return reading.replace(tzinfo=None, microsecond=0).isoformat() + "#1" * reading.fold

    def instant_of(self, nominal: str) -> int | None:
        if self.zone == "UTC":
            return None
        here = load_zone(self.zone)
        reading, again = _reading(nominal)
        found = here.instants(reading)
        if not found:
            return self._settled_gap(here.gap_end(reading))
        # A node whose clocks do not fall back here decides a reading just once. Under "last" that is the second one
        # here: the first is not a slot.
        last = again or (self._fixed and self.fold == "last" and self.wall.has(reading))
        return found[-1 if last else 0] * MICRO

    def _settled_gap(self, end: int) -> int:
        """Return the instant decided by a reading that is skipped here: its substitute after the gap, no more."""
        stands_in = self._line.ceil(end) == end and not self.wall.has(end + load_zone(self.zone).offset(end))
        return end * MICRO if stands_in else end * MICRO - 1

    @property
    def _fixed(self) -> bool:
        return not is_wildcard(self.fields)

    def describe(self) -> str:
        from solocron.schedules.explain import describe

        return describe(self)

    def _identity(self) -> tuple[object, ...]:
        return self.expression, self.zone, self.gap, self.fold, self.seed

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.expression, self.zone, self.dst, self.seed)

    def __repr__(self) -> str:
        options: dict[str, Any] = {"tz": self.zone} if self.zone != "UTC" else {}
        if self.dst != DEFAULT_DST:
            options["dst"] = self.dst
        if self.seed:
            options["seed"] = self.seed
        return f"Cron({', '.join([repr(self.expression), *(f'{key}={value!r}' for key, value in options.items())])})"


@lru_cache(maxsize=4096)
def _line(plain: str, tz: str, gap: str, fold: str) -> Wall | Local:
    """Return the one parsed form that all schedules of equal meaning share."""
    fields = tuple(plain.split())
    wall = parse(fields)
    if tz == "UTC":
        return wall
    if is_wildcard(fields):
        gap, fold = "skip", "both"
    load_zone(tz)
    line = Local(wall, tz, fold=fold, run_after=gap == "run-after")
    if gap == "skip" and line.ceil(new_year_of_the_zone_data()) >= LAST:
        raise ScheduleError(
            f"it never fires: in {tz} the clocks skip every time that it names; choose another time, "
            "or dst={'gap': 'run-after'} with a fixed one."
        )
    return line


def new_year_of_the_zone_data() -> int:
    """Return a start for looks into the future that is the same on all machines with the same zone data."""
    return to_us(datetime(int(zone_data_version()[:4]), 1, 1, tzinfo=UTC)) // MICRO


def _rules(dst: Mapping[str, str] | None) -> tuple[str, str]:
    chosen = dict(DEFAULT_DST)
    if dst is not None and not isinstance(dst, Mapping):
        raise ScheduleError(f"dst={dst!r:.80} is not a mapping; give {{'gap': ..., 'fold': ...}}.")
    for key, value in (dst or {}).items():
        if key not in _DST:
            raise ScheduleError(f"dst has no {key!r:.40}; it takes 'gap' and 'fold'.")
        if value not in _DST[key]:
            raise ScheduleError(f"dst {key} cannot be {value!r:.40}; choose {' or '.join(map(repr, _DST[key]))}.")
        chosen[key] = value
    return chosen["gap"], chosen["fold"]


def _reading(nominal: str) -> tuple[int, bool]:
    text, _, again = nominal.partition("#")
    try:
        return to_us(datetime.fromisoformat(text).replace(tzinfo=UTC)) // MICRO, again == "1"
    except ValueError:
        raise InvalidError(f"{nominal!r:.60} is not a local reading; it looks like '2027-03-14T02:30:00'.") from None


def _shown(expression: object) -> str:
    return repr(f"{expression[:77]}..." if isinstance(expression, str) and len(expression) > 80 else expression)


def _again(expression: str, tz: str, dst: Mapping[str, str], seed: str | None) -> Cron:
    return Cron(expression, tz=tz, dst=dst, seed=seed)
