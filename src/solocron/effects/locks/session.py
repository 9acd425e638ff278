"""The session that holds a lock or a key, instead of a time limit.

In a process that runs a node it is the node's own session. Elsewhere it is a private one, begun when first needed and
removed when nothing is held by it any more.
"""

from __future__ import annotations

from typing import Protocol

from solocron.errors import LockLost, StoreError
from solocron.events import Events
from solocron.lease.holder import Fate, Holder
from solocron.lease.own import OwnLease
from solocron.lease.terms import LeaseTerms
from solocron.lease.trust import Standing
from solocron.loop import Loop
from solocron.model.documents.session import Session
from solocron.runtime import Flag, Runtime
from solocron.stores.contract import Store

__all__ = ["NodeSession", "PrivateSession", "SharedSession"]


class SharedSession(Protocol):
    """A live session that holds several locks and keys."""

    def take(self) -> str:
        """Return the session; every `take` is followed by one `drop`."""
        ...

    def drop(self) -> None: ...

    def trusted_until(self, session: str) -> float:
        """Return the boot time up to which that session can be trusted; in the past if it is no longer ours."""
        ...


class NodeSession:
    """The session of the node that runs in this process."""

    def __init__(self, lease: OwnLease) -> None:
        self._lease = lease

    def take(self) -> str:
        session = self._lease.session
        if session is None or self._lease.standing() is Standing.NONE:
            raise LockLost("this node has no session at the moment, so nothing was taken; try again when it has one.")
        return session

    def drop(self) -> None:
        """Do nothing: the node keeps its session."""

    def trusted_until(self, session: str) -> float:
        return self._lease.trusted_until(session) or 0.0


class PrivateSession:
    """A session for a process without a node, renewed from a thread of its own while it holds anything."""

    def __init__(self, store: Store, runtime: Runtime, terms: LeaseTerms) -> None:
        self._store = store
        self._runtime = runtime
        self._terms = terms
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._process = self._runtime.process()
        self._mutex = self._runtime.mutex()  # a thread that does not exist after a fork may have held the old one
        self._lease = OwnLease(self._runtime, self._terms, _no_plan)
        self._holder = Holder(self._store, self._runtime, self._lease, self._terms)
        self._users = 0
        self._loop: Loop | None = None
        self._beginning: Flag | None = None

    def take(self) -> str:
        if self._process != self._runtime.process():  # a fork: what the parent holds is the parent's
            self._begin_anew()
        with self._mutex:
            self._users += 1
        try:
            return self._session()
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        with self._mutex:
            self._users = max(self._users - 1, 0)
            if self._users > 0:
                return
        self.close()

    def close(self) -> None:
        """End the session, whatever it still holds."""
        if self._process != self._runtime.process():
            self._begin_anew()
        with self._mutex:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
            loop.join(timeout=2.0)
        session = self._lease.lose()
        if session is None:
            return
        try:
            self._holder.remove(session)
        except StoreError:
            pass  # then its lease expires, and the next sweeper removes it

    def trusted_until(self, session: str) -> float:
        return self._lease.trusted_until(session) or 0.0

    def _session(self) -> str:
        """Return the live session, or a new one; of several threads that need one, one begins it."""
        while True:
            session = self._lease.session
            if session is not None and self._lease.standing() is not Standing.NONE:
                return session
            with self._mutex:
                others, mine = self._beginning, self._runtime.event()
                if others is None:
                    self._beginning = mine
            if others is not None:
                others.wait(self._terms.lease)
                continue
            try:
                return self._begin()
            finally:
                with self._mutex:
                    self._beginning = None
                mine.set()

    def _begin(self) -> str:
        self._lease.lose()
        terms = self._terms
        described = Session(
            name="", node=terms.node, host=terms.host, pid=terms.pid, pools=(), handlers=(), version=terms.version,
            lease=terms.lease_us,
        )  # fmt: skip
        session, _ = self._holder.begin(described)
        loop = Loop("lock-keeper", self._renew, runtime=self._runtime, events=Events())
        with self._mutex:
            if self._loop is not None:
                return session
            self._loop = loop
        loop.start()
        return session

    def _renew(self, now: float) -> float:
        session, until = self._lease.session, self._lease.trusted_until()
        if session is None or until is None:
            return now + self._terms.beat
        if now >= until:
            self._lease.lose()
            return now + self._terms.beat
        try:
            fate = self._holder.renew(session).fate
        except StoreError:
            return self._holder.next_try()
        if fate is Fate.UNCERTAIN:
            return self._holder.next_try()
        if fate is not Fate.RENEWED:  # dead, late, or come back with a store that went back: what it held may be lost
            self._lease.lose()
        return self._holder.next_beat(now)


def _no_plan() -> None:
    """Do nothing: a process that only holds locks plans nothing by the store's clock."""
