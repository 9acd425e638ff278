"""What a scheduler offers besides jobs: locks and leadership, on its own store and, while it runs, its own session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from solocron.effects.locks.leader import Leader
from solocron.effects.locks.listing import LockView, force_release, list_locks
from solocron.effects.locks.lock import Lock, Place
from solocron.effects.locks.session import NodeTie, PrivateTie, Tie
from solocron.effects.locks.writing import Ward
from solocron.engine.node import Node
from solocron.engine.settings import Settings
from solocron.events import Events
from solocron.runtime import Runtime
from solocron.stores.contract import Store

__all__ = ["LocksFront"]

Span = timedelta | int | float | str


class LocksFront:
    """The part of `Scheduler` that takes locks."""

    _store: Store
    _runtime: Runtime
    _settings: Settings
    _node: Node | None
    events: Events
    _place: Place | None = None
    _private: PrivateTie | None = None
    _leaders: list[Leader]

    def lock(
        self,
        name: str,
        *,
        at_most: Span | None = None,
        at_least: Span = 0,
        wait: Span | bool | None = None,
        keep_alive: bool = False,
    ) -> Lock:
        """A lock to take with `with` or `async with`; nothing is taken yet. `at_most` is 15m unless given.

        `keep_alive` ties it to this process' session instead of a time; `wait` (`True`: for ever) waits in line.
        """
        return Lock(self._locks_place(), name, at_most=at_most, at_least=at_least, wait=wait, keep_alive=keep_alive)

    def locks(self) -> list[LockView]:
        """Every lock of the namespace: owner, since when, until when, fence."""
        self._store.open(read_only=True)
        return list_locks(self._store)

    def force_release(self, name: str, *, reason: str, by: str | None = None) -> LockView:
        """Take a lock from its holder; recorded with the reason, and the fence rises."""
        self._store.open()
        return force_release(self._store, self._runtime, name, reason=reason, by=by)

    def leader(
        self, name: str, *, on_gain: Callable[[], Any] | None = None, on_loss: Callable[[], Any] | None = None
    ) -> Leader:
        """A campaign for leadership; begins with `campaign()` or `with`. `stop` resigns it."""
        made = Leader(
            self._locks_place(), name, beat=self._settings.beat, on_gain=on_gain, on_loss=on_loss, events=self.events
        )
        self._leaders.append(made)
        return made

    def _locks_place(self) -> Place:
        if self._place is None:
            self._private = PrivateTie(self._store, self._runtime, self._settings)
            self._place = Place(self._store, self._runtime, self._settings.node, self._tie, ward=self._ward)
        self._place.owner = self._settings.node
        return self._place

    def _tie(self) -> Tie:
        """The running node's session, or a private one."""
        assert self._private is not None
        node = self._node
        alive = node is not None and node.process == self._runtime.process()
        return NodeTie(node.board) if node is not None and alive else self._private

    def _ward(self) -> Ward | None:
        node = self._node
        return node.recovery if node is not None and node.process == self._runtime.process() else None

    def _let_go(self) -> None:
        """Leadership ends before the session that it is tied to."""
        for leader in self._leaders:
            leader.resign()
        if self._private is not None:
            self._private.close()
