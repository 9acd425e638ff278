"""`solocron remove`: remove a job that no running code declares."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_job
from solocron.cli.auditing import audited
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import OK
from solocron.cli.opening import opened

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_author(parser, "removes it")
    add_job(parser)


def execute(args: Namespace) -> int:
    with opened(args) as client, audited(client, args, args.job):
        client.remove(args.job, by=author_of(args), note=args.note)
    if args.json:
        return output.dump({"job": args.job, "removed": True})
    output.say(f"{args.job} is removed; its runs stay on record")
    return OK
