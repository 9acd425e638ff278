"""`solocron timeline`: draw who ran what, what was taken over or refused, and what comes next."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from datetime import timedelta

from solocron.cli import output
from solocron.cli.arguments import add_listing, count
from solocron.cli.exits import OK
from solocron.cli.moments import earlier, later, span, utc
from solocron.cli.opening import opened
from solocron.clock import from_us

__all__ = ["add_arguments", "execute"]

_AHEAD = 5
"""The span goes on past the present by this part of itself, for the slots to come."""
_PIPED = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="AT", default="1h", help="the beginning: an instant, or a time ago such as 6h (default: 1h)"
    )
    parser.add_argument(
        "--until", metavar="AT", help="the end: an instant, or a time from now (default: a little ahead)"
    )
    parser.add_argument("--by", choices=("node", "job"), default="node", help="a lane for each (default: node)")
    parser.add_argument(
        "--limit", metavar="N", type=count, default=2_000, help="list at most so many attempts (default: 2000)"
    )
    add_listing(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.heatmap import show
    from solocron.cli.lanes import draw_lanes, lane_marks

    with opened(args) as client:
        now = client.store.clock()
        start = earlier(args.since, "--since", now)
        ahead = max((from_us(now) - start) / _AHEAD, timedelta())
        end = from_us(now) + ahead if args.until is None else later(args.until, "--until", now)
        found = client.timeline(start, end, lanes=args.by, limit=args.limit)
    if args.json:
        return output.dump_views(found)
    if not found.lanes and not found.to_come:
        output.note(f"nothing happened from {utc(start)} to {utc(end)} UTC")
        return OK
    show(draw_lanes(found, width=output.columns() or _PIPED, marks=lane_marks(sys.stdout.encoding)))
    if found.dense:
        output.note(f"only the newest {args.limit} attempts are drawn one by one; older ones are summed up")
    if found.takeovers:
        print()
        output.table(
            ["TAKEN OVER (UTC)", "RUN", "FROM", " FENCE", "BY", " FENCE", " AFTER"],
            [
                (
                    utc(one.taken_at), one.run, one.lost_by or "-", str(one.lost_fence), one.taken_by or "-",
                    str(one.taken_fence), span(max(one.taken_at - one.lost_at, timedelta())),
                )
                for one in found.takeovers
            ],
        )  # fmt: skip
    refused = [(mark, lane.name) for lane in found.lanes for mark in lane.marks if mark.kind == "refused"]
    if refused:
        print()
        output.table(
            ["REFUSED (UTC)", "RUN", "OF", " FENCE", "IT WOULD HAVE"],
            [
                (utc(mark.at), mark.run or "-", name, str(mark.fence), mark.outcome or "-")
                for mark, name in sorted(refused, key=lambda one: one[0].at)
            ],
        )
    return OK
