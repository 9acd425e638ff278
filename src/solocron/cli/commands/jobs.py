"""`solocron jobs`: list the jobs."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import ListOf, add_listing, add_watch, chosen, count, listed, names
from solocron.cli.exits import OK
from solocron.cli.moments import local, utc
from solocron.cli.opening import opened, same_store
from solocron.cli.rendering import job_state
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.client.job_listing import WantedJobs
    from solocron.views import JobView

__all__ = ["STATES", "add_arguments", "execute"]

STATES = (
    *("on", "paused", "disabled", "running", "waiting", "failing", "late", "orphaned"),
    *("stuck", "not_well", "set_aside", "never_ran"),
)
"""Those of `JobState`, which the parser cannot import."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--match", metavar="PATTERN", help="only names that fit it, such as 'invoice:*'")
    parser.add_argument("--pool", metavar="A,B", type=names, action="extend", help="only those of these pools")
    parser.add_argument(
        "--state", metavar="A,B", type=ListOf(STATES), action="extend", help="only these, such as paused,failing"
    )
    parser.add_argument("--tag", metavar="A,B", type=names, action="extend", help="only those with all of these tags")
    parser.add_argument("--limit", metavar="N", type=count, help="at most so many, by name (default: all)")
    parser.add_argument("--after", metavar="JOB", default="", help="only names that follow this one")
    add_watch(parser)
    add_listing(parser)


def execute(args: Namespace) -> int:
    from solocron.client.job_listing import WantedJobs
    from solocron.client.patterns import why_unmatchable

    if args.match == "":
        raise InvalidError("--match: an empty pattern fits no name; write it like 'invoice:*'. Nothing was read.")
    why = why_unmatchable(args.match) if args.match is not None else None
    if why is not None:
        raise InvalidError(f"--match: no name can match {args.match!r:.60}: {why}. Nothing was read.")
    if args.watch:
        from solocron.cli.watching import refuse_without_terminal

        if args.json:
            raise InvalidError("--watch draws a table, so --json does not go with it; nothing was read.")
        refuse_without_terminal()
    states = chosen("--state", args.state, STATES)
    wanted = WantedJobs(
        match=args.match, pools=listed("--pool", args.pool), states=states, tags=listed("--tag", args.tag)
    )
    with opened(args) as client:
        if args.watch:
            from solocron.cli.watching import watch

            watch(lambda: _draw(client, args, wanted))
        page = client.job_page(wanted, limit=args.limit, after=args.after)
        if args.json:
            output.dump_views(page.jobs)
        elif page.jobs:
            _table(page.jobs)
        else:
            output.note(_nothing(args, client))
        if page.next is not None:
            output.note(f"next: {_following(args, page.next)}")
    return OK


def _draw(client: Client, args: Namespace, wanted: WantedJobs) -> None:
    from solocron.clock import from_us

    output.say(f"{utc(from_us(client.store.clock()))} UTC by the store's clock")
    # A screen shows no more, and reading every job each time would keep a store of very many of them busy.
    page = client.job_page(wanted, limit=args.limit or get_terminal_size().lines, after=args.after)
    _table(page.jobs)
    if page.next is not None:
        output.say("... and more jobs")


def _nothing(args: Namespace, client: Client) -> str:
    filtered = args.match or args.pool or args.state or args.tag or args.after
    return f"no {'such job' if filtered else 'jobs'} in namespace {client.store.namespace!r} of {client.store.url}"


def _following(args: Namespace, after: str) -> str:
    """Return the command that lists what follows."""
    flags = {
        "--match": args.match,
        "--pool": ",".join(args.pool or ()),
        "--state": ",".join(args.state or ()),
        "--tag": ",".join(args.tag or ()),
        "--limit": str(args.limit),
        "--after": after,
    }
    words = [word for flag, value in flags.items() if value for word in (flag, value)]
    return shlex.join(["solocron", "jobs", *same_store(args), *words, *(["--json"] if args.json else [])])


def _table(found: Sequence[JobView]) -> None:
    owners, tags = any(job.owner for job in found), any(job.tags for job in found)
    heads = ["JOB", "STATE", "LAST", "NEXT", "SCHEDULE", "NOTE", *(["OWNER"] * owners), *(["TAGS"] * tags)]
    output.table(heads, [_row(job, owners=owners, tags=tags) for job in found])


def _row(job: JobView, *, owners: bool, tags: bool) -> Sequence[str]:
    state, note = job_state(job)
    following = local(job.next) if job.next is not None else "-"
    marks = [*([job.owner or "-"] * owners), *([", ".join(job.tags) or "-"] * tags)]
    return job.name, state, job.last_status or "-", following, job.schedule, note, *marks
