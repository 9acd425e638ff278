"""The author of a change that stays on record."""

from __future__ import annotations

import getpass
from argparse import Namespace

__all__ = ["author_of"]


def author_of(args: Namespace) -> str | None:
    """Return `--by`, else the user of this terminal, else None."""
    if args.by:
        return str(args.by)
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return None
