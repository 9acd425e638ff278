"""Every slot of a job, laid out by its rhythm: hours by minutes, days by hours, weeks by days, else a list."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

from markupsafe import Markup

from solocron.service.draw.slots import GridRow, SlotCell, SlotGrid, draw_grid, kinds_of
from solocron.service.pages.parts import Choices
from solocron.service.pages.words import Reading, span

__all__ = ["TO_COME", "SlotFate", "SlotsPart", "kind_of", "lay_out", "said", "slots_part"]

MOST_CELLS = 2_000
_WORST = ("gone", "fail", "miss", "skip", "lost", "retry", "run", "wait", "ok", "next", "far", "")
_WORDS = {
    "ok": "succeeded",
    "retry": "after a retry",
    "lost": "taken over",
    "fail": "failed",
    "skip": "skipped by choice",
    "miss": "missed",
    "run": "running",
    "wait": "due or waiting",
    "two": "came twice",
    "next": "next",
    "far": "to come",
    "gone": "unaccounted for",
    "gap": "does not exist on this day",
}


TO_COME = "to come"
_KINDS = {
    "handed_over": "ok",
    "running": "run",
    "offered": "wait",
    "waiting": "wait",
    "due": "wait",
    "skipped": "skip",
    "cancelled": "skip",
    "missed": "miss",
    "dropped": "miss",
    "unaccounted": "gone",
    "not defined": "",
}
"""Kinds of the statuses other than succeeded; any other one is a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFate:
    """A slot by the schedule and what became of it; `status` is None for a slot to come."""

    slot: datetime
    status: str | None
    reason: str | None = None
    run: str | None = None
    attempts: int = 0
    taken_over: bool = False
    origin: str = "schedule"
    fold: bool = False
    """True if the local time comes twice on that day."""
    late_s: float | None = None
    took_s: float | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsPart:
    """The picture, its legend, and how else to see it."""

    table: Markup
    lead: str
    legend: tuple[tuple[str, str], ...]
    choices: tuple[Choices, ...]


def kind_of(fate: SlotFate, *, first: bool = False) -> str:
    """Return the kind of a cell; `first` marks the next slot among those to come; empty: the job had no such slot."""
    if fate.status in (None, TO_COME):
        return "next" if first else "far"
    if fate.status == "succeeded":
        return "lost" if fate.taken_over else "retry" if fate.attempts > 1 else "ok"
    return _KINDS.get(fate.status or "", "fail")


def said(fate: SlotFate, reading: Reading) -> str:
    """Return the whole label of a slot: when, what became of it, why."""
    what = fate.status.replace("_", " ") if fate.status else TO_COME
    if fate.status == "succeeded" and fate.attempts > 1:
        what += f" on attempt {fate.attempts}" + (", taken over" if fate.taken_over else "")
    if fate.took_s is not None:
        what += f", took {span(fate.took_s)}"
    asked = "" if fate.origin == "schedule" else f" ({fate.origin})"
    why = f": {fate.reason}" if fate.reason else ""
    return f"{reading.day(fate.slot)} {reading.time(fate.slot)}: {what}{asked}{why}"


def slots_part(
    fates: Sequence[SlotFate],
    *,
    job: str,
    chosen: datetime | None,
    reading: Reading,
    here: Callable[..., str],
    days_off: dict[date, str] | None = None,
    choices: tuple[Choices, ...] = (),
) -> SlotsPart:
    """Make the picture of a job's slots, oldest first."""
    grid = lay_out(fates, job=job, chosen=chosen, reading=reading, here=here, days_off=days_off or {})
    together = len(fates) > MOST_CELLS
    lead = "a square sums up several slots, by the worst" if together else "one square is one slot; nothing is left out"
    legend = tuple((kind, _WORDS[kind]) for kind in _WORDS if kind in kinds_of(grid))
    legend += tuple(("off", f"{row.label}: {row.note}") for row in grid.rows if row.note)[:8]
    return SlotsPart(table=draw_grid(grid), lead=lead, legend=legend, choices=choices)


def lay_out(
    fates: Sequence[SlotFate],
    *,
    job: str,
    chosen: datetime | None,
    reading: Reading,
    here: Callable[..., str],
    days_off: dict[date, str],
) -> SlotGrid:
    """Choose rows and columns by how often the job comes, and put every slot into its cell.

    `here` makes the address of the page with another slot chosen.
    """
    every = _rhythm(fates)
    local_times = [reading.local(fate.slot) for fate in fates]
    if every < timedelta(seconds=50):
        shape = _minutes_by_seconds(local_times)
    elif every < timedelta(minutes=50):
        shape = _hours_by_minutes(local_times)
    elif every < timedelta(hours=20):
        shape = _days_by_hours(local_times)
    elif every < timedelta(days=6):
        shape = _weeks_by_days(local_times)
    else:
        shape = _years_by_months(local_times)
    coming = next((fate.slot for fate in fates if fate.status in (None, TO_COME)), None)
    placed: dict[tuple[datetime, int], list[SlotFate]] = defaultdict(list)
    for fate, local in zip(fates, local_times, strict=True):
        placed[shape.row(local), shape.column(local)].append(fate)
    present, gaps = shape.row(reading.local(reading.now)), _gaps(shape, local_times, reading)
    rows = tuple(
        GridRow(
            label="today" if key == present and shape.corner == "day" else label,
            cells=tuple(
                _cell(placed[key, number], chosen=chosen, coming=coming, reading=reading, here=here)
                if (key, number) in placed
                else gaps.get((key, number), SlotCell())
                for number in range(len(shape.columns))
            ),
            today=key == present,
            note=days_off.get(key.date()) if shape.corner == "day" else None,
        )
        for key, label in shape.rows
    )
    caption = f"Every slot of {job}, {len(fates)} of them"
    return SlotGrid(caption=caption, corner=shape.corner, columns=shape.columns, rows=rows, dense=shape.dense)


