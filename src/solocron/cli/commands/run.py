"""`solocron run`: run a node until it is told to stop."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli.arguments import add_node
from solocron.cli.exits import OK
from solocron.cli.logs import logging_to_stderr
from solocron.duration import parse_duration

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_node(parser)
    parser.add_argument("--grace", metavar="TIME", help="for runs to end at SIGTERM (default: the scheduler's, 30s)")


def execute(args: Namespace) -> int:
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of
    from solocron.process import run_until_signalled

    grace = None if args.grace is None else parse_duration(args.grace, what="--grace")
    with logging_to_stderr(args.log_format, args.log_level):
        run_until_signalled(scheduler_of(args.target, Overrides.of(args)), grace)
    return OK
