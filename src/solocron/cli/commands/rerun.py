"""`solocron rerun`: run a slot again, or every slot that failed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.auditing import audited
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import FAILED, OK
from solocron.cli.moments import earlier, instant
from solocron.cli.opening import opened
from solocron.cli.scopes import held_back
from solocron.errors import InvalidError
from solocron.model.documents.run import GOOD

if TYPE_CHECKING:
    from solocron.client import Client

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name")
    parser.add_argument("slot", metavar="SLOT", nargs="?", help="the slot, as `solocron runs` shows it")
    parser.add_argument(
        "--failed-since", metavar="INSTANT", help="every slot that failed since, or a time ago such as 2h"
    )
    parser.add_argument("--key", metavar="KEY", help="the same key twice is one rerun")
    parser.add_argument(
        "--watch", action="store_true", help="wait for the end with a progress bar; exit 1 if one fails"
    )
    add_author(parser, "asks for it")
    add_listing(parser)


def execute(args: Namespace) -> int:
    if (args.slot is None) == (args.failed_since is None):
        raise InvalidError("rerun: give a SLOT, or --failed-since; nothing was asked for.")
    by = author_of(args)
    with opened(args) as client:
        with audited(client, args, args.job):
            if args.slot is not None:
                runs = [client.rerun(args.job, instant(args.slot, "SLOT"), key=args.key, by=by, note=args.note)]
            else:
                since = earlier(args.failed_since, "--failed-since", client.store.clock())
                runs = client.rerun(args.job, failed_since=since, key=args.key, by=by, note=args.note)
        if runs and (kept := held_back(client.get_job(args.job))):
            output.note(kept)
        bad = _watch(client, args, runs) if args.watch else 0
    if args.json:
        output.dump({"runs": runs})
    else:
        for run in runs:
            output.say(run)
        if not runs:
            output.note(f"no slot of {args.job} has failed since then")
    return FAILED if bad else OK


def _watch(client: Client, args: Namespace, runs: list[str]) -> int:
    """Wait for every run; return how many did not succeed."""
    bad = 0
    with output.progress(f"rerun {args.job}", len(runs)) as done:
        for number, run in enumerate(runs, 1):
            bad += client.wait(run).status not in GOOD
            done(number)
    return bad
