"""Lists the locks of a namespace, and releases one by force, with a reason that stays on record."""

from __future__ import annotations

import getpass
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime

from solocron.cli import output
from solocron.cli.exits import OK
from solocron.cli.moments import utc
from solocron.cli.opening import opened
from solocron.effects.locks.listing import LockView, force_release, list_locks
from solocron.errors import InvalidError
from solocron.runtime import Threads
from solocron.views import to_json

__all__ = ["locks"]


def locks(args: Namespace) -> int:
    if args.release is None and (args.reason is not None or args.by is not None):
        raise InvalidError("--reason and --by belong to --release NAME; nothing was changed.")
    with opened(args) as client:
        if args.release is not None:
            by = args.by or _user()
            view = force_release(client.store, Threads(), args.release, reason=args.reason or "", by=by)
            if args.json:
                return output.dump(to_json(view))
            hit = view.forced[-1]
            output.say(f"{view.name} was taken from {hit['owner']}; its fence is {view.fence} now")
            return OK
        found = list_locks(client.store)
        if args.json:
            return output.dump(to_json(found))
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


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return None
