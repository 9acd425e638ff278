"""`solocron simulate`: put the engine through simulated faults, and check it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli.arguments import add_json, count

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", metavar="N", type=count, default=20, help="how many worlds (default: 20)")
    parser.add_argument("--from", dest="start", metavar="SEED", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seed", metavar="SEED", type=int, help="only this world, as a failure names it")
    parser.add_argument("--nodes", metavar="N", type=count, default=5, help="nodes of each world (default: 5)")
    parser.add_argument(
        "--hours", metavar="H", type=_hours, default=0.5, help="hours under fire at a lease of 15 s (default: 0.5)"
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", help="an option of every world, such as kill=0 or lease=3"
    )
    parser.add_argument("--jobs", metavar="N", type=count, default=1, help="processes to use (default: 1)")
    parser.add_argument(
        "--no-shrink",
        dest="shrink",
        action="store_false",
        help="show a failure as it is, without looking for a smaller one",
    )
    parser.add_argument("--lines", action="store_true", help="print one line of JSON a world, as it ends")
    add_json(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.simulation import simulate

    return simulate(args)


def _hours(value: str) -> float:
    hours = float(value)
    if not 0 < hours <= 10_000:
        raise ValueError(value)
    return hours


_hours.__name__ = "number of hours above 0"  # argparse puts the name of the type into its message
