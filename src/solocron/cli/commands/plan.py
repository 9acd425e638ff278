"""`solocron plan`: show what the fleet will do in the coming days, and where it will be crowded. Writes nothing."""

from __future__ import annotations

import shutil
import sys
import textwrap
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from solocron.cli import output
from solocron.cli.arguments import add_listing, count
from solocron.cli.exits import OK
from solocron.cli.moments import instant, local, span
from solocron.cli.opening import opened
from solocron.clock import from_us, iso, to_us
from solocron.errors import InvalidError
from solocron.printable import clean

if TYPE_CHECKING:
    from solocron.preview import Plan
    from solocron.preview.herds import Herd
    from solocron.preview.limit_queue import LimitForecast

__all__ = ["add_arguments", "execute"]

_MOST_DAYS = 92
_SHOWN = 5
"""Herds, notes and names that are shown; `--json` has all."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--days", metavar="N", type=count, default=7, help="how many days, from today on (default: 7)")
    parser.add_argument("--from", dest="start", metavar="INSTANT", help="begin then (default: now)")
    parser.add_argument("--tz", metavar="ZONE", default="UTC", help="the zone of the picture (default: UTC)")
    parser.add_argument(
        "--herd", metavar="N", type=_herd_size, default=5, help="jobs in one minute that are a herd (default: 5)"
    )
    add_listing(parser)


def _herd_size(value: str) -> int:
    if count(value) < 2:
        raise ArgumentTypeError(f"{value} job is not a herd; give a whole number from 2 up")
    return int(value)


def execute(args: Namespace) -> int:
    from solocron.preview import make_plan, planned_jobs
    from solocron.schedules import load_zone

    if args.days > _MOST_DAYS:
        raise InvalidError(f"--days {args.days}: at most {_MOST_DAYS} days are planned. Nothing was read.")
    zone = load_zone(args.tz)
    begin = None if args.start is None else to_us(instant(args.start, "--from", zone.info))
    with opened(args) as client:
        jobs, left_out = planned_jobs(client)
        now = client.store.clock()
    start = now if begin is None else begin
    if _end(args, start) <= now:
        raise InvalidError(
            f"--from: the {args.days} days from {args.start!r:.60} on are over; `solocron runs --since` has them."
        )
    plan = make_plan(jobs, start=start, days=args.days, zone=args.tz, herd=args.herd, left_out=left_out)
    if args.json:
        return output.dump(_as_json(plan))
    _print(plan, zone.info)
    return OK


def _end(args: Namespace, start: int) -> int:
    """Return the end of the days; raise if the calendar does not have them."""
    from solocron.preview.hourly_load import end_of_days

    try:
        return end_of_days(start, args.days, args.tz)
    except OverflowError:
        raise InvalidError(
            f"--from: {args.start!r:.60} is too far away: {args.days} days from then are not in the calendar."
        ) from None


def _print(plan: Plan, zone: tzinfo) -> None:
    from solocron.cli.heatmap import draw, palette, show

    width = max(60, shutil.get_terminal_size((80, 24)).columns)
    begin = local(from_us(plan.start).astimezone(zone).replace(second=0, microsecond=0))
    days = len({from_us(at).astimezone(zone).date() for at in plan.load})
    what = f"{plan.runs:,} runs of {plan.jobs:,} {'job' if plan.jobs == 1 else 'jobs'}"
    _wrapped(f"{what} in {days} {'day' if days == 1 else 'days'} from {begin}, {plan.zone}", width)
    print()
    show(draw(plan.load, plan.zone, width=width, marks=palette(sys.stdout.encoding)))
    _section("herds", list(_herds(plan, zone)), width)
    _section("clock changes", [f"{note.job}: {note.note}" for note in plan.clock_notes], width)
    _section("limits", [_limit(one, zone) for one in plan.limits if one.collides], width)
    _section("left out", [f"{one.job}: {one.why}" for one in plan.left_out], width)


def _section(title: str, lines: Sequence[str], width: int) -> None:
    if not lines:
        return
    print(f"\n{title}")
    for line in lines[:_SHOWN]:
        _wrapped(line, width, indent="  ")
    if len(lines) > _SHOWN:
        print(f"  and {len(lines) - _SHOWN} more, see --json")


def _wrapped(text: str, width: int, indent: str = "") -> None:
    folded = textwrap.wrap(clean(text), width - 1, initial_indent=indent, subsequent_indent=f"{indent}  ")
    print("\n".join(line.rstrip() for line in folded))


def _herds(plan: Plan, zone: tzinfo) -> Iterator[str]:
    for herd in plan.herds:
        yield _herd(herd, zone)
    if plan.herds_until < plan.end:
        yield f"looked for until {local(from_us(plan.herds_until).astimezone(zone))}: the fleet has too many slots"


def _herd(herd: Herd, zone: tzinfo) -> str:
    first = from_us(herd.first).astimezone(zone)
    often = "once" if herd.times == 1 else f"{herd.times:,} times"
    named = _names(herd.jobs)
    text = f"{len(herd.jobs)} jobs in the minute {local(first)} ({often}"
    text += f", {herd.in_one_second} runs in one second): {named}."
    if herd.quieter is None:
        return f"{text} No minute of the next hour is quieter; give them spread=."
    there = first + timedelta(minutes=herd.quieter.minutes_later)
    return (
        f"{text} Quieter: {there:%H:%M}, {_runs(herd.quieter.runs)} in that minute. Or give them spread=, or H instead "
        "of the minute."
    )


def _limit(one: LimitForecast, zone: tzinfo) -> str:
    assert one.worst is not None
    when = local(from_us(one.worst).astimezone(zone))
    text = f"{one.limit}:{one.most}, {_names(one.jobs)}: "
    if one.waiting:
        wait = span(timedelta(microseconds=one.longest_wait))
        text += f"{one.waiting:,} of {_runs(one.runs)} wait for a permit, the slot {when} for {wait}."
    else:
        text += f"{one.due_at_once} runs fall due at {when}, and {one.most} may run."
    if one.missed:
        text += f" {one.missed:,} would be missed: they wait longer than start_within."
    if one.unknown:
        text += f" No run on record of {_names(one.unknown)}: counted as if it took no time."
    return text


def _runs(number: int) -> str:
    return f"{number:,} run" if number == 1 else f"{number:,} runs"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _as_json(plan: Plan) -> dict[str, Any]:
    return {
        "from": iso(plan.start),
        "until": iso(plan.end),
        "zone": plan.zone,
        "jobs": plan.jobs,
        "runs": plan.runs,
        "hours": [{"at": iso(at), "runs": runs} for at, runs in plan.load.items()],
        "herds": [
            {
                "at": iso(herd.first),
                "times": herd.times,
                "jobs": list(herd.jobs),
                "runs": herd.runs,
                "in_one_second": herd.in_one_second,
                "quieter": None
                if herd.quieter is None
                else {"minutes_later": herd.quieter.minutes_later, "runs": herd.quieter.runs},
            }
            for herd in plan.herds
        ],
        "herds_until": iso(plan.herds_until),
        "clock_changes": [{"job": one.job, "zone": one.zone, "note": one.note} for one in plan.clock_notes],
        "limits": [
            {
                "limit": one.limit,
                "most": one.most,
                "jobs": list(one.jobs),
                "until": iso(one.until),
                "runs": one.runs,
                "due_at_once": one.due_at_once,
                "waiting": one.waiting,
                "longest_wait": one.longest_wait / 1_000_000,
                "worst": None if one.worst is None else iso(one.worst),
                "missed": one.missed,
                "unknown": list(one.unknown),
                "collides": one.collides,
            }
            for one in plan.limits
        ],
        "left_out": [{"job": one.job, "why": one.why} for one in plan.left_out],
    }
