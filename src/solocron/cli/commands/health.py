"""`solocron health`: are the nodes of this machine alive, for probes; the store is not asked."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_json, add_namespace
from solocron.cli.exits import FAILED, OK
from solocron.cli.moments import span
from solocron.errors import InvalidError, NotFoundError

if TYPE_CHECKING:
    from solocron.views.health import HealthView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--node", metavar="NAME", help="only this node (default: every node of this machine)")
    parser.add_argument("--ready", action="store_true", help="also ask whether it holds a session and would claim")
    add_namespace(parser, "only nodes of this namespace (default: of every one)")
    add_json(parser)


def execute(args: Namespace) -> int:
    from solocron.telemetry.health_file import health_folder, read_health
    from solocron.views.health import GONE

    folder = health_folder()
    if folder is None:
        raise InvalidError("SOLOCRON_HEALTH_DIR=off: nodes write no health here, so there is nothing to look at.")
    found = read_health(folder)
    if args.namespace is not None:
        found = [view for view in found if view.namespace == args.namespace]
    if args.node is not None:
        found = [view for view in found if view.node == args.node]
    else:
        # A process that was killed leaves a file behind. Beside live nodes that is normal; alone it is reported.
        found = [view for view in found if GONE not in view.why] or found
    if not found:
        what = "no node" if args.node is None else f"no node {args.node!r:.80}"
        if args.namespace is not None:
            what += f" of namespace {args.namespace!r:.80}"
        raise NotFoundError(
            f"{what} has written its health to {folder}. Does one run on this machine, as this user, and with the same "
            "SOLOCRON_HEALTH_DIR?"
        )
    well = all(view.ready if args.ready else view.alive for view in found)
    if args.json:
        output.dump_views(found)
    else:
        headers = ["NODE", "ALIVE", "READY", " LEASE LEFT", " LOOP LAG", " WRITTEN", "WHY"]
        output.table(headers, [_row(view) for view in found])
    return OK if well else FAILED


def _row(view: HealthView) -> Sequence[str]:
    left = None if view.trusted_for_s is None else max(view.trusted_for_s - view.age_s, 0.0)
    return (
        view.node,
        "yes" if view.alive else "NO",
        "yes" if view.ready else "NO",
        "-" if left is None else span(round(left, 1)),
        "-" if view.event_loop_lag_s is None else span(round(view.event_loop_lag_s, 1)),
        f"{span(round(max(view.age_s, 0.0), 1))} ago",
        "; ".join(view.why),
    )
