"""The part of the fault suite that the author of a store supplies: a server that may be hurt, and how."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from solocron.clock import SECOND
from solocron.model.change import Change
from solocron.model.documents.run import Status
from solocron.model.documents.session import Session
from solocron.stores.contract import ChangeFn, Store
from solocron.testing.conformance.kit import add_hold, record

__all__ = ["LEASE", "MINE", "PASSWORD", "SHORT", "Victim", "claim", "finish", "once"]

LEASE = timedelta(seconds=15)
SHORT = timedelta(seconds=2)
"""A lease whose calls give up soon."""
PASSWORD = "c4n4ry-p4ss"  # noqa: S105 - a canary, which must be seen nowhere
MINE = Session(name="s", node="n", host="h", pid=1, lease=15 * SECOND)


class Victim(ABC):
    """A server that tests may hurt, with an empty world on it. The suite leaves it running."""

    url: str
    """Where the empty world is, host and port included: a proxy is put before it."""

    @abstractmethod
    def make(self, url: str, *, lease: timedelta) -> Store:
        """Make a client, not opened yet. The URL is `self.url`, or the same world behind a proxy."""

    @abstractmethod
    def kill(self) -> None:
        """End the server's processes at once, as `kill -9` does."""

    @abstractmethod
    def restart(self) -> None:
        """Start the server again on the same data and port, after an orderly end if it still runs."""

    @abstractmethod
    def guarded(self) -> AbstractContextManager[str]:
        """Make a user `canary` with the password `PASSWORD` for a block, and yield the URL of its world."""

    @abstractmethod
    def refused(self, guarded: str) -> list[str]:
        """Return URLs that the server refuses: another user, another database."""

    @abstractmethod
    def broken(self, guarded: str) -> list[str]:
        """Return URLs with which a client fails otherwise: no such host, no server there, options without sense."""

    @contextmanager
    def hurt_at_commit(self, fault: Callable[[], None], change: ChangeFn) -> Iterator[ChangeFn]:
        """Yield a change with which `fault` strikes once, when the next message of the update is its commit.

        By default it strikes while the change is computed, which is right for a store that sends its writes and their
        commit in one message. Override it where the commit is a message of its own.
        """
        yield once(fault, change)

    @contextmanager
    def opened(self, url: str | None = None, *, lease: timedelta = LEASE) -> Iterator[Store]:
        """Open a client for a block, at the world itself or behind a proxy."""
        store = self.make(url or self.url, lease=lease)
        try:
            store.open()
            yield store
        finally:
            store.close()


def once(fault: Callable[[], None], change: ChangeFn) -> ChangeFn:
    """Return the change, except that its first call lets something happen before it."""
    faults = [fault]

    def faulty(doc: Any, now: int) -> Change | None:
        while faults:
            faults.pop()()
        return change(doc, now)

    return faulty


def claim(doc: Any, now: int) -> Change | None:
    """Claim a job for the session `s`, and record a slot that was skipped before."""
    change = add_hold("s")(doc, now)
    skipped = record(f"{doc.name}@0", attempt=0, status=Status.SKIPPED, at=now)
    return change and Change(change.doc, (skipped,), "mine")


def finish(doc: Any, now: int) -> Change | None:
    """End what `claim` began."""
    if not doc.active:
        return None
    return Change(replace(doc, active=()), (record(f"{doc.name}@1", at=now),))
