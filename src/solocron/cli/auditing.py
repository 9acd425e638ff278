"""Put what a command is about to change on record, before it changes it."""

from __future__ import annotations

from argparse import Namespace
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from solocron.cli.author import author_of

if TYPE_CHECKING:
    from solocron.client import Client

__all__ = ["audited"]


def audited(client: Client, args: Namespace, subject: str) -> AbstractContextManager[object]:
    """Audit the command in these arguments, which has --by and --note."""
    from solocron.model.documents.audit import Act

    act = Act(act=args.command, subject=subject, via="cli", who=author_of(args), note=args.note)
    return client.audited(act)
