"""`solocron nodes`: list the nodes."""

from __future__ import annotations

from argparse import Namespace

from solocron.cli import output
from solocron.cli.arguments import add_listing as add_arguments
from solocron.cli.exits import OK
from solocron.cli.opening import opened
from solocron.cli.rendering import nodes_table

__all__ = ["add_arguments", "execute"]


def execute(args: Namespace) -> int:
    with opened(args) as client:
        found = client.nodes()
        if args.json:
            return output.dump_views(found)
        if not found:
            output.note(f"no nodes in namespace {client.store.namespace!r} of {client.store.url}")
            return OK
        nodes_table(found)
    return OK
