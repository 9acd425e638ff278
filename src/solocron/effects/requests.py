"""Leaves a trigger in the user's own transaction: without a commit, no run. Only a new row is written and locked."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from solocron.effects.connections import ConnectionAdapter, Script, adapt, carry_out, carry_out_async
from solocron.errors import InvalidError
from solocron.model.change import SmallDocument
from solocron.stores.contract import Store
from solocron.stores.mailbox import HasMailbox, Mailbox

__all__ = ["check_connection", "leave", "leave_async"]


def check_connection(store: Store, connection: Any) -> None:
    """Refuse an unusable connection before anything is sent."""
    if not isinstance(store, HasMailbox):
        raise InvalidError(
            f"connection=: {store.url} is not a database that your transaction can write to; nothing was triggered. "
            "Use a SQL store in the database of your data, or trigger after your commit."
        )
    if not hasattr(connection, "run_sync"):  # else one of SQLAlchemy's asynchronous ones, which show it only inside
        adapt(connection)


def leave(store: Store, connection: Any, note: SmallDocument) -> None:
    """Write the request with the user's connection."""
    with _open(store) as box:
        carry_out(connection, lambda link: _put(link, box, store.url, note))


async def leave_async(store: Store, connection: Any, note: SmallDocument) -> None:
    """Do the same as `leave` from a coroutine, also over connections whose calls are awaited."""
    from solocron.dispatch.in_thread import (
        in_thread,  # imports asyncio, which a program without a loop never needs
    )

    opening = _open(store)
    box = await in_thread(opening.__enter__, undo=lambda _: opening.__exit__(None, None, None))
    try:
        await carry_out_async(connection, lambda link: _put(link, box, store.url, note))
    finally:
        await in_thread(lambda: opening.__exit__(None, None, None))


def _open(store: Store) -> AbstractContextManager[Mailbox]:
    assert isinstance(store, HasMailbox)
    return store.mailbox()


def _put(link: ConnectionAdapter, box: Mailbox, where: str, note: SmallDocument) -> Script[None]:
    if link.dialect != box.dialect:
        raise InvalidError(
            f"this is a connection to a {link.dialect} database, and the store is {where}; nothing was written. "
            "Only a transaction in the store's own database can trigger."
        )
    reply = yield box.question
    mistake = box.mistake(reply.rows)
    if mistake is not None:
        raise InvalidError(f"{mistake} Nothing was written.")
    for sql, values in box.put(note):
        reply = yield sql, values  # not `yield from`, which would not receive the replies
