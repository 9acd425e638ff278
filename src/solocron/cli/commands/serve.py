"""`solocron serve`: show the namespace over HTTP, on the loopback interface unless asked otherwise."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_log, add_store
from solocron.cli.exits import OK
from solocron.errors import ConfigurationError

if TYPE_CHECKING:
    from solocron.service.tokens import Tokens

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    add_store(parser)
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, default=8700, help="(default: 8700)")
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
    add_log(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.logs import logging_to_stderr
    from solocron.cli.opening import opened
    from solocron.service.asgi import AsgiService
    from solocron.service.guard import LOOPBACK
    from solocron.service.handle import Service
    from solocron.service.live import LiveTimes
    from solocron.service.server import Listening, check_listening, make_server, opened_socket

    wanted = Listening(
        host=args.host,
        port=args.port,
        base=args.base_path.rstrip("/"),
        proxies=tuple(args.behind_proxy or ()),
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
    )
    check_listening(wanted, has_tokens=args.token_file is not None)
    tokens, made = _tokens(args)
    hosts = {name.lower() for name in args.allowed_host or ()} | (LOOPBACK if wanted.is_loopback else set())
    if not hosts:
        raise ConfigurationError(
            f"--host {wanted.host} needs --allowed-host, the name under which it is reached. Nothing listens."
        )
    with opened(args) as client, logging_to_stderr(args.log_format, args.log_level):
        app = AsgiService(
            Service(client, tokens=tokens, allowed_hosts=hosts, read_only=args.read_only),
            base=wanted.base,
            live=LiveTimes(),
        )
        server = make_server(app, wanted)
        with opened_socket(wanted) as listener:
            scheme = "https" if wanted.has_tls else "http"
            shown = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
            output.say(f"{scheme}://{shown}:{listener.getsockname()[1]}{wanted.base}/")
            if made is not None:
                output.note(f"token, shown only now: {made}")
            sys.stdout.flush()
            server.run(sockets=[listener])
    return OK


def _tokens(args: Namespace) -> tuple[Tokens, str | None]:
    """Return the tokens of the file, or on a terminal a new one that lives as long as the process."""
    from solocron.service.roles import Role
    from solocron.service.tokens import FixedTokens, TokenEntry, TokenFile, hash_of, new_token

    if args.token_file is not None:
        file = TokenFile(Path(args.token_file))
        if not file.entries():
            raise ConfigurationError(
                f"the token file {args.token_file} has no token, so no caller would be let in. Nothing listens. "
                f"Make one: solocron token new NAME --token-file {args.token_file}"
            )
        return file, None
    if not sys.stderr.isatty():
        raise ConfigurationError(
            "without a terminal to show a token on, --token-file is needed. Nothing listens. "
            "Make one: solocron token new NAME --token-file FILE"
        )
    token = new_token()
    return FixedTokens(TokenEntry("terminal", Role.OPERATE, hash_of(token))), token
