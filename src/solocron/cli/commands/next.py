"""`solocron next`: show the next slots of a job or an expression. An expression needs no store, and none is opened."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_expression, add_listing
from solocron.cli.moments import instant
from solocron.cli.opening import opened
from solocron.clock import to_us
from solocron.errors import InvalidError

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_expression(parser, "JOB|EXPRESSION", slots=10, help="a cron expression in quotes, or a job", help_n="how many")
    add_listing(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.slots import clock_changes, cron_of, print_slots, slots_after, start_of
    from solocron.schedules import Bounded, load_zone

    if args.n > 1_000:
        raise InvalidError(f"-n {args.n}: at most 1000 slots are shown.")
    if " " in args.what.strip() or args.what.startswith("@"):
        schedule = cron_of(args)
        zone = load_zone(schedule.zone).info
        start = start_of(args, zone)
        slots = slots_after(schedule, start, args.n)
        return print_slots(args, slots, start, clock_changes(schedule, start, slots))
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
    if not slots and isinstance(rule, Bounded) and rule.ends is not None and start > rule.ends_us:
        output.note(f"{args.what} ended on {rule.ends}: it has no slot after that")
    paused = job.paused is not None or bool(job.pauses)
    if paused or not job.enabled:
        output.note(f"{args.what} is {'paused' if paused else 'disabled'}: these slots will be skipped")
    return print_slots(args, slots, start, days_off + ([] if rule is None else clock_changes(rule, start, slots)))
