"""Explain: an expression in words, its next slots, and a year of its days with the days on which the clocks change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import ClassVar

from markupsafe import Markup

from solocron.clock import from_us, to_us
from solocron.schedules import Cron, instants, load_zone
from solocron.service.draw.slots import GridRow, SlotCell, SlotGrid, draw_grid
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Column, FormField, TableCell, TablePart, TableRow
from solocron.service.pages.words import Reading, plural, span

__all__ = ["ExplainPage", "ExplainRules", "YearDay", "YearPart", "days_of_a_year", "explain_page", "year_of"]

_GAPS = (("", "by default"), ("run-after", "run after it"), ("skip", "skip"))
_FOLDS = (("", "by default"), ("first", "the first time"), ("last", "the last time"), ("both", "both times"))


@dataclass(frozen=True, slots=True, kw_only=True)
class YearDay:
    """A day on the clocks of the expression's zone: how many slots it has, and what the clocks do on it."""

    day: date
    slots: int
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class YearPart:
    """The picture of a year: a row for each month, a cell for each day."""

    table: Markup
    lead: str
    changes: tuple[str, ...]
    """What the clocks do on the days that bear a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRules:
    """The expression and rules of the form, as they were sent."""

    expression: str = ""
    zone: str = "UTC"
    gap: str = ""
    fold: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainPage:
    """An expression in words, with its next slots and its year; no store is read."""

    template: ClassVar[str] = "explain.html"
    section: ClassVar[str] = "explain"
    fields: tuple[FormField, ...]
    words: str
    problem: str
    slots: TablePart | None
    year: YearPart | None
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Explain"


def days_of_a_year(schedule: Cron, now: datetime) -> tuple[YearDay, ...]:
    """Return the days from today to the same day of next year, each with the number of its slots.

    Slots are counted by arithmetic and not one by one: a schedule of every second costs what a daily one does.
    """
    zone = load_zone(schedule.zone)
    today = now.astimezone(zone.info).date()
    days = [today + timedelta(days=number) for number in range(367)]
    begins = [to_us(datetime.combine(day, time(), zone.info)) for day in days]
    changes = {
        from_us(change.at * 1_000_000).astimezone(zone.info).date(): change.after - change.before
        for change in zone.changes(begins[0] // 1_000_000, begins[-1] // 1_000_000)
    }
    return tuple(
        YearDay(
            day=day,
            slots=instants.count(schedule, begin - 1, end - 1),
            change=_set(changes[day]) if day in changes else "",
        )
        for day, begin, end in zip(days, begins, begins[1:], strict=False)
    )


def _set(seconds: int) -> str:
    way = "forward" if seconds > 0 else "back"
    return f"the clocks go {way} by {span(float(abs(seconds))).removesuffix(' 00 m')}"


def year_of(days: Sequence[YearDay], expression: str) -> YearPart:
    """Draw a year of days, the month of the first one on top."""
    months = list(dict.fromkeys((one.day.year, one.day.month) for one in days))
    known = {one.day: one for one in days}
    grid = SlotGrid(
        caption=f"The days of a year on which {expression} has slots",
        corner="month",
        columns=tuple(str(number) for number in range(1, 32)),
        rows=tuple(
            GridRow(label=f"{date(year, month, 1):%b %Y}", cells=tuple(_cells(year, month, known)))
            for year, month in months
        ),
    )
    having, total = sum(one.slots > 0 for one in days), sum(one.slots for one in days)
    return YearPart(
        table=draw_grid(grid),
        lead=f"{plural(total, 'slot')} on {plural(having, 'day')}",
        changes=tuple(f"{_said(one.day)}: {one.change}" for one in days if one.change),
    )


def _cells(year: int, month: int, known: dict[date, YearDay]) -> Iterator[SlotCell]:
    for number in range(1, 32):
        try:
            one = known.get(date(year, month, number))
        except ValueError:  # the month is shorter
            one = None
        if one is None:
            yield SlotCell()
            continue
        told = f"{_said(one.day)}: {plural(one.slots, 'slot') if one.slots else 'no slot'}"
        label = f"{told}; {one.change}" if one.change else told
        yield SlotCell(kind="day" if one.slots else "none", label=label, asked=bool(one.change))


def _said(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


def explain_page(
    *,
    rules: ExplainRules,
    words: str,
    slots: Sequence[datetime],
    days: Sequence[YearDay] = (),
    notes: Sequence[str],
    problem: str,
    reading: Reading,
    links: Links,
) -> ExplainPage:
    """Make the page of an expression; `problem` says why it cannot be read."""
    example = "for example 15 2 * * MON-FRI"
    fields = (
        FormField(name="expression", label="Expression", value=rules.expression, hint=example, required=True),
        FormField(name="zone", label="Zone", value=rules.zone, hint="for example Europe/Vienna"),
        FormField(name="gap", label="A time that is skipped", kind="select", value=rules.gap, choices=_GAPS),
        FormField(name="fold", label="A time that comes twice", kind="select", value=rules.fold, choices=_FOLDS),
    )
    table = TablePart(
        label="Next slots",
        columns=(Column(title="local"), Column(title="UTC", narrow=False), Column(title="from now", right=True)),
        rows=tuple(
            TableRow(
                cells=(
                    TableCell(text=f"{slot:%a} {slot.day} {slot:%b %Y %H:%M}", strong=True),
                    TableCell(text=f"{slot.astimezone(reading.now.tzinfo):%Y-%m-%d %H:%M}", mono=True),
                    TableCell(text=reading.until(slot)),
                )
            )
            for slot in slots
        ),
        empty="It has no slot in the future.",
    )
    return ExplainPage(
        fields=fields,
        words=words,
        problem=problem,
        slots=table if words else None,
        year=year_of(days, rules.expression) if days else None,
        notes=tuple(notes),
    )
