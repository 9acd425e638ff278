"""`solocron completion`: print the completion file of a shell, or the names that such a file asks for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from solocron.cli import output
from solocron.cli.arguments import add_store
from solocron.cli.completion import SHELLS, script
from solocron.cli.completion.candidates import KINDS, candidates
from solocron.cli.exits import OK
from solocron.errors import InvalidError

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", nargs="?", choices=SHELLS, help="bash, zsh or fish")
    parser.add_argument("--values", choices=KINDS, help="for the files: names that the store has; none if it is away")
    parser.add_argument("--prefix", metavar="TEXT", default="", help="only those that begin so")
    add_store(parser)


def execute(args: Namespace) -> int:
    from solocron.cli import parser

    if (args.shell is None) == (args.values is None):
        raise InvalidError(f"give either a shell ({', '.join(SHELLS)}) or --values; nothing was printed.")
    if args.values is None:
        print(script(args.shell, parser.build()), end="")
        return OK
    for name in candidates(args, args.values, args.prefix):
        output.say(name)
    return OK
