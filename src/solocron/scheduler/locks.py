"""Locks and leadership of a `Scheduler`, on its own store and, while it runs, its own session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solocron.effects.locks.leader import Leader
from solocron.effects.locks.listing import LockView, force_release, list_locks
from solocron.effects.locks.lock import Lock, LockPlace
from solocron.effects.locks.session import NodeSession, PrivateSession, SharedSession
from solocron.effects.verbs import Attempt, RunVerbs
from solocron.jobs.options import Span
from solocron.model.change import Kind
from solocron.scheduler.auditing import audited
from solocron.scheduler.core import Core
from solocron.stores.ward import Ward

__all__ = ["LockOperations", "LockRoom"]


class LockRoom:
    """The place where a scheduler takes locks, and what they are tied to."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._place: LockPlace | None = None
        self.private: PrivateSession | None = None
        self.leaders: list[Leader] = []
        core.moved.append(self._move)

    def place(self) -> LockPlace:
        """Return the one place of all locks of this scheduler."""
        core = self._core
        if self._place is None:
            self.private = PrivateSession(core.store, core.runtime, core.settings)
            self._place = LockPlace(core.store, core.runtime, core.settings.node, self.shared_session, ward=self._ward)
        self._place.owner = core.settings.node
        return self._place

    def make_verbs(self, attempt: Attempt) -> RunVerbs:
        """Make the effects of an attempt: the store is this scheduler's, session and ward are the attempt's.

        Its node may be another than the running one: a node that drains, the node of a `run_now`, a guest.
        """
        return RunVerbs(attempt, self.place())

    def shared_session(self) -> SharedSession:
        """Return the session of the running node, or a private one."""
        assert self.private is not None
        node = self._core.running_node
        return NodeSession(node.lease) if node is not None else self.private

    def release(self) -> None:
        """End leadership before the session that it is tied to."""
        for leader in self.leaders:
            leader.resign()
        if self.private is not None:
            self.private.close()

    def _ward(self) -> Ward | None:
        node = self._core.running_node
        return node.gate if node is not None else None

    def _move(self) -> None:
        """Follow the scheduler to another store: a lock that a module made when it was imported follows too."""
        if self._place is not None:
            core = self._core
            self.private = PrivateSession(core.store, core.runtime, core.settings)
            self._place.move(core.store, core.settings.node)


class LockOperations:
    """The methods of `Scheduler` about locks."""

    _core: Core
    _locks: LockRoom

    def lock(
        self,
        name: str,
        *,
        at_most: Span | None = None,
        at_least: Span = 0,
        wait: Span | bool | None = None,
        keep_alive: bool = False,
    ) -> Lock:
        """Make a lock to take with `with` or `async with`; nothing is taken yet. `at_most` is 15m unless given.

        `keep_alive` ties it to this process's session instead of a time; `wait` (`True`: forever) waits in line.
        """
        return Lock(self._locks.place(), name, at_most=at_most, at_least=at_least, wait=wait, keep_alive=keep_alive)

    def locks(self) -> list[LockView]:
        """Return every lock of the namespace: owner, since when, until when, fence."""
        return list_locks(self._core.open(read_only=True).store)

    def force_release(self, name: str, *, reason: str, by: str | None = None) -> LockView:
        """Take a lock from its holder; recorded with the reason, and the fence rises."""
        with audited(self._core, "release", name, by=by, note=reason, named=(Kind.LOCK, name)):
            return force_release(self._core.open().store, self._core.runtime, name, reason=reason, by=by)

    def leader(
        self, name: str, *, on_gain: Callable[[], Any] | None = None, on_loss: Callable[[], Any] | None = None
    ) -> Leader:
        """Make a campaign for leadership; it begins with `campaign()` or `with`. `stop` resigns it."""
        core = self._core
        made = Leader(
            self._locks.place(), name, beat=core.settings.beat, on_gain=on_gain, on_loss=on_loss, events=core.events
        )
        self._locks.leaders.append(made)
        return made
