"""`solocron audit`: list who asked for what, newest first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing, count
from solocron.cli.exits import OK
from solocron.cli.moments import utc
from solocron.cli.opening import opened

if TYPE_CHECKING:
    from solocron.views import AuditView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--who", metavar="WHO", help="only what this person or program asked for")
    parser.add_argument("--subject", metavar="NAME", help="only what is about this job, run or scope")
    parser.add_argument("--limit", metavar="N", type=count, default=50, help="at most so many (default: 50)")
    add_listing(parser)


def execute(args: Namespace) -> int:
    with opened(args) as client:
        page = client.audit(who=args.who, subject=args.subject, limit=args.limit)
        if args.json:
            return output.dump_views(page.entries)
        if page.looked_back_to is not None:
            output.note(f"looked back to {utc(page.looked_back_to)} UTC; there are older entries")
        if not page.entries:
            such = "such entry" if args.who or args.subject else "entry yet"
            output.note(f"there is no {such} in the audit of namespace {client.store.namespace!r}")
            return OK
        output.table(["AT (UTC)", "WHO", "VIA", "ACT", "SUBJECT", "RESULT", "NOTE"], list(map(_row, page.entries)))
    return OK


def _row(entry: AuditView) -> Sequence[str]:
    return utc(entry.at), entry.who or "", entry.via, entry.act, entry.subject, entry.result, entry.note or ""
