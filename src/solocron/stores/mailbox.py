"""Where a transaction of the user's own can leave a request: the statements to run on the user's connection.

A store that shares a database with the user's data has one. The store only says what to write and how to tell that a
connection leads to this very database; it never touches the user's connection itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from solocron.model.change import SmallDocument

__all__ = ["HasMailbox", "Mailbox", "Written"]

Written = tuple[str, tuple[Any, ...]]
"""A statement with `?` for its values, and the values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """Valid while the store keeps it open."""

    dialect: str
    """postgresql, mysql or sqlite."""
    question: Written
    """Answered by the user's connection, so that `mistake` can tell where it leads."""
    mistake: Callable[[Sequence[Sequence[Any]]], str | None]
    """What is wrong with that answer, and what to do; None if the connection leads here and may write."""
    put: Callable[[SmallDocument], Sequence[Written]]
    """The statements that leave a request and, at the commit, wake the nodes."""


@runtime_checkable
class HasMailbox(Protocol):
    """A store in which the user's own transactions can leave requests."""

    def mailbox(self) -> AbstractContextManager[Mailbox]:
        """Open for one request; entered and left on any thread."""
        ...
