"""`solocron explain`: say in words what an expression does. No store is opened."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_expression, add_json
from solocron.cli.exits import OK

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_expression(parser, "EXPRESSION", slots=1, help="a cron expression in quotes", help_n="how many slots to show")
    add_json(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.slots import as_iso, as_lines, cron_of, slots_after, start_of
    from solocron.schedules import lint, load_zone

    schedule = cron_of(args)
    start = start_of(args, load_zone(schedule.zone).info)
    slots = slots_after(schedule, start, args.n)
    notes = lint(schedule, start)
    if args.json:
        described = {"expression": schedule.expression, "zone": schedule.zone, "description": schedule.describe()}
        return output.dump(described | {"next": as_iso(slots), "notes": notes})
    output.say(schedule.describe())
    output.pairs([*(("next", line) for line in as_lines(slots, start)), *(("note", note) for note in notes)])
    return OK
