"""`solocron backfill`: run every slot of a range of the past."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import nullcontext
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing, count
from solocron.cli.auditing import audited
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import OK
from solocron.cli.host import program
from solocron.cli.moments import earlier, utc
from solocron.cli.opening import opened
from solocron.runtime import Threads

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.views import BackfillView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    parser.add_argument("start", metavar="START", help="from this instant on, or a time ago such as 30d")
    parser.add_argument("end", metavar="END", help="up to before this instant, or a time ago such as 0s")
    parser.add_argument("--limit", metavar="N", type=count, help="at most so many, the newest")
    parser.add_argument("--rate", metavar="RATE", help="start no faster than that, such as 10/m")
    parser.add_argument(
        "--only",
        choices=("all", "missed", "not_well"),
        default="all",
        help="what did not run, or did not succeed",
    )
    parser.add_argument("--key", metavar="KEY", help="the same key twice is one backfill")
    parser.add_argument("--dry-run", action="store_true", help="only count")
    parser.add_argument("--watch", action="store_true", help="wait for the end with a progress bar")
    add_author(parser, "asks for it")
    add_listing(parser)


def execute(args: Namespace) -> int:
    with opened(args) as client:
        now = client.store.clock()
        start, end = earlier(args.start, "START", now), earlier(args.end, "END", now)
        with nullcontext() if args.dry_run else audited(client, args, args.job):
            view = client.backfill(
                args.job,
                start,
                end,
                limit=args.limit,
                rate=args.rate,
                dry_run=args.dry_run,
                only=args.only,
                key=args.key,
                by=author_of(args),
                note=args.note,
            )
        if client.get_job(args.job).orphaned:
            output.note(f"no live node can run {args.job}; the runs wait for one")
        if args.watch and view.id is not None:
            _watch(client, view)
    if args.json:
        return output.dump_views(view)
    span = f"{utc(view.first)} to {utc(view.last)} UTC"
    if not view.total:
        output.note(f"every slot of {args.job} there ran already; nothing was asked for")
    elif view.id is None:
        output.say(f"{args.job} has {view.total} slots there: {span}")
    else:
        output.say(view.id)
        output.note(f"{view.total} slots of {args.job}: {span}. Stop it with: {program()} cancel {view.id}")
    return OK


def _watch(client: Client, view: BackfillView) -> None:
    """Wait until nothing of the backfill waits or runs; live slots go first, so this may take long."""
    pause = Threads().event()
    with output.progress(f"backfill {view.job}", view.total) as done:
        while True:
            left = [one for one in client.backfills(view.job) if one.id == view.id]
            running = client.backfill_running(view)
            if not left and not running:
                done(view.total)
                return
            done(view.total - running - sum(one.waiting for one in left))
            pause.wait(0.2)
