"""The guard: starts the worker, watches the lease and the worker's memory, and kills all of it in time.

It runs none of the user's code, so nothing that the body does (a C loop that never releases the interpreter, a crash)
can keep it from checking. The end of its pipe, or of the trust in the session, ends the whole group.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from solocron.clock import SystemClock
from solocron.dispatch.process.shared import Shared

_LOOK = 0.25
"""Seconds between two checks of the clock, however long the machine slept."""
_LOOK_AT_MEMORY = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main(control: int, report: int, questions: int) -> NoReturn:
    """Carry one order out; the process ends with it."""
    for fd in (control, report, questions):
        os.set_inheritable(fd, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ignore)
    incoming = _Lines(control)
    order = incoming.wait()
    if order is None:
        sys.exit(0)  # the node is gone, or does not want it any more
    shared = Shared()
    shared.trust(order["until"])
    worker = os.fork()
    if worker == 0:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.close(control)
        from solocron.dispatch.process.worker import work

        work(order, report, questions, shared)
        sys.exit(0)
    _watch(worker, incoming, report, shared, order["memory"])


def _ignore(number: int, frame: object) -> None:
    """Ignore a signal to the node's whole group: it asks the node to drain. The node decides when this child ends."""


def _watch(worker: int, incoming: _Lines, report: int, shared: Shared, memory: int | None) -> NoReturn:
    clock = SystemClock()
    ended = _descriptor(worker)
    pause = _LOOK_AT_MEMORY if memory is not None or ended is None else _LOOK
    while True:
        for said in incoming.read():
            if "until" in said:
                shared.trust(said["until"])
            if "stop" in said:
                shared.stop(*said["stop"])
        # After the renewals that have arrived: a machine that is slow to start a process may have renewed the lease
        # meanwhile.
        left = shared.trusted_until() - clock.boot()
        if incoming.over or left <= 0:
            _end(report, {"deadline": True})
        found, status = os.waitpid(worker, os.WNOHANG)
        if found:
            _end(report, {"ended": os.waitstatus_to_exitcode(status)})
        if memory is not None and (used := _resident(worker)) > memory:
            _end(report, {"memory": used})
        _wait_for(select.POLLIN, incoming.fd, *([] if ended is None else [ended]), seconds=min(left, pause))


def _end(report: int, said: dict[str, Any]) -> NoReturn:
    """Report the reason, if the node can read it, and kill the whole group, this process included."""
    # A new line first: the worker may have been cut off in the middle of one. Never wait for a frozen reader.
    if _wait_for(select.POLLOUT, report):
        try:
            os.write(report, b"\n" + json.dumps(said).encode() + b"\n")
        except OSError:
            pass
    os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _wait_for(event: int, *descriptors: int, seconds: float = 0.0) -> bool:
    """Return whether one of them is ready, or at its end, by then.

    Not `select`: the pipes keep the numbers that they have in the node, and it refuses those above 1,023.
    """
    look = select.poll()
    for descriptor in descriptors:
        look.register(descriptor, event)
    return bool(look.poll(int(seconds * 1000)))  # rounded down: check twice rather than after the deadline


def _descriptor(pid: int) -> int | None:
    """Return a descriptor that is readable once the process has ended; None if the kernel has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _resident(pid: int) -> int:
    """Return the bytes in use by a process and all that it started, as resident sets; 0 outside Linux.

    Pages that a fork shares with its parent count for both.
    """
    total, left, seen = 0, [pid], set()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            total += int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", encoding="ascii") as children:
                    left += map(int, children.read().split())
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile, or there is no /proc
    return total


class _Lines:
    """Lines of JSON from a pipe."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.over = False
        self._rest = b""

    def wait(self) -> dict[str, Any] | None:
        """Return the first line; None at the end of the pipe."""
        while not self.over:
            for said in self._read():
                return said
        return None

    def read(self) -> list[dict[str, Any]]:
        """Return the lines that have arrived."""
        return self._read() if _wait_for(select.POLLIN, self.fd) else []

    def _read(self) -> list[dict[str, Any]]:
        more = os.read(self.fd, 1 << 16)
        self.over = not more
        *lines, self._rest = (self._rest + more).split(b"\n")
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
