"""The author of a change that stays on record, and the author's reason."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser, Namespace

__all__ = ["add_author", "author_of"]


def add_author(parser: ArgumentParser, verb: str) -> None:
    """Add --by and --note; `verb` says in the help what the author does."""
    parser.add_argument("--by", metavar="WHO", help=f"who {verb} (default: the user of this terminal)")
    parser.add_argument("--note", metavar="WHY", help="why; kept on record")


def author_of(args: Namespace) -> str | None:
    """Return `--by`, else the user of this terminal, else None."""
    if args.by:
        return str(args.by)
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return None
