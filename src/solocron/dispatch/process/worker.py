"""The worker: finds the function, gives it its run, and sends back what it returned or raised."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from solocron import spans, surroundings
from solocron.clock import SystemClock
from solocron.dispatch import current
from solocron.dispatch.contract import Stop
from solocron.dispatch.process.shared import Shared
from solocron.dispatch.process.ward import RemoteWard
from solocron.errors import Cancelled, LeaseLost, TimedOut
from solocron.jobs.address import FunctionAddress, find
from solocron.jobs.around import wrap
from solocron.jobs.registry import make_handler
from solocron.jobs.results import NotKept, error_text, result_text
from solocron.jobs.unfinished import awaited, unfinished
from solocron.stores.ward import Ward

__all__ = ["work"]

_PR_SET_PDEATHSIG = 1
_TELL = 0.2
_LOOK = 0.05


def work(order: dict[str, Any], report: int, questions: int, shared: Shared) -> None:
    """Carry the order out and send the result; whatever the body raises is one."""
    _end_with_guard()
    _prepare(order)
    line = _Line(report)
    try:
        value, left = _call(order, shared, line, RemoteWard(socket.socket(fileno=questions)))
    except BaseException as error:  # noqa: BLE001 - whatever a body raises is its outcome, SystemExit included
        line.answer(*_raised(error))
    else:
        line.answer(*_returned(value, left))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _end_with_guard() -> None:
    """Let the kernel kill this process when the guard is killed (Linux), in addition to what the guard does."""
    if sys.platform.startswith("linux"):
        guard = os.getppid()
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guard:
            os._exit(1)


def _prepare(order: dict[str, Any]) -> None:
    """Take over the import path and surroundings of the node, and the job's share of the machine."""
    surroundings.carries_a_run = True
    sys.path[:] = order["path"]
    sys.argv[:] = order["argv"]
    os.environ.pop("PYTHONPATH", None)
    if order["environ"] is not None:
        os.environ["PYTHONPATH"] = order["environ"]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if order["cpu"] is not None and order["cpu"] < len(cores):
        # Random ones: all children on the first core would leave the others idle.
        os.sched_setaffinity(0, random.sample(cores, order["cpu"]))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what was printed before a kill is seen


def _call(order: dict[str, Any], shared: Shared, line: _Line, ward: Ward) -> tuple[Any, str | None]:
    """Return what the function returned, and what it began and did not carry out."""
    if order["setup"] is not None:
        find(FunctionAddress(**order["setup"]))()
    function = find(FunctionAddress(**order["function"]))
    wrappers = [find(FunctionAddress(**each)) for each in order["around"]]
    if not logging.root.handlers:  # its log goes where its output goes
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    handler = make_handler(order["function"]["name"], function)
    make_run = find(FunctionAddress(**order["make_run"]))
    run = make_run(order, is_async=handler.is_async, stopped=_stop_of(shared), report=line.progress, ward=ward)
    current.enter(lambda: run)
    if order["trace"] is not None:
        _continue_trace(order["trace"])
    body = handler.bind(run)
    if wrappers:
        body = wrap(wrappers, run, body, is_async=handler.is_async)
    value = _await(body, run) if handler.is_async else body()
    return value, run._unfinished()


def _continue_trace(traceparent: str) -> None:
    """Make the span of the run the parent of those that the function makes here, if this process has tracing."""
    try:
        from opentelemetry import context, propagate, trace
    except ModuleNotFoundError:
        return
    context.attach(propagate.extract({"traceparent": traceparent}))
    spans.maker.set(spans.make_spans(trace.get_tracer("solocron")))


def _await(body: Callable[[], Any], run: Any) -> Any:
    """Drive a coroutine; cancel it when it must stop."""
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


def _stop_of(shared: Shared) -> Callable[[], Stop | None]:
    """Return the function by which the run checks whether it must stop: a frozen node finds out here first."""
    boot = SystemClock().boot

    def stopped() -> Stop | None:
        told = shared.stopped()
        if told is not None:
            return Stop(*told)
        if boot() >= shared.trusted_until():
            return Stop("lost", "this node could not renew its lease in time")
        return None

    return stopped


# --- the result ------------------------------------------------------------------------------------------------------


class _Line:
    """Messages of the worker to the node: lines of JSON, written by one thread at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._mutex = threading.Lock()
        self._progress: dict[str, Any] | None = None
        self._next = 0.0

    def progress(self, progress: dict[str, Any]) -> None:
        """Report progress, at most once in `_TELL` seconds, and for the last time with the result."""
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


def _returned(value: Any, left: str | None) -> tuple[str, Any]:
    """Return the value if it is small JSON, else why it is not kept. Work that was only promised is a failure."""
    why = unfinished(value) or left
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
    return "raised", error_text(error)
