"""A relay before a member of etcd that shifts the `Date` of its replies: what clients see of one whose clock is off.

etcd is written in Go, which asks the kernel for the time and cannot be deceived from outside, and the kernel has one
wall clock for all. But a client learns the time of a member from this header and from nothing else.
"""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from contextlib import suppress
from email.utils import formatdate, parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

__all__ = ["DateRelay", "Shift"]

_MARK = b"Date: "
_DATE = re.compile(rb"Date: ([A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)")
_LENGTH = len(_MARK) + 29
"""All dates have the same length, so that nothing else in a reply changes."""


class Shift:
    """Shifts the dates of one stream of bytes; a date that is not there to its end waits for the rest."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rest = b""

    def take(self, data: bytes) -> bytes:
        """Return what may be sent on by now."""
        whole = _DATE.sub(self._shifted, self._rest + data)
        at = self._begun(whole)
        self._rest = whole[at:]
        return whole[:at]

    def _begun(self, whole: bytes) -> int:
        """Return where a date begins whose end is missing; the end of the bytes if there is none."""
        last = whole.rfind(_MARK)
        if last >= 0 and len(whole) - last < _LENGTH:
            return last
        return next((len(whole) - n for n in range(len(_MARK) - 1, 0, -1) if whole.endswith(_MARK[:n])), len(whole))

    def _shifted(self, found: re.Match[bytes]) -> bytes:
        told = parsedate_to_datetime(found[1].decode()).timestamp()
        return _MARK + formatdate(told + self._seconds, usegmt=True).encode()


class DateRelay:
    """Listens on a free loopback port within the block. Where the member is away, a connection is closed at once."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        relay = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                relay._carry(self.request)

        self._target = (host, port)
        self._seconds = seconds
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"date-relay-{self.port}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _carry(self, client: socket.socket) -> None:
        try:
            member = socket.create_connection(self._target, timeout=5)
        except OSError:
            return
        with member:
            member.settimeout(None)
            back = threading.Thread(target=_pump, args=(member, client, Shift(self._seconds).take), daemon=True)
            back.start()
            _pump(client, member, lambda data: data)
            back.join()


def _pump(source: socket.socket, target: socket.socket, change: Any) -> None:
    """Carry bytes until one side ends; then the other side ends too."""
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(change(data))
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
