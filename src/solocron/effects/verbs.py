"""The methods with I/O of `Run` and `AsyncRun`, made per attempt when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from solocron.effects.desk import Desk
from solocron.effects.guard import guard, guard_async
from solocron.effects.locks.lock import LockPlace
from solocron.effects.once import Once
from solocron.effects.step import AsyncStep, Step
from solocron.effects.steps import Steps
from solocron.effects.tables import schema_of
from solocron.effects.transaction import OnceInTransaction, claim_items, claim_items_async
from solocron.errors import InvalidError, LeaseLost
from solocron.stores.ward import Ward

__all__ = ["Attempt", "RunVerbs", "once_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The facts and rights of one attempt."""

    run: str
    node: str
    session: str
    fence: int
    scope: str
    """Scope in which fences are compared: the job, or the run if several may run at once."""
    check: Callable[[], None]
    """Raises if the body must stop."""
    lease: Callable[[], None]
    """Raises only if the lease is lost."""
    ward: Ward | None
    """What the node of this attempt knows of its store going back in time; None if the store cannot."""


class RunVerbs:
    """Bound to one attempt: its session, its fence, its right to continue."""

    def __init__(self, attempt: Attempt, place: LockPlace) -> None:
        self._attempt = attempt
        self._store = place.store
        self._desk = Desk(
            store=place.store,
            runtime=place.runtime,
            liveness=place.liveness,
            tell=place.tell,
            owner=f"{attempt.run} on {attempt.node}",
            take=lambda: attempt.session,
            drop=_nothing,
            check=attempt.check,
            lease=attempt.lease,
            ward=lambda: attempt.ward,
            run=attempt.run,
            fence=attempt.fence,
            lost=LeaseLost,
        )
        self._steps = Steps(self._desk)
        self.step = partial(Step, self._steps)
        self.step_async = partial(AsyncStep, self._steps)
        self.sleep = self._steps.sleep
        self.sleep_async = self._steps.sleep_async
        self.uncalled_step = self._steps.uncalled

    def once(self, key: str, *, connection: Any = None, **options: Any) -> Once | OnceInTransaction:
        return once_of(self._desk, key, connection, options)

    def guard(self, connection: Any) -> None:
        self._attempt.check()
        guard(connection, **self._shown())

    async def guard_async(self, connection: Any) -> None:
        self._attempt.check()
        await guard_async(connection, **self._shown())

    def claim_items(self, connection: Any, name: str, ids: Iterable[Any]) -> list[Any]:
        self._attempt.check()
        return claim_items(connection, name, ids, **self._marks())

    async def claim_items_async(self, connection: Any, name: str, ids: Iterable[Any]) -> list[Any]:
        self._attempt.check()
        return await claim_items_async(connection, name, ids, **self._marks())

    def _shown(self) -> dict[str, Any]:
        """Return what a guard shows to the database."""
        return {
            "scope": f"{self._store.namespace}/{self._attempt.scope}",
            "fence": self._attempt.fence,
            "schema": schema_of(self._store),
            "clock": self._store.clock,
        }

    def _marks(self) -> dict[str, Any]:
        return {
            "namespace": self._store.namespace,
            "run": self._attempt.run,
            "fence": self._attempt.fence,
            "schema": schema_of(self._store),
        }


def once_of(desk: Desk, key: str, connection: Any, options: dict[str, Any]) -> Once | OnceInTransaction:
    """Return a key in the store, or in the user's own transaction."""
    if connection is None:
        return Once(desk, key, **options)
    if options:
        raise InvalidError(
            f"key {key!r}: {', '.join(sorted(options))} has no meaning with connection=: what your transaction does "
            "not commit has not happened, and your database keeps what it does. Nothing was begun."
        )
    return OnceInTransaction(
        connection, key, namespace=desk.store.namespace, run=desk.run, fence=desk.fence, check=desk.check,
        schema=schema_of(desk.store),
    )  # fmt: skip


def _nothing() -> None:
    """Do nothing: the node keeps its session."""
