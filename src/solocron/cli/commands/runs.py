"""`solocron runs`: list the runs, and the slots that did not run, each with its reason."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from difflib import get_close_matches

from solocron.cli import output
from solocron.cli.arguments import add_listing, count, names
from solocron.cli.exits import OK
from solocron.cli.opening import opened
from solocron.cli.rendering import runs_table
from solocron.errors import InvalidError
from solocron.model.documents.run import Status

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", nargs="?", help="only the runs of this job")
    parser.add_argument(
        "--limit", metavar="N", type=count, default=50, help="at most so many, newest first (default: 50)"
    )
    parser.add_argument("--status", metavar="A,B", type=names, action="extend", help="only these, such as failed,lost")
    add_listing(parser)


def execute(args: Namespace) -> int:
    wanted = _statuses(args.status or ())
    with opened(args) as client:
        found = client.runs(args.job, status=wanted, limit=args.limit)
        if args.json:
            return output.dump_views(found)
        if not found:
            output.note("no runs on record" + (f" of {args.job}" if args.job else ""))
            return OK
        runs_table(found)
    return OK


def _statuses(given: Iterable[str]) -> list[str]:
    known = [str(status) for status in Status]
    for one in given:
        if one not in known:
            close = get_close_matches(one, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}."
            raise InvalidError(f"--status: {one!r:.40} is not known; {hint}")
    return list(given)
