"""Keys and items written in the user's own transaction: the mark and the effect commit together, or neither.

The outcome is never uncertain here: a transaction that did not commit has left nothing. A second caller waits for the
first one's transaction to end.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from solocron.effects.connections import ConnectionAdapter, Script, carry_out, carry_out_async
from solocron.effects.locks.writing import check_text
from solocron.effects.once_block import Claim, OnceBlock
from solocron.effects.tables import KEYS, ensure
from solocron.errors import InvalidError

__all__ = ["OnceInTransaction", "claim_items", "claim_items_async"]

T = TypeVar("T")

_SAVE = "UPDATE {table} SET value = ? WHERE name = ?"
# Under REPEATABLE READ a plain SELECT would not show what the other transaction has just committed.
_VALUE = {
    "postgresql": "SELECT value FROM {table} WHERE name = ?",
    "mysql": "SELECT value FROM {table} WHERE name = ? FOR UPDATE",
}
_VALUE["sqlite"] = _VALUE["postgresql"]
_AT_ONCE = {"postgresql": 1000, "mysql": 1000, "sqlite": 200}
"""Items in one statement; SQLite took at most 999 values in one before 3.32."""
_DROP = "DELETE FROM {table} WHERE name = ?"


class OnceInTransaction(OnceBlock):
    """One use of a key inside the user's open transaction, as a sync or async context manager."""

    def __init__(
        self, connection: Any, key: str, *, namespace: str, run: str | None, fence: int, check: Callable[[], None],
        schema: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(check_text(key, "key", untouched="Nothing was begun."))
        self._connection = connection
        self._name = f"{namespace}/{key}"
        self._run = run
        self._fence = fence
        self._check = check
        self._schema = schema
        self._table = KEYS
        self._claim: Claim | None = None

    def _enter(self) -> Claim:
        self._check()
        self._claim = carry_out(self._connection, self._begin)
        return self._claim

    def _leave(self, error: BaseException | None) -> None:
        script = self._end(error)
        if script is None:
            return
        if error is None:
            carry_out(self._connection, script)
            return
        try:
            carry_out(self._connection, script)
        except Exception:  # noqa: BLE001, S110 - an aborted transaction takes no statement; it takes the key with it too
            pass

    async def _enter_async(self) -> Claim:
        self._check()
        self._claim = await carry_out_async(self._connection, self._begin)
        return self._claim

    async def _leave_async(self, error: BaseException | None) -> None:
        script = self._end(error)
        if script is None:
            return
        if error is None:
            await carry_out_async(self._connection, script)
            return
        try:
            await carry_out_async(self._connection, script)
        except Exception:  # noqa: BLE001, S110 - an aborted transaction takes no statement; it takes the key with it too
            pass

    def _begin(self, link: ConnectionAdapter) -> Script[Claim]:
        table = self._table = yield from ensure(link, KEYS, self._schema)
        made = yield _insert(link.dialect, table, "name, run, fence"), (self._name, self._run, self._fence)
        if made.count == 1:
            return Claim(self.key, first=True)
        found = yield _VALUE[link.dialect].format(table=table), (self._name,)
        text = found.rows[0][0] if found.rows else None
        return Claim(self.key, first=False, value=None if text is None else json.loads(text))

    def _end(self, error: BaseException | None) -> Callable[[ConnectionAdapter], Script[None]] | None:
        """Return the script for the end of the block: save the result, or undo the mark."""
        claim, self._claim = self._claim, None
        if claim is None or not claim.first:
            return None
        if error is not None:
            return lambda link: _one(_DROP.format(table=self._table), (self._name,))
        if claim.value is None:
            return None
        text = json.dumps(claim.value, ensure_ascii=False, separators=(",", ":"))
        return lambda link: _one(_SAVE.format(table=self._table), (text, self._name))


def _insert(dialect: str, table: str, columns: str, rows: int = 1) -> str:
    """Return the statement that inserts rows, except those whose name is there already."""
    verb, end = ("INSERT IGNORE", "") if dialect == "mysql" else ("INSERT", " ON CONFLICT (name) DO NOTHING")
    row = f"({', '.join('?' * len(columns.split(',')))})"
    return f"{verb} INTO {table} ({columns}) VALUES {', '.join([row] * rows)}{end}"


def _one(sql: str, values: tuple[Any, ...]) -> Script[None]:
    yield sql, values


def claim_items(
    connection: Any, name: str, ids: Iterable[Any], *, namespace: str, run: str | None, fence: int,
    schema: str | None = None,
) -> list[Any]:  # fmt: skip
    """Return those items that have not been claimed under this name before. The claim commits with your transaction."""
    items = _checked(name, ids)
    return carry_out(connection, lambda link: _claim(link, namespace, items, run, fence, schema))


async def claim_items_async(
    connection: Any, name: str, ids: Iterable[Any], *, namespace: str, run: str | None, fence: int,
    schema: str | None = None,
) -> list[Any]:  # fmt: skip
    """Do the same as `claim_items` from a coroutine."""
    items = _checked(name, ids)
    return await carry_out_async(connection, lambda link: _claim(link, namespace, items, run, fence, schema))


def _checked(name: str, ids: Iterable[Any]) -> dict[str, Any]:
    """Return the items by the string that names each, in the caller's order.

    Two ids with the same string are one item.
    """
    check_text(name, "name of items", untouched="Nothing was claimed.")
    items: dict[str, Any] = {}
    for one in ids:
        if isinstance(one, float) or one is None:
            raise InvalidError(
                f"claim_items({name!r}): {one!r} is not a stable name of an item; nothing was claimed. "
                "Give numbers, strings or UUIDs."
            )
        items.setdefault(check_text(f"{name}/{one}", "item", untouched="Nothing was claimed."), one)
    return items


def _claim(
    link: ConnectionAdapter, namespace: str, items: dict[str, Any], run: str | None, fence: int, schema: str | None
) -> Script[list[Any]]:
    table = yield from ensure(link, KEYS, schema)
    insert = _insert_returning if link.dialect == "postgresql" else _insert_marked
    names = sorted(f"{namespace}/{text}" for text in items)  # each transaction in this order, or two deadlock
    ours = set[str]()
    for start in range(0, len(names), size := _AT_ONCE[link.dialect]):
        ours |= yield from insert(link.dialect, table, names[start : start + size], run, fence)
    return [item for text, item in items.items() if f"{namespace}/{text}" in ours]


def _insert_returning(dialect: str, table: str, names: list[str], run: str | None, fence: int) -> Script[set[str]]:
    sql = _insert(dialect, table, "name, run, fence", len(names))
    reply = yield f"{sql} RETURNING name", tuple(value for name in names for value in (name, run, fence))
    return {str(name) for (name,) in reply.rows}


def _insert_marked(dialect: str, table: str, names: list[str], run: str | None, fence: int) -> Script[set[str]]:
    """Insert the names, each with a mark of this call, and read which rows bear it: MySQL has no RETURNING.

    The marks are gone before the caller can commit, so no other transaction sees one.
    """
    mark, these = secrets.token_hex(16), ", ".join("?" * len(names))
    sql = _insert(dialect, table, "name, run, fence, value", len(names))
    made = yield sql, tuple(value for name in names for value in (name, run, fence, mark))
    if not made.count:
        return set()
    ours = set(names)
    if made.count != len(names):
        found = yield f"SELECT name FROM {table} WHERE name IN ({these}) AND value = ?", (*names, mark)  # noqa: S608 - ours
        ours = {str(name) for (name,) in found.rows}
    yield f"UPDATE {table} SET value = NULL WHERE name IN ({these}) AND value = ?", (*names, mark)  # noqa: S608 - ours
    return ours
