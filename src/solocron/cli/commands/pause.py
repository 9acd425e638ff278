"""`solocron pause`: start nothing more of a job by schedule."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_job
from solocron.cli.author import author_of
from solocron.cli.exits import OK
from solocron.cli.moments import later, utc
from solocron.cli.opening import opened

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--by", metavar="WHO", help="who pauses it (default: the user of this terminal)")
    parser.add_argument("--note", metavar="WHY", help="why; shown wherever the job is")
    parser.add_argument("--until", metavar="INSTANT", help="when it goes on by itself, or after a time such as 2h")
    add_job(parser)


def execute(args: Namespace) -> int:
    with opened(args) as client:
        until = None if args.until is None else later(args.until, "--until", client.store.clock())
        job = client.pause(args.job, by=author_of(args), note=args.note, until=until)
    if args.json:
        return output.dump_views(job)
    end = f"until {utc(until)} UTC" if until else f"until `solocron resume {args.job}`"
    output.say(f"{args.job} is paused {end}")
    return OK
