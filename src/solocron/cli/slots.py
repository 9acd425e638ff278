"""The slots of an expression, and how `next` and `explain` print slots. No store is opened here."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

from solocron.cli import output
from solocron.cli.exits import OK
from solocron.cli.moments import instant, local, span, utc
from solocron.clock import SystemClock, from_us, iso, to_us
from solocron.schedules import Cron, Schedule, dst_notes, instants, load_zone

__all__ = ["as_iso", "as_lines", "clock_changes", "cron_of", "print_slots", "slots_after", "start_of"]

_SOME_YEARS = timedelta(days=4 * 366)


def cron_of(args: Namespace) -> Cron:
    """Return the expression of the command line as a schedule."""
    chosen = {rule: choice for rule, choice in (("gap", args.gap), ("fold", args.fold)) if choice is not None}
    return Cron(args.what, tz=args.tz or "UTC", dst=chosen or None, seed=args.name)


def start_of(args: Namespace, zone: tzinfo) -> int:
    """Return the instant of --from, else now."""
    return SystemClock().wall() if args.start is None else to_us(instant(args.start, "--from", zone))


def slots_after(schedule: Cron, start: int, n: int) -> list[datetime]:
    """Return the next n slots in the zone of the schedule."""
    zone = load_zone(schedule.zone).info
    found: list[datetime] = []
    at = instants.after(schedule, start)
    while at is not None and len(found) < n:
        found.append(from_us(at).astimezone(zone))
        at = instants.after(schedule, at)
    return found


def clock_changes(schedule: Schedule, start: int, slots: Sequence[datetime]) -> list[str]:
    """Return a sentence for each clock change among the slots; for a rare schedule those of the next years."""
    if not slots:
        return []
    far = timedelta(microseconds=to_us(slots[-1]) - start) + timedelta(days=1)
    return dst_notes(schedule, start, min(far, _SOME_YEARS))


def print_slots(args: Namespace, slots: Sequence[datetime], start: int, notes: Sequence[str]) -> int:
    """Print slots and notes; return the exit code."""
    if args.json:
        return output.dump({"next": as_iso(slots)})
    if not slots:
        output.note("no slot is left")
    for line in as_lines(slots, start):
        output.say(line)
    if notes:
        print()
        output.pairs(("note", note) for note in notes)
    return OK


def as_iso(slots: Sequence[datetime]) -> list[str]:
    """Return slots for JSON."""
    return [iso(to_us(slot)) for slot in slots]


def as_lines(slots: Sequence[datetime], start: int) -> list[str]:
    """Return a line for each slot: local time, time until then, UTC; aligned."""
    away = [f"in {span(timedelta(microseconds=to_us(slot) - start))}" for slot in slots]
    width = max(map(len, away), default=0)
    return [
        f"{local(slot)}   {far:<{width}}    ({utc(slot, beside=slot)} UTC)"
        for slot, far in zip(slots, away, strict=True)
    ]
