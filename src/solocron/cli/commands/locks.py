"""`solocron locks`: list the locks of a namespace, or release one by force, with a reason that stays on record."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.auditing import audited_act
from solocron.cli.author import author_of
from solocron.cli.exits import OK
from solocron.cli.moments import utc
from solocron.cli.opening import opened
from solocron.errors import InvalidError
from solocron.runtime import Threads

if TYPE_CHECKING:
    from solocron.effects.locks.listing import LockView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--release", metavar="NAME", help="take this lock from its holder")
    parser.add_argument("--reason", metavar="WHY", help="why it is released by force; stays on record")
    parser.add_argument("--by", metavar="WHO", help="who releases it (default: the user of this terminal)")
    add_listing(parser)


def execute(args: Namespace) -> int:
    from solocron.effects.locks.listing import force_release, list_locks
    from solocron.model.change import Kind

    if args.release is None and (args.reason is not None or args.by is not None):
        raise InvalidError("--reason and --by belong to --release NAME; nothing was changed.")
    with opened(args) as client:
        if args.release is not None:
            reason, by = args.reason or "", author_of(args)
            lock = (Kind.LOCK, args.release)
            with audited_act(client, "release", args.release, by=by, note=reason or None, named=lock):
                view = force_release(client.store, Threads(), args.release, reason=reason, by=by)
            if args.json:
                return output.dump_views(view)
            hit = view.forced[-1]
            output.say(f"{view.name} was taken from {hit['owner']}; its fence is {view.fence} now")
            return OK
        found = list_locks(client.store)
        if args.json:
            return output.dump_views(found)
        if not found:
            output.note(f"no locks in namespace {client.store.namespace!r} of {client.store.url}")
            return OK
        output.table(
            ["LOCK", "STATE", "OWNER", "SINCE (UTC)", "UNTIL (UTC)", " FENCE", " WAITING", "LAST FORCED"],
            [_row(lock) for lock in found],
        )
    return OK


def _row(lock: LockView) -> Sequence[str]:
    forced = ""
    if lock.forced:
        last = lock.forced[-1]
        forced = f"{utc(last['at'])} by {last['by'] or '?'}: {last['why']}"
    until = _moment(lock.until) if lock.session is None else "session"
    return (
        lock.name, lock.state, lock.owner or "-", _moment(lock.since), until, str(lock.fence), str(lock.waiting),
        forced,
    )  # fmt: skip


def _moment(moment: datetime | None) -> str:
    return "-" if moment is None else utc(moment)
