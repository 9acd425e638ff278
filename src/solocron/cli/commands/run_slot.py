"""`solocron run-slot`: run what is due of one job, or one attempt that was handed over. What a Pod does.

SIGTERM drains: the body may end within the grace, and is stopped and recorded as cancelled after it. A second signal
ends the process at once.
"""

from __future__ import annotations

import threading
from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_json, add_node
from solocron.cli.exits import FAILED, INTERRUPTED, OK
from solocron.cli.handed_over import HandedOver
from solocron.cli.logs import logged
from solocron.cli.rendering import runs_table
from solocron.duration import parse_duration
from solocron.errors import InvalidError
from solocron.model.documents.run import BAD

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_node(parser)
    parser.add_argument("job", metavar="JOB", nargs="?", help="run what is due of it, and its retries")
    parser.add_argument("--run", metavar="RUN", help="or pick up this run, which was handed over")
    parser.add_argument("--attempt", metavar="N", type=int, help="with --run: this attempt of it")
    parser.add_argument(
        "--grace", metavar="TIME", help="for the body to end at SIGTERM (default: the scheduler's, 30s)"
    )
    add_json(parser)


def execute(args: Namespace) -> int:
    from solocron.carriers.own_pod import OwnPod
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import prepare, scheduler_of
    from solocron.process import stop_signals
    from solocron.scheduler.slot import run_due_slots, run_message

    if (args.job is None) == (args.run is None) or (args.run is None) != (args.attempt is None):
        raise InvalidError("give JOB, or --run RUN with --attempt N. Nothing was run.")
    grace = None if args.grace is None else parse_duration(args.grace, what="--grace").total_seconds()
    with logged(args):
        scheduler = scheduler_of(args.target, Overrides.of(args))
        prepare(scheduler)
        stop = scheduler.stop if args.job is None else OwnPod.instead_of_jobs(scheduler).stop
        handed = HandedOver(scheduler)
        drain = threading.Thread(target=stop, args=(grace,), name="solocron-drain")
        with stop_signals(drain.start) as signalled:
            if args.job is None:
                found = run_message(scheduler, args.run, args.attempt)
                views = [] if found is None else [found]
            else:
                views = run_due_slots(scheduler, args.job)
    if args.json:
        output.dump_views(views)
    elif views:
        runs_table(views)
    elif not handed.runs:
        output.note("nothing was due" if args.run is None else "nothing was picked up: its attempt is not waiting")
    handed.tell()
    if signalled.is_set():
        return INTERRUPTED
    return FAILED if any(one.status in BAD for one in views) else OK
