"""A fence that the target itself checks: inside the user's own transaction, an old holder is refused.

The highest fence that a scope has shown is kept in a row of its own, which stays locked until the user's transaction
ends. It is never the job's row: a long transaction of the user blocks neither finishing nor sweeping.
"""

from __future__ import annotations

from typing import Any

from solocron.effects.connections import ConnectionAdapter, Script, carry_out, carry_out_async
from solocron.effects.tables import GUARDS, ensure
from solocron.errors import StaleFence

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


def guard(connection: Any, *, scope: str, fence: int, schema: str | None = None) -> None:
    """Record the fence, or raise `StaleFence` if a higher one of this scope has been seen in this database."""
    carry_out(connection, lambda link: _show(link, scope, fence, schema))


async def guard_async(connection: Any, *, scope: str, fence: int, schema: str | None = None) -> None:
    """Do the same as `guard` from a coroutine, also over connections whose calls are awaited."""
    await carry_out_async(connection, lambda link: _show(link, scope, fence, schema))


def _show(link: ConnectionAdapter, scope: str, fence: int, schema: str | None) -> Script[None]:
    table = yield from ensure(link, GUARDS, schema)
    yield _RAISE[link.dialect].format(table=table), (scope, fence)
    reply = yield _SEEN[link.dialect].format(table=table), (scope,)
    seen = int(reply.rows[0][0]) if reply.rows else fence
    if seen > fence:
        raise StaleFence(
            f"{scope}: fence {fence} is stale, this database has seen {seen}; nothing was written here, roll your "
            "transaction back. Another node took over: stop."
        )