def _gaps(shape: _Shape, local_times: Sequence[datetime], reading: Reading) -> dict[tuple[datetime, int], SlotCell]:
    """Return the cells of times that the clocks skip, where the job has a slot on other days."""
    if shape.corner not in ("day", "week from"):
        return {}
    times: dict[int, Counter[time]] = defaultdict(Counter)
    for local in local_times:
        times[shape.column(local)][local.time()] += 1
    found: dict[tuple[datetime, int], SlotCell] = {}
    for key, _ in shape.rows:
        for column, usual in times.items():
            day = key.date() + timedelta(days=0 if shape.corner == "day" else column)
            wanted = datetime.combine(day, usual.most_common(1)[0][0], reading.zone)
            lies_within = local_times[0] < wanted < local_times[-1]
            if lies_within and reading.local(wanted.astimezone(UTC)).replace(tzinfo=None) != wanted.replace(
                tzinfo=None
            ):
                label = f"{wanted:%a} {day.day} {wanted:%b %H:%M}: does not exist, the clocks go forward"
                found[key, column] = SlotCell(kind="gap", label=label)
    return found


def _rhythm(fates: Sequence[SlotFate]) -> timedelta:
    """Return the median distance of two slots."""
    apart = sorted(after.slot - before.slot for before, after in pairwise(fates) if after.slot > before.slot)
    return apart[len(apart) // 2] if apart else timedelta(days=30)


def _cell(
    fates: Sequence[SlotFate],
    *,
    chosen: datetime | None,
    coming: datetime | None,
    reading: Reading,
    here: Callable[..., str],
) -> SlotCell:
    kinds = [kind_of(fate, first=fate.slot == coming) for fate in fates]
    worst = min(range(len(fates)), key=lambda number: _WORST.index(kinds[number]))
    kind, fate = kinds[worst], fates[worst]
    if len(fates) == 2 and all(one.fold for one in fates) and kind == "ok":
        kind = "two"
    label = (
        said(fate, reading)
        if len(fates) == 1
        else f"{len(fates)} slots, {said(fates[0], reading)}; {said(fates[-1], reading)}"
    )
    return SlotCell(
        kind=kind,
        label=label,
        href=here(slot=fate.slot.isoformat()),
        chosen=chosen is not None and any(one.slot == chosen for one in fates),
        asked=any(one.origin != "schedule" for one in fates),
        count=len(fates) if kind != "two" else 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """Rows and columns, and where a local time stands among them."""

    corner: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[datetime, str]]
    row: Callable[[datetime], datetime]
    column: Callable[[datetime], int]
    dense: bool = False


def _minutes_by_seconds(locals_: Sequence[datetime]) -> _Shape:
    def row(local: datetime) -> datetime:
        return local.replace(second=0, microsecond=0, tzinfo=None, fold=0)

    rows = [(minute, f"{minute:%H:%M}") for minute in sorted({row(local) for local in locals_})]
    columns = tuple(f"{second:02}" for second in range(60))
    return _Shape(corner="minute", columns=columns, rows=rows, row=row, column=lambda local: local.second, dense=True)


def _hours_by_minutes(locals_: Sequence[datetime]) -> _Shape:
    def row(local: datetime) -> datetime:
        return local.replace(minute=0, second=0, microsecond=0, tzinfo=None, fold=0)

    found = sorted({row(local) for local in locals_})
    days = {hour.date() for hour in found}
    rows = [(hour, f"{hour:%H:00}" if len(days) == 1 else f"{hour:%a %H:00}") for hour in found]
    columns = tuple(f"{minute:02}" for minute in range(60))
    return _Shape(corner="hour", columns=columns, rows=rows, row=row, column=lambda local: local.minute, dense=True)


def _days_by_hours(locals_: Sequence[datetime]) -> _Shape:
    rows = [(day, f"{day:%a} {day.day} {day:%b}") for day in sorted({_day(local) for local in locals_})]
    columns = tuple(f"{hour:02}" for hour in range(24))
    return _Shape(corner="day", columns=columns, rows=rows, row=_day, column=lambda local: local.hour)


def _weeks_by_days(locals_: Sequence[datetime]) -> _Shape:
    def row(local: datetime) -> datetime:
        return _day(local) - timedelta(days=local.weekday())

    rows = [(week, f"{week.day} {week:%b}") for week in sorted({row(local) for local in locals_})]
    columns = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    return _Shape(corner="week from", columns=columns, rows=rows, row=row, column=datetime.weekday)


def _years_by_months(locals_: Sequence[datetime]) -> _Shape:
    def row(local: datetime) -> datetime:
        return datetime(local.year, 1, 1)  # noqa: DTZ001 -- the name of a row, not an instant

    rows = [(year, f"{year.year}") for year in sorted({row(local) for local in locals_})]
    columns = tuple(f"{datetime(2024, month, 1):%b}" for month in range(1, 13))  # noqa: DTZ001
    return _Shape(corner="year", columns=columns, rows=rows, row=row, column=lambda local: local.month - 1)


def _day(local: datetime) -> datetime:
    return local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
