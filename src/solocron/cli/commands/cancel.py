"""`solocron cancel`: stop a run, or a backfill."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_run
from solocron.cli.auditing import audited
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import OK, TAKEN
from solocron.cli.host import program
from solocron.cli.opening import opened
from solocron.model.documents.run import Status

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_author(parser, "stops it")
    add_run(parser)


def execute(args: Namespace) -> int:
    """A run that is over is a conflict, unless it was cancelled: asking twice is not a mistake."""
    with opened(args) as client, audited(client, args, args.run):
        answer = client.cancel(args.run, by=author_of(args), note=args.note)
    if args.json:
        output.dump({"run": args.run, "answer": answer})
    elif answer == "asked":
        output.say(f"{args.run} was asked to stop; a thread stops at its next `run.check()`")
    elif answer == Status.CANCELLED:
        output.say(f"{args.run} is cancelled")
    else:
        output.note(f"{args.run} is over already: {answer}; nothing was changed. See: {program()} show {args.run}")
    return OK if answer in ("asked", Status.CANCELLED) else TAKEN
