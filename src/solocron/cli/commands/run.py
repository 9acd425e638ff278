"""`solocron run`: run a node until it is told to stop."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from solocron.cli.arguments import add_node
from solocron.cli.exits import OK
from solocron.cli.logs import logged
from solocron.cli.serving import SERVING_FLAGS, add_serving
from solocron.duration import parse_duration
from solocron.errors import ConfigurationError

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["add_arguments", "execute"]

_HERE = "127.0.0.1:8700"


def add_arguments(parser: ArgumentParser) -> None:
    add_node(parser)
    parser.add_argument("--grace", metavar="TIME", help="for runs to end at SIGTERM (default: the scheduler's, 30s)")
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        nargs="?",
        const=_HERE,
        help=f"show the namespace over HTTP as well, as `serve` does (default: {_HERE})",
    )
    add_serving(parser.add_argument_group("with --serve"))


def execute(args: Namespace) -> int:
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import prepare, scheduler_of
    from solocron.process import run_until_signalled

    grace = None if args.grace is None else parse_duration(args.grace, what="--grace")
    with logged(args):
        scheduler = scheduler_of(args.target, Overrides.of(args))
        prepare(scheduler)
        with _served(args, scheduler):
            run_until_signalled(scheduler, grace)
    return OK


@contextmanager
def _served(args: Namespace, scheduler: Scheduler) -> Iterator[None]:
    """Serve while the node runs and drains, if it was asked for."""
    if args.serve is None:
        given = next((flag for flag in SERVING_FLAGS if getattr(args, flag)), None)
        if given is not None:
            raise ConfigurationError(f"--{given.replace('_', '-')} needs --serve. Nothing was started.")
        yield
        return
    from solocron.cli.serving import announce, callers_of, listening_of, make_app
    from solocron.scheduler.hooks import node_is_ready, service_clients_of
    from solocron.service.server import opened_socket, serving, url_of

    host, _, port = args.serve.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise ConfigurationError(f"--serve {args.serve!r:.80} is not HOST:PORT, such as {_HERE}. Nothing was started.")
    wanted = listening_of(args, host.strip("[]"), int(port))
    callers, clients = callers_of(args, wanted), service_clients_of(scheduler)
    app = make_app(args, clients, callers, wanted, node_is_ready=partial(node_is_ready, scheduler))
    try:
        with opened_socket(wanted) as listener, serving(app, wanted, listener):
            announce(callers, url_of(wanted, listener.getsockname()[1]))
            yield
    finally:
        clients.close()
