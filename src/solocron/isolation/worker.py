"""The worker: finds the function, gives it its run, and sends back what it returned or raised.

Its verbs with I/O (`once`, `step`, `guard`) use a connection to the store of its own, under the node's session and the
run's fence, so that what they write is refused once the lease is gone.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from solocron import surroundings
from solocron.clock import SystemClock, from_us
from solocron.dispatch.contract import Stop
from solocron.effects.locks.lock import Place
from solocron.effects.verbs import Attempt, RunVerbs
from solocron.errors import Cancelled, ConflictError, LeaseLost, TimedOut
from solocron.isolation.shared import Shared
from solocron.jobs.address import Address, find
from solocron.jobs.around import wrap
from solocron.jobs.registry import Handler, make_handler
from solocron.jobs.results import NotKept, error_text, result_text
from solocron.jobs.unfinished import awaited, unfinished
from solocron.model.documents.run import Status
from solocron.runs.base import BaseRun, Previous
from solocron.runs.making import make_effects, run_class
from solocron.runtime import Threads
from solocron.schedules.zone import load_zone
from solocron.stores.url import Secret, make_store

__all__ = ["work"]

_PR_SET_PDEATHSIG = 1
_TELL = 0.2
_LOOK = 0.05


def work(order: dict[str, Any], report: int, shared: Shared) -> None:
    """Carry the order out; whatever happens to the body is an answer."""
    _end_with_guard()
    _settle_in(order)
    line = _Line(report)
    try:
        value = _call(order, shared, line)
    except BaseException as error:  # noqa: BLE001 - whatever a body raises is its outcome, SystemExit included
        line.answer(*_raised(error))
    else:
        line.answer(*_returned(value))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _end_with_guard() -> None:
    """In addition to what the guard does: the kernel kills this process when the guard is killed (Linux)."""
    if sys.platform.startswith("linux"):
        guard = os.getppid()
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guard:
            os._exit(1)


def _settle_in(order: dict[str, Any]) -> None:
    """The import path and surroundings of the node; its share of the machine."""
    surroundings.carries_a_run = True
    sys.path[:] = order["path"]
    sys.argv[:] = order["argv"]
    os.environ.pop("PYTHONPATH", None)
    if order["environ"] is not None:
        os.environ["PYTHONPATH"] = order["environ"]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if order["cpu"] is not None and order["cpu"] < len(cores):
        # Any of them: all children on the first core would leave the others idle.
        os.sched_setaffinity(0, random.sample(cores, order["cpu"]))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what was printed before a kill is seen


def _call(order: dict[str, Any], shared: Shared, line: _Line) -> Any:
    function = find(Address(**order["function"]))
    wrappers = [find(Address(**each)) for each in order["around"]]
    if not logging.root.handlers:  # its log goes where its output goes
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    handler = make_handler(order["function"]["name"], function)
    run = _run(order, handler, shared, line)
    body = handler.bind(run)
    if wrappers:
        body = wrap(wrappers, run, body, is_async=handler.is_async)
    return _await(body, run) if handler.is_async else body()


def _await(body: Callable[[], Any], run: BaseRun) -> Any:
    """Drive a coroutine; one that is asked to stop is cancelled."""
    import asyncio

    async def carry_out() -> Any:
        task = asyncio.ensure_future(awaited(body()))
        while not (await asyncio.wait([task], timeout=_LOOK))[0]:
            if run.cancelled:
                task.cancel()
        return await task

    try:
        return asyncio.run(carry_out())
    except asyncio.CancelledError:
        run.check()
        raise


# --- the run ---------------------------------------------------------------------------------------------------------


def _run(order: dict[str, Any], handler: Handler, shared: Shared, line: _Line) -> BaseRun:
    boot, zone = SystemClock().boot, load_zone(order["zone"]).info

    def stopped() -> Stop | None:
        told = shared.stopped()
        if told is not None:
            return Stop(*told)
        if boot() >= shared.trusted_until():
            return Stop("lost", "this node could not renew its lease in time")
        return None

    facts = {
        name: _unpacked(packed, lambda us: from_us(us).astimezone(zone)) for name, packed in order["facts"].items()
    }
    effects = partial(make_effects, _Verbs(order).make, order["session"], order["scope"])
    return run_class(handler.is_async)(**facts, stopped=stopped, report=line.progress, effects=effects)


def _unpacked(packed: Any, moment: Callable[[int], datetime]) -> Any:
    kind, value = packed
    if kind == "at":
        return moment(value)
    if kind == "previous":
        inner = {name: _unpacked(each, moment) for name, each in value.items()}
        return Previous(**inner | {"status": Status(inner["status"])})
    if kind == "tuple":
        return tuple(_unpacked(each, moment) for each in value)
    return value


class _Verbs:
    """Opens the store when the body first asks for something that needs it, once however many threads ask."""

    def __init__(self, order: dict[str, Any]) -> None:
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
                self._made = RunVerbs(attempt, Place(store, Threads(), attempt.node, _no_tie))
        return self._made


def _no_tie() -> Any:
    raise ConflictError("a run's own verbs are tied to its node's session.")


# --- the answer ------------------------------------------------------------------------------------------------------


class _Line:
    """What the worker says to the node, each a line of JSON by one thread at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._mutex = threading.Lock()
        self._progress: dict[str, Any] | None = None
        self._next = 0.0

    def progress(self, progress: dict[str, Any]) -> None:
        """Told now and then, and for the last time with the answer."""
        self._progress = progress
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _TELL
            self._say({"progress": progress})

    def answer(self, kind: str, what: Any) -> None:
        self._say({"answer": {"kind": kind, "what": what}} | ({"progress": self._progress} if self._progress else {}))

    def _say(self, said: dict[str, Any]) -> None:
        left = json.dumps(said).encode() + b"\n"
        with self._mutex:
            while left:
                left = left[os.write(self._fd, left) :]


def _returned(value: Any) -> tuple[str, Any]:
    """Small JSON travels; of anything else only why it does not. What was only promised is a failure."""
    why = unfinished(value)
    if why is not None:
        return "failed", why
    text = result_text(value)
    return ("not kept", text.reason) if isinstance(text, NotKept) else ("value", value)


def _raised(error: BaseException) -> tuple[str, str]:
    if isinstance(error, Cancelled):
        return "cancelled", str(error)
    if isinstance(error, LeaseLost):
        return "lost", str(error)
    if isinstance(error, TimedOut):
        return "timed out", str(error)
    return "failed", error_text(error)
