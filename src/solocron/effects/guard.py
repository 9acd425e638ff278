"""A fence that the target itself checks: inside the user's own transaction, an old holder is refused.

The highest fence that a scope has shown is kept in a row of its own, which stays locked until the user's transaction
ends. It is never the job's row: a long transaction of the user blocks neither finishing nor sweeping.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solocron.clock import MILLISECOND, iso
from solocron.effects.connections import ConnectionAdapter, Script, carry_out, carry_out_async
from solocron.effects.tables import GUARDS, ensure
from solocron.errors import StaleFence, StoreError

__all__ = ["guard", "guard_async"]

_RAISE = {
    # The row is locked even if the WHERE keeps it as it is. Inside a statement a table has no schema.
    "postgresql": "INSERT INTO {table} (scope, fence) VALUES (?, ?) ON CONFLICT (scope) DO UPDATE "
    "SET fence = excluded.fence WHERE solocron_guards.fence <= excluded.fence",
    "mysql": "INSERT INTO {table} (scope, fence) VALUES (?, ?) "
    "ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence))",
}
_RAISE["sqlite"] = _RAISE["postgresql"]
_SEEN = {
    "postgresql": "SELECT fence FROM {table} WHERE scope = ?",
    # Under REPEATABLE READ a plain SELECT would show the snapshot, not the row that was just locked.
    "mysql": "SELECT fence FROM {table} WHERE scope = ? FOR UPDATE",
}
_SEEN["sqlite"] = _SEEN["postgresql"]


def guard(
    connection: Any, *, scope: str, fence: int, schema: str | None = None, clock: Callable[[], int] | None = None
) -> None:
    """Record the fence, or raise `StaleFence` if a higher one of this scope has been seen in this database.

    `clock` returns the store's time. It is asked only for the error: a fence from later than now has another cause.
    """
    seen = carry_out(connection, lambda link: _show(link, scope, fence, schema))
    if seen > fence:
        raise _stale(scope, fence, seen, _now(clock))


async def guard_async(
    connection: Any, *, scope: str, fence: int, schema: str | None = None, clock: Callable[[], int] | None = None
) -> None:
    """Do the same as `guard` from a coroutine, also over connections whose calls are awaited."""
    seen = await carry_out_async(connection, lambda link: _show(link, scope, fence, schema))
    if seen > fence:
        from solocron.dispatch.in_thread import in_thread

        raise _stale(scope, fence, seen, await in_thread(lambda: _now(clock)))


def _show(link: ConnectionAdapter, scope: str, fence: int, schema: str | None) -> Script[int]:
    """Record the fence unless a higher one is there; return the highest."""
    table = yield from ensure(link, GUARDS, schema)
    yield _RAISE[link.dialect].format(table=table), (scope, fence)
    reply = yield _SEEN[link.dialect].format(table=table), (scope,)
    return int(reply.rows[0][0]) if reply.rows else fence


def _now(clock: Callable[[], int] | None) -> int | None:
    """Return the store's time; None if it is not known, which must not hide the stale fence."""
    if clock is None:
        return None
    try:
        return clock()
    except StoreError:
        return None


def _stale(scope: str, fence: int, seen: int, now: int | None) -> StaleFence:
    refused = (
        f"{scope}: fence {fence} is stale, this database has seen {seen}; nothing was written here, roll your "
        "transaction back."
    )
    if now is None or seen * MILLISECOND <= now:
        return StaleFence(f"{refused} Another node took over: stop.")
    # A fence is at least the store's time in milliseconds, so this one was given out by a clock that is ahead of ours.
    return StaleFence(
        f"{refused} That fence is from {iso(seen * MILLISECOND)}, and the clock of the store reads {iso(now)}: it is "
        "behind. If it is a ManualClock, start it after that time, or give the test an empty database; if not, this is "
        "another store, or a restored one: see `solocron restored`."
    )
