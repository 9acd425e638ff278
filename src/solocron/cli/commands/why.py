"""`solocron why`: say why a slot ran, waits, was skipped or is nowhere."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.exits import OK
from solocron.cli.moments import earlier, utc
from solocron.cli.opening import opened

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    parser.add_argument(
        "at", metavar="AT", nargs="?", help="the slot or an instant after it, or a time ago such as 2h (default: now)"
    )
    add_listing(parser)


def execute(args: Namespace) -> int:
    with opened(args) as client:
        at = None if args.at is None else earlier(args.at, "AT", client.store.clock())
        found = client.why(args.job, at)
    if args.json:
        return output.dump_views(found)
    output.tell(found.verdict)
    if found.facts:
        print()
        rows = [(utc(fact.at) if fact.at else "", fact.what) for fact in found.facts]
        output.table(["WHEN (UTC)", "WHAT"], rows)
    return OK
