"""`solocron remove`: remove a job that no running code declares."""

from __future__ import annotations

from argparse import Namespace

from solocron.cli import output
from solocron.cli.arguments import add_job as add_arguments
from solocron.cli.exits import OK
from solocron.cli.opening import opened

__all__ = ["add_arguments", "execute"]


def execute(args: Namespace) -> int:
    with opened(args) as client:
        client.remove(args.job)
    if args.json:
        return output.dump({"job": args.job, "removed": True})
    output.say(f"{args.job} is removed; its runs stay on record")
    return OK
