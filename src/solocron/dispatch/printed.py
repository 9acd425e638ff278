"""Keep what a body prints with its run, in a process that lives for that one run: what a Pod does.

Standard output and standard error go where they went before, and a copy of both is kept within bounds. What processes
that the body starts print is part of it.
"""

from __future__ import annotations

import os
import selectors
import sys
import threading
from contextlib import suppress
from typing import Any

from solocron.dispatch.contract import Call, Dispatcher, Interrupt
from solocron.dispatch.process.output import Output

__all__ = ["Printed"]

STREAMS = (1, 2)
DRAIN_SECONDS = 1.0
"""How long the end of a body waits for its last lines: a process that it left behind may keep the pipe open."""


class Printed:
    """A dispatcher whose calls report what their bodies print. One body at a time: the streams are the process's."""

    def __init__(self, inner: Dispatcher) -> None:
        self._inner = inner

    def submit(self, call: Call) -> Interrupt:
        return self._inner.submit(_PrintedCall(call))

    def close(self) -> None:
        self._inner.close()


class _PrintedCall:
    """A call whose output is copied from its begin to its end."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._copy: _Copy | None = None
        self.name = call.name
        self.body = call.body
        self.away = call.away

    def begin(self) -> bool:
        if not self._call.begin():
            return False
        with suppress(OSError):  # a process without such streams has nothing to keep
            self._copy = _Copy()
        return True

    def end(self, value: Any, error: BaseException | None) -> None:
        if self._copy is not None:
            printed = self._copy.end()
            if printed:
                self._call.away().printed(printed)
        self._call.end(value, error)


class _Copy:
    """Both streams as pipes: a thread writes what comes to the streams as they were, and keeps a copy."""

    def __init__(self) -> None:
        _flush()
        self._kept = Output()
        self._saved = [(stream, os.dup(stream)) for stream in STREAMS]
        self._pipes = selectors.DefaultSelector()
        for stream, saved in self._saved:
            read, write = os.pipe()
            os.dup2(write, stream)
            os.close(write)
            self._pipes.register(read, selectors.EVENT_READ, saved)
        self._thread = threading.Thread(target=self._read, name="solocron-printed", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while self._pipes.get_map():
            for key, _ in self._pipes.select():
                more = os.read(key.fd, 65_536)
                self._kept.add(more)
                _write(key.data, more)
                if not more:
                    self._pipes.unregister(key.fd)
                    os.close(key.fd)

    def end(self) -> str:
        """Put the streams back, and return what was kept."""
        _flush()
        for stream, saved in self._saved:
            os.dup2(saved, stream)  # closes the pipe on this side, so that its reader comes to an end
        self._thread.join(DRAIN_SECONDS)
        if not self._thread.is_alive():
            for _, saved in self._saved:
                os.close(saved)
        return self._kept.text()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):  # none, closed, or gone
            stream.flush()


def _write(fd: int, data: bytes) -> None:
    """Write it all; a stream whose reader is gone keeps nothing from the body."""
    with suppress(OSError):
        while data:
            data = data[os.write(fd, data) :]
