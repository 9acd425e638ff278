"""`solocron tick`: run what is due once, for an external trigger such as cron or a Kubernetes CronJob."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_json, add_node
from solocron.cli.exits import FAILED, OK
from solocron.cli.handed_over import HandedOver
from solocron.cli.logs import logged
from solocron.cli.rendering import runs_table
from solocron.model.documents.run import BAD

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_node(parser)
    add_json(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import prepare, scheduler_of

    with logged(args):
        scheduler = scheduler_of(args.target, Overrides.of(args))
        prepare(scheduler)
        handed = HandedOver(scheduler)
        found = scheduler.tick()
    if args.json:
        output.dump_views(found)
    elif found:
        runs_table(found)
    elif not handed.runs:
        output.note("nothing was due")
    handed.tell()
    return FAILED if any(one.status in BAD for one in found) else OK
