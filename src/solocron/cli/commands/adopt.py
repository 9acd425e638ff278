"""`solocron adopt`: after a rollback, let live nodes write their definition over a stored one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.auditing import audited
from solocron.cli.author import add_author
from solocron.cli.exits import OK
from solocron.cli.opening import opened
from solocron.errors import InvalidError

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", nargs="?", help="the job's name")
    parser.add_argument("--all", action="store_true", help="every job that is of a higher revision than the live nodes")
    add_author(parser, "lets it give way")
    add_listing(parser)


def execute(args: Namespace) -> int:
    if (args.job is None) is not args.all:
        raise InvalidError("adopt wants a JOB or --all, one of them; nothing was changed.")
    with opened(args) as client:
        with audited(client, args, "--all" if args.all else args.job):
            names = client.adopt_all() if args.all else [args.job]
            if not args.all:
                client.adopt(args.job)
        waiting = [name for name in names if client.get_job(name).orphaned]
    if args.json:
        return output.dump({"jobs": names})
    for name in names:
        when = "with the next node that declares it" if name in waiting else "within seconds"
        output.say(f"{name} gives way: what the nodes declare is written {when}")
    if not names:
        output.note("no stored definition is of a higher revision than the live nodes; nothing was changed")
    return OK
