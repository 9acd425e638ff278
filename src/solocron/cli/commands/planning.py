"""What a schedule will do: its next slots, and in words. An expression needs no store, and none is opened for it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

from solocron.cli import output
from solocron.cli.moments import instant, local, span, utc
from solocron.cli.opening import opened
from solocron.clock import SystemClock, from_us, iso, to_us
from solocron.errors import InvalidError
from solocron.schedules import Cron, Schedule, dst_notes, instants, lint, load_zone

__all__ = ["explain", "following"]

_SOME_YEARS = timedelta(days=4 * 366)


def following(args: Namespace) -> int:
    """`solocron next`."""
    if args.n > 1_000:
        raise InvalidError(f"-n {args.n}: at most 1000 slots are shown.")
    if " " in args.what.strip() or args.what.startswith("@"):
        schedule = _cron(args)
        zone = load_zone(schedule.zone).info
        start = _start(args, zone)
        slots = _after(schedule, start, args.n)
        return _show(args, slots, start, _notes(schedule, start, slots))
    if args.name or args.gap or args.fold:
        raise InvalidError(
            "--name, --gap and --fold belong to an expression; a job has its own. Nothing was looked up."
        )
    with opened(args) as client:
        job = client.get_job(args.what)
        zone = load_zone(args.tz or job.zone).info
        begin = None if args.start is None else instant(args.start, "--from", zone)
        slots = [slot.astimezone(zone) for slot in client.upcoming(args.what, args.n, start=begin)]
        start = client.store.clock() if begin is None else to_us(begin)
        rule = client.schedule(args.what)
        days_off = client.upcoming_changes(args.what, args.n, start=begin)
    if job.paused is not None or not job.enabled:
        output.note(f"{args.what} is {'disabled' if job.paused is None else 'paused'}: these slots will be skipped")
    return _show(args, slots, start, days_off + ([] if rule is None else _notes(rule, start, slots)))


def explain(args: Namespace) -> int:
    schedule = _cron(args)
    start = _start(args, load_zone(schedule.zone).info)
    slots = _after(schedule, start, args.n)
    notes = lint(schedule, start)
    if args.json:
        described = {"expression": schedule.expression, "zone": schedule.zone, "description": schedule.describe()}
        return output.dump(described | {"next": _iso(slots), "notes": notes})
    output.say(schedule.describe())
    output.pairs([*(("next", line) for line in _lines(slots, start)), *(("note", note) for note in notes)])
    return 0


def _cron(args: Namespace) -> Cron:
    chosen = {rule: choice for rule, choice in (("gap", args.gap), ("fold", args.fold)) if choice is not None}
    return Cron(args.what, tz=args.tz or "UTC", dst=chosen or None, seed=args.name)


def _start(args: Namespace, zone: tzinfo) -> int:
    return SystemClock().wall() if args.start is None else to_us(instant(args.start, "--from", zone))


def _after(schedule: Cron, start: int, n: int) -> list[datetime]:
    zone = load_zone(schedule.zone).info
    found: list[datetime] = []
    at = instants.after(schedule, start)
    while at is not None and len(found) < n:
        found.append(from_us(at).astimezone(zone))
        at = instants.after(schedule, at)
    return found


def _notes(schedule: Schedule, start: int, slots: Sequence[datetime]) -> list[str]:
    """The clock changes among the slots that are shown; of a rare schedule those of some years."""
    if not slots:
        return []
    far = timedelta(microseconds=to_us(slots[-1]) - start) + timedelta(days=1)
    return dst_notes(schedule, start, min(far, _SOME_YEARS))


def _show(args: Namespace, slots: Sequence[datetime], start: int, notes: Sequence[str]) -> int:
    if args.json:
        return output.dump({"next": _iso(slots)})
    if not slots:
        output.note("no slot is left")
    for line in _lines(slots, start):
        output.say(line)
    if notes:
        print()
        output.pairs(("note", note) for note in notes)
    return 0


def _iso(slots: Sequence[datetime]) -> list[str]:
    return [iso(to_us(slot)) for slot in slots]


def _lines(slots: Sequence[datetime], start: int) -> list[str]:
    """Local time, how long until then, UTC; aligned."""
    away = [f"in {span(timedelta(microseconds=to_us(slot) - start))}" for slot in slots]
    width = max(map(len, away), default=0)
    return [
        f"{local(slot)}   {far:<{width}}    ({utc(slot, beside=slot)} UTC)"
        for slot, far in zip(slots, away, strict=True)
    ]
