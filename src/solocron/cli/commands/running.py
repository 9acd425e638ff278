"""Runs things: a node until it is told to stop, one pass for an external trigger, the demo."""

from __future__ import annotations

from argparse import Namespace

from solocron.cli import output
from solocron.cli.exits import FAILED, OK
from solocron.cli.logs import logging_to_stderr
from solocron.duration import parse_duration
from solocron.model.documents.run import Status

__all__ = ["demo", "run", "tick"]

_BAD = (Status.FAILED, Status.TIMED_OUT, Status.LOST)


def run(args: Namespace) -> int:
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of
    from solocron.process import run_until_signalled

    grace = parse_duration(args.grace, what="--grace")
    with logging_to_stderr(args.log_format, args.log_level):
        run_until_signalled(scheduler_of(args.target, Overrides.of(args)), grace)
    return OK


def tick(args: Namespace) -> int:
    from solocron.cli.commands.looking import runs_table
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of
    from solocron.views import to_json

    with logging_to_stderr(args.log_format, args.log_level):
        found = scheduler_of(args.target, Overrides.of(args)).tick()
    if args.json:
        output.dump(to_json(found))
    elif found:
        runs_table(found)
    else:
        output.note("nothing was due")
    return FAILED if any(one.status in _BAD for one in found) else OK


def demo(args: Namespace) -> int:
    from solocron.demo import main

    return int(main(args))
