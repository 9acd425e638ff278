"""`solocron pause`: start nothing more of a job, or of many jobs, by schedule."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import datetime
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.auditing import audited
from solocron.cli.author import author_of
from solocron.cli.exits import OK
from solocron.cli.host import program
from solocron.cli.moments import later, utc
from solocron.cli.opening import opened
from solocron.cli.scopes import add_scope, is_scoped, jobs_under, scope_of, scope_words
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.client import Client

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--by", metavar="WHO", help="who pauses it (default: the user of this terminal)")
    parser.add_argument("--note", metavar="WHY", help="why; shown wherever the job is")
    parser.add_argument("--until", metavar="INSTANT", help="when it goes on by itself, or after a time such as 2h")
    parser.add_argument(
        "--triggers", action="store_true", help="with --all, --pool or --match: what was requested waits as well"
    )
    add_scope(parser)


def execute(args: Namespace) -> int:
    scoped = is_scoped(args, "nothing was paused")
    if args.triggers and not scoped:
        raise InvalidError("--triggers goes with --all, --pool or --match; nothing was paused.")
    with opened(args) as client:
        until = None if args.until is None else later(args.until, "--until", client.store.clock())
        if scoped:
            return _pause_many(client, args, until)
        with audited(client, args, args.job):
            job = client.pause(args.job, by=author_of(args), note=args.note, until=until)
    if args.json:
        return output.dump_views(job)
    output.say(f"{args.job} is paused {_end(until, args.job)}")
    return OK


def _pause_many(client: Client, args: Namespace, until: datetime | None) -> int:
    scope, by = scope_of(args), author_of(args)
    with audited(client, args, scope_words(scope)):
        pause = client.pause_all(**scope, by=by, note=args.note, until=until, triggers=args.triggers)
    if args.json:
        return output.dump_views(pause)
    count = len(jobs_under(client, pause))
    running = sum(pause.scope in {one.scope for one in job.pauses} and bool(job.running) for job in client.jobs())
    output.say(f"{pause.scope} ({count} now): paused {_end(until, pause.option)}")
    if running:
        output.note(f"{running} of them still {'runs' if running == 1 else 'run'}, and may end")
    if not count:
        output.note(f"no job is among {pause.scope} now; see `solocron jobs`")
    return OK


def _end(until: datetime | None, what: str) -> str:
    return f"until {utc(until)} UTC" if until else f"until `{program()} resume {what}`"
