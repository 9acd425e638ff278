"""Make a service from the options of `scheduler.asgi()` and `scheduler.wsgi()`, each checked once."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import get_args

from solocron.errors import ConfigurationError, MissingExtra
from solocron.service.call import Values
from solocron.service.clients import ServiceClients
from solocron.service.guard import LOOPBACK, check_hosts
from solocron.service.handle import Service
from solocron.service.host_auth import HostAuthentication
from solocron.service.identity import HostAuth
from solocron.service.oidc import Oidc, OidcVerifier
from solocron.service.own_checks import checks_of
from solocron.service.ticking import Ticking, TickOnce
from solocron.service.tokens import TokenFile

__all__ = ["make_service", "require_web"]

_NOTHING = "Nothing is served."


def make_service(
    clients: ServiceClients,
    *,
    what: str,
    auth: HostAuth | None,
    tokens: str | os.PathLike[str] | None,
    allowed_hosts: Collection[str] | None,
    read_only: bool,
    edit: bool,
    live: bool = True,
    tick: TickOnce | None,
    oidc: Oidc | None,
    values: Values,
    runs_node: Callable[[], bool],
    node_is_ready: Callable[[], bool],
    may_await: bool = True,
) -> tuple[Service, HostAuthentication | None]:
    """Return the service, and the host application's way to know callers; `what` names the call in errors."""
    require_web(what)
    if auth is not None and not callable(auth):
        raise ConfigurationError(f"{what}: auth= must be a function of headers and cookies. {_NOTHING}")
    if auth is not None and not may_await and inspect.iscoroutinefunction(auth):
        raise ConfigurationError(f"{what}: auth= is a coroutine, which WSGI cannot await; give a function. {_NOTHING}")
    if values not in get_args(Values):
        raise ConfigurationError(
            f"{what}: values={values!r:.40} is not one of {', '.join(get_args(Values))}. {_NOTHING}"
        )
    if isinstance(allowed_hosts, str):
        raise ConfigurationError(f"{what}: allowed_hosts= is a list of names, not a string. {_NOTHING}")
    if oidc is not None and tick is None:
        raise ConfigurationError(f"{what}: oidc= lets callers tick, so it needs tick=True. {_NOTHING}")
    file = None if tokens is None else TokenFile(Path(tokens))
    if file is not None:
        file.entries()  # a file that cannot be trusted is told now, and not by a 401
    hosts = LOOPBACK if allowed_hosts is None else check_hosts(allowed_hosts, what, _NOTHING)
    service = Service(
        clients,
        tokens=file,
        allowed_hosts=hosts,
        read_only=read_only,
        edit=edit,
        live=live,
        values=values,
        ticking=None if tick is None else Ticking(tick, runs_node=runs_node),
        oidc=None if oidc is None else OidcVerifier(oidc),
        node_is_ready=node_is_ready,
        own_checks=lambda: checks_of(listening=None, tokens=file, has_auth=auth is not None, hosts=hosts),
    )
    return service, None if auth is None else HostAuthentication(auth)


def require_web(what: str) -> None:
    """Raise one sentence where the packages of the extra are missing."""
    try:
        import jinja2  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra(f"{what} needs the package 'jinja2': pip install \"solocron[web]\". {_NOTHING}") from None
