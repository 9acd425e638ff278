"""Idempotency keys outside runs, and the durable methods of the runs of a `Scheduler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from solocron.effects.desk import Desk
from solocron.effects.locks.session import SharedSession
from solocron.effects.once import Once
from solocron.effects.transaction import OnceInTransaction
from solocron.effects.verbs import once_of
from solocron.errors import LockLost
from solocron.jobs.options import Span
from solocron.scheduler.core import Core
from solocron.scheduler.locks import LockRoom

__all__ = ["EffectOperations"]


class EffectOperations:
    """The methods of `Scheduler` that make effects happen once."""

    _core: Core
    _locks: LockRoom

    @overload
    def once(
        self,
        key: str,
        *,
        connection: None = None,
        wait: Span | None = None,
        keep: Span | None = None,
        check: Callable[..., Any] | None = None,
        on_uncertain: Literal["raise", "repeat", "skip"] = "raise",
    ) -> Once: ...
    @overload
    def once(self, key: str, *, connection: Any) -> OnceInTransaction: ...
    def once(
        self,
        key: str,
        *,
        connection: Any = None,
        wait: Span | None = None,
        keep: Span | None = None,
        check: Callable[..., Any] | None = None,
        on_uncertain: Literal["raise", "repeat", "skip"] = "raise",
    ) -> Once | OnceInTransaction:
        """`with scheduler.once(key) as claim: if claim: ...`, as `Run.once`, for code outside jobs."""
        place, held = self._locks.place(), _Session(self._core, self._locks)
        desk = Desk(
            store=place.store, runtime=place.runtime, liveness=place.liveness, tell=place.tell, owner=place.owner,
            take=held.take, drop=held.drop, check=held.check, lease=held.check, ward=place.ward,
        )  # fmt: skip
        options = {"wait": wait, "keep": keep, "check": check}
        given = {name: value for name, value in options.items() if value is not None}
        if on_uncertain != "raise":
            given["on_uncertain"] = on_uncertain
        return once_of(desk, key, connection, given)


class _Session:
    """The session of one use of a key: the node's, or a private one for as long as it is needed."""

    def __init__(self, core: Core, locks: LockRoom) -> None:
        self._core = core
        self._locks = locks
        self._shared: SharedSession | None = None
        self._name: str | None = None

    def take(self) -> str:
        self._core.open()
        self._shared = self._locks.shared_session()
        self._name = self._shared.take()
        return self._name

    def drop(self) -> None:
        shared, self._shared, self._name = self._shared, None, None
        if shared is not None:
            shared.drop()

    def check(self) -> None:
        clock = self._core.runtime.clock
        if self._name is not None and self._shared and clock.boot() >= self._shared.trusted_until(self._name):
            raise LockLost("this process could not renew its session in time; stop, and begin anew.")
