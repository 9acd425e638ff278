"""`solocron token new`: make a token for the HTTP service and add its hash to a file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from solocron.cli import output
from solocron.cli.exits import OK

__all__ = ["add_arguments", "execute"]

_ROLES = ("read", "operate", "tick")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", metavar="ACTION", choices=("new",), help="new")
    parser.add_argument("name", metavar="NAME", help="who it is for; the audit names it")
    parser.add_argument("--role", choices=_ROLES, default="read", help="what it may do (default: read)")
    parser.add_argument(
        "--namespace", metavar="NAME", action="append", default=[], help="a namespace that it may see (default: all)"
    )
    parser.add_argument("--token-file", metavar="FILE", required=True, help="made for its owner alone if it is missing")


def execute(args: Namespace) -> int:
    from solocron.service.roles import Role
    from solocron.service.tokens import add_token

    token = add_token(Path(args.token_file), args.name, Role(args.role), args.namespace)
    output.say(token)
    output.note(f"shown only now; {args.token_file} keeps its hash. Take the line of {args.name} out to end it.")
    return OK
