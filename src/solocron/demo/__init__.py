"""`solocron demo`: five replicas share scheduled work; one is killed, one is frozen, and each slot still runs once.

The replicas are real processes on a temporary SQLite file, or on a store of yours. The verdict comes from a ledger
that the jobs themselves write, against the slots that the schedules and the store's clock say were due.
"""

from __future__ import annotations

import argparse

__all__ = ["add_arguments", "main"]

SECONDS = 30.0
REPLICAS = 5
MOST_REPLICAS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=SECONDS,
        metavar="S",
        help=f"time under load, after which it waits for what waits ({SECONDS:g})",
    )
    parser.add_argument(
        "--replicas", type=_replicas, default=REPLICAS, metavar="N", help=f"how many processes ({REPLICAS})"
    )
    parser.add_argument(
        "--store", metavar="URL", help="use this store, in a namespace of its own, instead of a temporary SQLite file"
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="show it in the dashboard too, until Ctrl-C; needs solocron[web]",
    )
    parser.add_argument("--json", action="store_true", help="print nothing but the verdict, as one JSON object")


def main(args: argparse.Namespace) -> int:
    """Run the demo; return 0 if every slot ran once, 1 if any ran twice or was lost."""
    from solocron.demo.stage import perform

    return perform(seconds=args.seconds, replicas=args.replicas, store=args.store, as_json=args.json, serve=args.serve)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 86400")
    return value


def _replicas(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= MOST_REPLICAS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number from 2 to {MOST_REPLICAS}: one is killed, and another has to take over"
        )
    return int(text)
