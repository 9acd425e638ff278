"""`solocron metrics`: serve the metrics of the fleet to Prometheus, from the store alone; it runs no job."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_store
from solocron.cli.exits import OK
from solocron.errors import ConfigurationError

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, default=9464, help="(default: 9464)")
    parser.add_argument(
        "--most", metavar="N", type=int, default=1_000, help="jobs with series of their own at most (default: 1000)"
    )
    parser.add_argument("--once", action="store_true", help="print them once instead, and end")
    add_store(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.opening import named_store
    from solocron.client import Client
    from solocron.clock import SystemClock
    from solocron.process import stop_signals, wait_for
    from solocron.telemetry.families import exposition
    from solocron.telemetry.fleet import FleetMetrics
    from solocron.telemetry.metrics_server import MetricsServer

    if args.most < 1:
        raise ConfigurationError(f"--most {args.most}: give a whole number from 1 up. Nothing listens.")
    if not 0 <= args.port <= 65_535:
        raise ConfigurationError(f"--port {args.port} is not a port: 0 to 65535. Nothing listens.")
    client = Client(named_store(args))

    def opened() -> Client:
        client.store.open(read_only=True)
        return client

    metrics = FleetMetrics(opened, lambda: client.store.namespace, clock=SystemClock().boot, most=args.most)
    try:
        if args.once:
            opened()  # a store that is away is an error here, and not a metric
            print(exposition(metrics.families()), end="")
            return OK
        with stop_signals() as signalled, MetricsServer(args.host, args.port, metrics.families) as server:
            output.note(f"metrics of namespace {client.store.namespace!r} at {server.url}")
            wait_for(signalled)
    finally:
        client.store.close()
    return OK
