"""What a scheduler offers besides jobs and locks: idempotency keys outside runs, and the verbs of its runs."""

from __future__ import annotations

from typing import Any

from solocron.effects.desk import Desk
from solocron.effects.locks.front import LocksFront
from solocron.effects.locks.session import Tie
from solocron.effects.once import Once
from solocron.effects.transaction import OnceInTransaction
from solocron.effects.verbs import RunVerbs, once_of
from solocron.engine.durable import Attempt
from solocron.errors import LockLost

__all__ = ["EffectsFront"]


class EffectsFront(LocksFront):
    """The part of `Scheduler` that makes effects happen once."""

    def once(self, key: str, *, connection: Any = None, **options: Any) -> Once | OnceInTransaction:
        """`with scheduler.once(key) as claim: if claim: ...`, as `Run.once`, for code outside jobs."""
        place, held = self._locks_place(), _Session(self)
        desk = Desk(
            store=self._store, runtime=self._runtime, watch=place.watch, tell=place.tell, owner=self._settings.node,
            take=held.take, drop=held.drop, check=held.check, lease=held.check, ward=place.ward,
        )  # fmt: skip
        return once_of(desk, key, connection, options)

    def _make_verbs(self, attempt: Attempt) -> RunVerbs:
        return RunVerbs(attempt, self._locks_place())


class _Session:
    """The session of one use of a key: the node's, or a private one for as long as it is needed."""

    def __init__(self, front: EffectsFront) -> None:
        self._front = front
        self._tie: Tie | None = None
        self._name: str | None = None

    def take(self) -> str:
        self._front._store.open()
        self._tie = self._front._tie()
        self._name = self._tie.take()
        return self._name

    def drop(self) -> None:
        tie, self._tie, self._name = self._tie, None, None
        if tie is not None:
            tie.drop()

    def check(self) -> None:
        clock = self._front._runtime.clock
        if self._name is not None and self._tie and clock.boot() >= self._tie.trusted_until(self._name):
            raise LockLost("this process could not renew its session in time; stop, and begin anew.")
