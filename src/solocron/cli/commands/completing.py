"""`solocron completion`: prints what makes a shell complete the command line."""

from __future__ import annotations

from argparse import Namespace

from solocron.cli import parser
from solocron.cli.completion import script

__all__ = ["completion"]


def completion(args: Namespace) -> int:
    print(script(args.shell, parser.build(with_demo=True)), end="")
    return 0
