"""`solocron namespaces`: list the namespaces of the store, with the number of jobs and live nodes of each."""

from __future__ import annotations

from argparse import Namespace

from solocron.cli import output
from solocron.cli.arguments import add_listing as add_arguments
from solocron.cli.exits import OK
from solocron.cli.opening import each_namespace

__all__ = ["add_arguments", "execute"]


def execute(args: Namespace) -> int:
    found = []
    for client in each_namespace(args):
        live = [node for node in client.nodes() if node.state == "live" and node.pools]
        found.append({"namespace": client.store.namespace, "jobs": len(client.jobs()), "nodes": len(live)})
    if args.json:
        return output.dump(found)
    if not found:
        output.note("no namespace holds anything yet")
        return OK
    output.table(["NAMESPACE", " JOBS", " NODES"], [[str(value) for value in one.values()] for one in found])
    return OK
