"""A process's knowledge of its store going back in time, as those who write effects under its session need it."""

from __future__ import annotations

from typing import Protocol

from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.transitions.giving_up import GivingUp
from solocron.stores.contract import Gate, Store
from solocron.stores.paging import find_session, read_namespace

__all__ = ["Ward", "stands_open"]


class Ward(Protocol):
    """Says when nothing may be taken, and remembers what to put back."""

    def gate(self) -> Gate:
        """Return what the commit of a write tests."""
        ...

    def wrote(self, kind: Kind, name: str, doc: object, gate: Gate | None) -> bool:
        """Remember a lock, a key or steps that the store acknowledged; False if that comes too late.

        The node has checked the store since the commit that tested `gate`. If that commit was lost, nothing has put it
        back. None: the commit tested nothing.
        """
        ...

    def giving_up(self, change: GivingUp) -> None:
        """Remember that a lock or key is given up, before the store is told."""
        ...

    def gave_up(self, change: GivingUp) -> None:
        """Remember that the store acknowledged it."""
        ...


def stands_open(store: Store, gate: Gate, session: str) -> bool:
    """Return whether the gate is open, so that what the store declined before can be believed.

    Reads suffice, in this order. If the store had gone back by then, its server is another one, or the session is
    older than the gate until its node lifts it, which it does after a new epoch was written.
    """
    try:
        own = find_session(store, session)
        known = read_namespace(store)
        identity = store.identity()
    except StoreUnavailable:
        return False
    if known is None or own is None or own.beats < gate.beats:
        return False
    return f"{known.gate} ".startswith(gate.openings(identity))
