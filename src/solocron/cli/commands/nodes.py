"""`solocron nodes`: list the nodes, with `--all` also those that have ended, and why."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.exits import OK
from solocron.cli.opening import opened
from solocron.cli.rendering import nodes_table

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="also those that have ended, and why, as long as records are kept"
    )
    add_listing(parser)


def execute(args: Namespace) -> int:
    with opened(args) as client:
        found = client.nodes(ended=args.all)
        if args.json:
            return output.dump_views(found)
        if not found:
            output.note(f"no nodes in namespace {client.store.namespace!r} of {client.store.url}")
            return OK
        nodes_table(found, ended=args.all)
    return OK
