"""What a lock or a key can be tied to instead of a time: a session that somebody keeps alive.

In a process that runs a node it is the node's own session; elsewhere a private one, begun when first needed and
ended when nothing is tied to it any more.
"""

from __future__ import annotations

from typing import Protocol

from solocron.engine.attempts import Board, Standing
from solocron.engine.loop import Loop
from solocron.engine.settings import Settings
from solocron.errors import LockLost, StoreError, StoreUnavailable
from solocron.events import Events
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.session import Session, begin, renew
from solocron.runtime import Event, Runtime
from solocron.stores.contract import Named, Store, Verdict

__all__ = ["NodeTie", "PrivateTie", "Tie"]


class Tie(Protocol):
    """A session in good standing, and whether it still can be trusted."""

    def take(self) -> str:
        """The session; every `take` is followed by one `drop`."""
        ...

    def drop(self) -> None: ...

    def trusted_until(self, session: str) -> float:
        """Boot time up to which that very session can be trusted; in the past when it is not ours any more."""
        ...


class NodeTie:
    """The session of the node that runs in this process."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def take(self) -> str:
        session = self._board.session
        if session is None or self._board.standing() is Standing.NONE:
            raise LockLost("this node has no session at the moment, so nothing was taken; try again when it has one.")
        return session

    def drop(self) -> None:
        """The node keeps its session."""

    def trusted_until(self, session: str) -> float:
        return _trusted_until(self._board, session)


class PrivateTie:
    """A session for a process without a node; renewed from a thread of its own while anything is tied to it."""

    def __init__(self, store: Store, runtime: Runtime, settings: Settings) -> None:
        self._store = store
        self._runtime = runtime
        self._settings = settings
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._process = self._runtime.process()
        self._mutex = self._runtime.mutex()  # a thread that does not exist after a fork may have held the old one
        self._board = Board(self._runtime, self._settings)
        self._users = 0
        self._loop: Loop | None = None
        self._beginning: Event | None = None

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
        """End the session, whatever is still tied to it."""
        if self._process != self._runtime.process():
            self._begin_anew()
        with self._mutex:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
            loop.join(timeout=2.0)
        session, _ = self._board.lose()
        if session is None:
            return
        try:
            # Nothing is tied to it any more: it goes without waiting to be swept, and a missing session counts as dead.
            self._store.update(Named(Kind.SESSION, (session,)), lambda doc, at: _gone(doc))
        except StoreError:
            pass  # then its lease runs out, and whoever sweeps next removes it

    def trusted_until(self, session: str) -> float:
        return _trusted_until(self._board, session)

    def _session(self) -> str:
        """The session that stands, or a new one; of several threads that need one, one begins it and the rest wait."""
        while True:
            standing = self._board.session
            if standing is not None and self._board.standing() is not Standing.NONE:
                return standing
            with self._mutex:
                others, mine = self._beginning, self._runtime.event()
                if others is None:
                    self._beginning = mine
            if others is not None:
                others.wait(self._settings.lease)
                continue
            try:
                return self._begin()
            finally:
                with self._mutex:
                    self._beginning = None
                mine.set()

    def _begin(self) -> str:
        self._board.lose()
        name, settings = self._runtime.rng.token(), self._settings
        described = Session(
            name=name, node=settings.node, host=settings.host, pid=settings.pid, pools=(), handlers=(),
            version=settings.version, lease=settings.lease_us,
        )  # fmt: skip
        asked = self._runtime.clock.boot()
        applied = self._store.update(Named(Kind.SESSION, (name,)), lambda doc, at: begin(doc, described, now=at))
        if applied.results[0].verdict is not Verdict.APPLIED:
            raise StoreUnavailable(f"a session could not be begun ({applied.results[0].verdict}); nothing was taken.")
        self._board.hold_session(name, asked)
        loop = Loop("lock-keeper", self._renew, runtime=self._runtime, events=Events())
        with self._mutex:
            if self._loop is not None:
                return name
            self._loop = loop
        loop.start()
        return name

    def _renew(self, now: float) -> float:
        session, until = self._board.session, self._board.trusted_until()
        if session is None or until is None:
            return now + self._settings.beat
        if now >= until:
            self._board.lose()
            return now + self._settings.beat
        soon = now + self._settings.beat / 8 * self._runtime.rng.uniform(0.8, 1.2)
        try:
            # One that is older than the store has acknowledged has come back with it: what it held may be lost.
            seen = self._board.beats
            applied = self._store.update(Named(Kind.SESSION, (session,)), lambda doc, at: renew(doc, now=at, seen=seen))
        except StoreError:
            return soon
        verdict, doc = applied.results[0].verdict, applied.results[0].doc
        if verdict is Verdict.APPLIED and isinstance(doc, Session):
            self._board.count_beats(session, doc.beats)
        if verdict is Verdict.DECLINED or (verdict is Verdict.APPLIED and not self._board.renewed(session, now)):
            self._board.lose()
        return now + self._settings.beat * self._runtime.rng.uniform(0.85, 1.0) if verdict is Verdict.APPLIED else soon


def _trusted_until(board: Board, session: str) -> float:
    until = board.trusted_until()
    return until if until is not None and board.session == session else 0.0


def _gone(doc: Session | Absent) -> Change | None:
    return None if isinstance(doc, Absent) else Change(None)
