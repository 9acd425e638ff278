"""Parts that `serve` and `run --serve` share: where to listen, who may ask, and the application that they serve."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from solocron import surroundings
from solocron.cli import output
from solocron.errors import ConfigurationError

if TYPE_CHECKING:
    from solocron.service.asgi import AsgiService
    from solocron.service.clients import ServiceClients
    from solocron.service.codes import OneTimeCodes
    from solocron.service.oidc import OidcVerifier
    from solocron.service.server import Listening
    from solocron.service.ticking import Ticking
    from solocron.service.tokens import Tokens

__all__ = ["SERVING_FLAGS", "Callers", "add_serving", "announce", "callers_of", "listening_of", "make_app"]

_NOTHING = "Nothing listens."
SERVING_FLAGS = (
    *("base_path", "token_file", "allowed_host", "behind_proxy", "tls_cert", "tls_key", "read_only", "edit", "open"),
)
"""What `add_serving` adds, as the parsed arguments name it."""


def add_serving(parser: ArgumentParser | _ArgumentGroup) -> None:
    """Add what concerns the service, wherever it listens."""
    parser.add_argument("--base-path", metavar="PATH", default="", help="the path below which a proxy serves it")
    parser.add_argument("--token-file", metavar="FILE", help="who may ask, as `solocron token new` writes it")
    parser.add_argument(
        "--allowed-host", metavar="NAME", action="append", help="a name under which it is reached (default: loopback's)"
    )
    parser.add_argument(
        "--behind-proxy", metavar="ADDRESS", action="append", help="a proxy whose X-Forwarded headers are believed"
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate, to speak TLS itself")
    parser.add_argument("--tls-key", metavar="FILE", help="its key")
    parser.add_argument("--read-only", action="store_true", help="refuse every write, whatever the role")
    parser.add_argument("--edit", action="store_true", help="let the role operate add, change and remove jobs")
    parser.add_argument("--open", action="store_true", help="print a link that logs in once, and open it in a browser")


@dataclass(frozen=True, slots=True)
class Callers:
    """The callers that may ask, and the host names that they may use."""

    tokens: Tokens
    hosts: frozenset[str]
    made: str | None = None
    """A token that was made for this process."""
    codes: OneTimeCodes | None = None


def listening_of(args: Namespace, host: str, port: int) -> Listening:
    """Return where to listen; refuse what would be open by mistake."""
    from solocron.service.server import Listening, check_listening

    wanted = Listening(
        host=host,
        port=port,
        base=args.base_path.rstrip("/"),
        proxies=tuple(args.behind_proxy or ()),
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
    )
    check_listening(wanted, has_tokens=args.token_file is not None)
    if args.open and not wanted.is_loopback:
        raise ConfigurationError(f"--open is for a browser on this machine, not for --host {wanted.host}. {_NOTHING}")
    return wanted


def callers_of(args: Namespace, wanted: Listening) -> Callers:
    """Return the tokens of the file, and on a terminal or with --open a new one that lives as long as the process."""
    from solocron.clock import SystemClock
    from solocron.service.codes import OneTimeCodes
    from solocron.service.guard import LOOPBACK, check_hosts
    from solocron.service.roles import Role
    from solocron.service.tokens import FixedTokens, JoinedTokens, TokenEntry, TokenFile, hash_of, new_token

    names = list(args.allowed_host or ())
    if not names and not wanted.is_loopback:
        raise ConfigurationError(
            f"--host {wanted.host} needs --allowed-host, the name under which it is reached. {_NOTHING}"
        )
    hosts = (check_hosts(names, "--allowed-host", _NOTHING) if names else frozenset()) | (
        LOOPBACK if wanted.is_loopback else frozenset()
    )
    file = None if args.token_file is None else TokenFile(Path(args.token_file))
    if file is not None and not file.entries():
        raise ConfigurationError(
            f"the token file {args.token_file} has no token, so no caller would be let in. {_NOTHING} "
            f"Make one: solocron token new NAME --token-file {args.token_file}"
        )
    if file is not None and not args.open:
        return Callers(file, hosts)
    if not args.open and not sys.stderr.isatty():
        raise ConfigurationError(
            f"without a terminal to show a token on, --token-file is needed. {_NOTHING} "
            "Make one: solocron token new NAME --token-file FILE"
        )
    token = new_token()
    own = FixedTokens(TokenEntry("terminal", Role.OPERATE, hash_of(token)))
    tokens = own if file is None else JoinedTokens(own, file)
    return Callers(tokens, hosts, token, OneTimeCodes(clock=SystemClock().boot) if args.open else None)


def make_app(
    args: Namespace,
    clients: ServiceClients,
    callers: Callers,
    wanted: Listening,
    *,
    ticking: Ticking | None = None,
    oidc: OidcVerifier | None = None,
    node_is_ready: Callable[[], bool] | None = None,
    namespaces: Mapping[str, str] = MappingProxyType({}),
    below: str = "",
) -> AsgiService:
    """Return the application of one namespace; `namespaces` are those that are served together, `below` its path."""
    from solocron.service.asgi import AsgiService
    from solocron.service.handle import Service
    from solocron.service.live import LiveTimes
    from solocron.service.mounting import require_web
    from solocron.service.own_checks import checks_of

    require_web("serving")
    service = Service(
        clients,
        tokens=callers.tokens,
        allowed_hosts=callers.hosts,
        read_only=args.read_only,
        edit=args.edit,
        codes=callers.codes,
        ticking=ticking,
        oidc=oidc,
        node_is_ready=node_is_ready,
        own_checks=lambda: checks_of(listening=wanted, tokens=callers.tokens, hosts=callers.hosts),
        namespaces=namespaces,
    )
    return AsgiService(service, base=f"{wanted.base}{below}", below=below, live=LiveTimes())


def _open(link: str) -> None:
    """Open a link, beside the service: a browser may take its time."""
    import webbrowser
    from threading import Thread

    Thread(target=webbrowser.open, args=(link,), daemon=True).start()


def announce(callers: Callers, url: str) -> None:
    """Print where it listens, and on a terminal the token; with --open a link that works once, in a browser too."""
    output.say(url)
    if callers.codes is not None and callers.made is not None:
        link = f"{url}open?code={callers.codes.make(callers.made)}"
        output.say(link)
        output.note("the second link logs in once, within a minute")
        if surroundings.has_screen():
            _open(link)
    elif callers.made is not None:
        output.note(f"token, shown only now: {callers.made}")
    sys.stdout.flush()
