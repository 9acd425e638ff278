"""Builds the run of a call in a process of its own, from the order that its node sent.

Its methods with I/O (`once`, `step`, `guard`) use a connection to the store of their own, under the node's session and
the run's fence: what they write is refused once the lease is gone. Their ward is the node's: what they write is tested
and remembered as if the body ran there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

from solocron.dispatch.contract import Stop
from solocron.dispatch.process.order import unpacked
from solocron.effects.locks.lock import LockPlace
from solocron.effects.verbs import Attempt, RunVerbs
from solocron.errors import ConflictError
from solocron.model.documents.run import Status
from solocron.runs.async_run import AsyncRun
from solocron.runs.base import Previous
from solocron.runs.making import make_effects, run_class
from solocron.runs.run import Run
from solocron.runtime import Threads
from solocron.schedules.zone import load_zone
from solocron.stores.url import Secret, make_store
from solocron.stores.ward import Ward

__all__ = ["make_remote_run"]


def make_remote_run(
    order: Mapping[str, Any],
    *,
    is_async: bool,
    stopped: Callable[[], Stop | None],
    report: Callable[[dict[str, Any]], None],
    ward: Ward,
) -> Run | AsyncRun:
    """Build the run with the facts that it had on its node."""
    zone = load_zone(order["zone"]).info
    facts = {name: unpacked(packed, zone, _previous) for name, packed in order["facts"].items()}
    effects = partial(make_effects, _Verbs(order).make, order["session"], order["scope"], ward)
    return run_class(is_async)(**facts, stopped=stopped, report=report, effects=effects)


def _previous(*, status: str, **facts: Any) -> Previous:
    return Previous(status=Status(status), **facts)


class _Verbs:
    """Opens the store when the body first asks for something that needs it, once however many threads ask."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._order = order
        self._mutex = threading.Lock()
        self._made: RunVerbs | None = None

    def make(self, attempt: Attempt) -> RunVerbs:
        order = self._order
        if order["store"] is None:
            raise ConflictError(f"{attempt.run}: {order['why']} Nothing was written.")
        with self._mutex:
            if self._made is None:
                lease = timedelta(seconds=order["lease"])
                store = make_store(Secret(order["store"]), namespace=order["namespace"], lease=lease)
                store.open()
                self._made = RunVerbs(attempt, LockPlace(store, Threads(), attempt.node, _no_tie, lambda: attempt.ward))
        return self._made


def _no_tie() -> NoReturn:
    raise ConflictError("the effects of a run are tied to its node's session.")
