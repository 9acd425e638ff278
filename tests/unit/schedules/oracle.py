"""Second opinions for the tests: cronsim, and the rules themselves, applied reading by reading without cleverness."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import cache
from itertools import product
from pathlib import Path

import tzdata
from cronsim import CronSim

from solocron.schedules import Cron, load_zone
from solocron.schedules.zone import ClockChange, zone_names

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
LAST = datetime(2040, 1, 1, tzinfo=UTC)


def seconds(moment: datetime) -> int:
    return round((moment - EPOCH).total_seconds())


def moment(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


@cache
def distinct_zones() -> tuple[str, ...]:
    """One name for each set of rules; links to the same rules are left out."""
    folder = Path(tzdata.__file__).parent / "zoneinfo"
    return tuple({(folder / name).read_bytes(): name for name in sorted(zone_names())}.values())


@cache
def changes(name: str) -> tuple[ClockChange, ...]:
    """The clock changes of twenty years."""
    return tuple(load_zone(name).changes(seconds(FIRST), seconds(LAST)))


def by_cronsim(expression: str, info: tzinfo, a: datetime, b: datetime) -> list[datetime]:
    """The slots after `a` and not after `b`, as cronsim walks them."""
    found = []
    for slot in CronSim(expression, a.astimezone(info)):
        instant = slot.astimezone(UTC)
        if instant > b:
            return found
        found.append(instant)
    return found


def by_the_rules(cron: Cron, a: datetime, b: datetime) -> list[datetime]:
    """The slots of a five-field schedule after `a` and not after `b`, reading by reading."""
    _, minute, hour, *date = cron.fields
    wildcard = minute.startswith("*") or hour.startswith("*")
    info = load_zone(cron.zone).info
    found = set()
    for reading in _readings(CronSim(f"{minute} {hour} {' '.join(date)}", a), a, b):
        found.update(_resolve(cron, reading, info, wildcard))
    return sorted(slot for slot in found if a < slot <= b)


def _readings(wanted: CronSim, a: datetime, b: datetime) -> Iterator[datetime]:
    """All that match on the days around, two more on each side for offsets and clock changes."""
    day = (a - timedelta(days=2)).date()
    while day <= (b + timedelta(days=2)).date():
        if day.month in wanted.months and wanted.match_day(day):
            for hour, minute in product(wanted.hours, wanted.minutes):
                yield datetime.combine(day, time(hour, minute))
        day += timedelta(days=1)


def _resolve(cron: Cron, reading: datetime, info: tzinfo, wildcard: bool) -> list[datetime]:
    shown = instants_that_show(reading, info)
    if wildcard:
        return shown
    if not shown:
        if cron.gap == "skip":
            return []
        while not shown:
            reading += MINUTE
            shown = instants_that_show(reading, info)
        return shown[:1]
    return {"first": shown[:1], "last": shown[-1:], "both": shown}[cron.fold]


def instants_that_show(reading: datetime, info: tzinfo) -> list[datetime]:
    """None in a gap, two in a fold: PEP 495 and a round trip."""
    instants = {reading.replace(tzinfo=info, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(at for at in instants if at.astimezone(info).replace(tzinfo=None) == reading)


def backward(cron: Cron, a: datetime, b: datetime) -> Iterator[datetime]:
    """The slots after `a` and not after `b`, found from the end."""
    at = b + timedelta(microseconds=1)
    while (found := cron.before(at)) is not None and found > a:
        yield found
        at = found


def assert_all_agree(cron: Cron, a: datetime, b: datetime, expected: list[datetime]) -> None:
    """Forward, backward, between and count give these slots and no others."""
    forward = []
    at: datetime | None = a
    while (at := cron.after(at)) is not None and at <= b:
        assert not forward or at > forward[-1]
        forward.append(at)
    assert forward == expected
    assert list(cron.between(a, b)) == expected
    assert list(backward(cron, a, b))[::-1] == expected
    assert cron.count(a, b) == len(expected)
