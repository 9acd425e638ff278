"""`solocron serve`: show a namespace, or several, over HTTP, on the loopback interface unless asked otherwise."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_log, add_store, add_target
from solocron.cli.exits import OK
from solocron.cli.serving import add_serving
from solocron.errors import ConfigurationError

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler
    from solocron.service.clients import ServiceClients
    from solocron.service.oidc import OidcVerifier

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_target(parser, purpose=", to know its jobs and its store, and for --tick", optional=True)
    add_store(parser)
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, default=8700, help="(default: 8700)")
    add_serving(parser)
    parser.add_argument(
        "--also", metavar="NAME", action="append", default=[], help="a further namespace of the store, below /ns/NAME"
    )
    parser.add_argument("--tick", action="store_true", help="let the role tick run what is due; needs TARGET")
    parser.add_argument("--oidc-issuer", metavar="URL", help="whose tokens may tick, beside those of the file")
    parser.add_argument("--oidc-audience", metavar="TEXT", help="what they are made for")
    parser.add_argument("--oidc-subject", metavar="TEXT", help="of whom they are: a subject, or a verified email")
    parser.add_argument("--oidc-ca", metavar="FILE", help="certificates of the issuer (default: those of the machine)")
    add_log(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.logs import logged
    from solocron.cli.serving import announce, callers_of, listening_of, make_app
    from solocron.cli.target import prepare
    from solocron.scheduler.hooks import tick_once
    from solocron.service.namespaces import NamespacesApp, paths_of
    from solocron.service.server import make_server, opened_socket, url_of
    from solocron.service.ticking import Ticking

    wanted = listening_of(args, args.host, args.port)
    oidc = _oidc(args)
    if args.tick and args.target is None:
        raise ConfigurationError("--tick runs jobs, so it needs TARGET, where they are declared. Nothing listens.")
    callers = callers_of(args, wanted)
    scheduler = None if args.target is None else _scheduler(args)
    clients = _clients(args, scheduler)
    paths = paths_of([clients.writing().store.namespace, *args.also], "Nothing listens.") if args.also else {}
    others = {name: _further(args, scheduler, name) for name in args.also}
    try:
        with logged(args):
            _say_if_empty(clients)
            ticking = None
            if args.tick and scheduler is not None:
                prepare(scheduler)
                ticking = Ticking(partial(tick_once, scheduler), runs_node=lambda: False)
            app = make_app(args, clients, callers, wanted, ticking=ticking, oidc=oidc, namespaces=paths)
            further = {
                name: make_app(args, one, callers, wanted, namespaces=paths, below=paths[name])
                for name, one in others.items()
            }
            server = make_server(NamespacesApp(app, further, base=wanted.base) if further else app, wanted)
            with opened_socket(wanted) as listener:
                announce(callers, url_of(wanted, listener.getsockname()[1]))
                server.run(sockets=[listener])
    finally:
        for one in (clients, *others.values()):
            one.close()
    return OK


def _scheduler(args: Namespace) -> Scheduler:
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of

    return scheduler_of(args.target, Overrides(store=args.store, namespace=args.namespace))


def _clients(args: Namespace, scheduler: Scheduler | None) -> ServiceClients:
    from solocron.cli.opening import named_store
    from solocron.client import Client
    from solocron.service.clients import ServiceClients

    if scheduler is not None:
        from solocron.scheduler.hooks import service_clients_of

        return service_clients_of(scheduler)
    reading, writing = (Client(named_store(args, make=True)) for _ in range(2))
    return ServiceClients.of(reading, writing)


def _further(args: Namespace, scheduler: Scheduler | None, namespace: str) -> ServiceClients:
    """Return the clients of another namespace of the same store."""
    from solocron.cli.opening import named_store
    from solocron.client import Client
    from solocron.service.clients import ServiceClients

    if scheduler is None:
        named = Namespace(**{**vars(args), "namespace": namespace})
        return ServiceClients.of(*(Client(named_store(named, make=True)) for _ in range(2)))
    from solocron.scheduler.hooks import core_of
    from solocron.stores.url import Secret, make_store

    place = core_of(scheduler).configuration.store
    if not isinstance(place, Secret):
        raise ConfigurationError("--also: the store of this scheduler has no URL to open again. Nothing listens.")
    return ServiceClients.of(*(Client(make_store(place, namespace=namespace)) for _ in range(2)))


def _say_if_empty(clients: ServiceClients) -> None:
    """Say so where there is nothing yet: it may be the wrong place, and nothing is made by looking."""
    from solocron.cli.opening import refuse_empty
    from solocron.errors import EmptyStore, StoreError

    try:
        refuse_empty(clients.reading().store)
    except EmptyStore as error:
        output.note(f"{error}")
    except StoreError as error:
        output.note(f"{error} It is asked again with every request.")


def _oidc(args: Namespace) -> OidcVerifier | None:
    from solocron.service.oidc import Oidc, OidcVerifier

    given = (args.oidc_issuer, args.oidc_audience, args.oidc_subject)
    if not any(given):
        return None
    if not all(given):
        raise ConfigurationError("--oidc-issuer, --oidc-audience and --oidc-subject belong together. Nothing listens.")
    if not args.tick:
        raise ConfigurationError("--oidc-issuer lets callers tick, so it needs --tick. Nothing listens.")
    issuer, audience, who = given
    by_email = "@" in who
    return OidcVerifier(
        Oidc(
            issuer=issuer,
            audience=audience,
            subject=None if by_email else who,
            email=who if by_email else None,
            ca_file=args.oidc_ca,
        )
    )
