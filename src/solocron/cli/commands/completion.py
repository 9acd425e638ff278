"""`solocron completion`: print the completion file of a shell."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli.completion import SHELLS, script
from solocron.cli.exits import OK

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")


def execute(args: Namespace) -> int:
    from solocron.cli import parser

    print(script(args.shell, parser.build()), end="")
    return OK
