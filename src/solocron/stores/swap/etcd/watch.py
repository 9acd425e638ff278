"""The stream of one key: `/v3/watch`, read on the thread that waits."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from solocron.errors import StoreUnavailable
from solocron.stores.swap.etcd.link import EtcdLink, EtcdWire, packed_text, unpacked_text

__all__ = ["EtcdWatch"]

_LOOK = 0.25
"""Seconds after which a waiting thread looks whether the client was closed."""


class EtcdWatch:
    """One stream, opened when a thread first waits and kept between two waits."""

    def __init__(self, link: EtcdLink, key: str) -> None:
        self._link = link
        self._key = key
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a fork."""
        self._process = os.getpid()
        self._wire: EtcdWire | None = None
        self._buffer = b""
        self._line = b""
        self._busy = threading.Lock()
        self.closed = threading.Event()

    def close(self) -> None:
        """End a wait; a thread that reads the stream closes it."""
        self.closed.set()
        if self._busy.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._busy.release()

    def wait(self, after: int, timeout: float) -> tuple[int, Sequence[str | None]]:
        """Return values written after a revision, and the revision of the last; between looks the time is sharpened."""
        until = time.monotonic() + timeout
        with self._busy:
            while True:
                left = until - time.monotonic()
                try:
                    if self._wire is None:
                        self._open(after)
                    question = self._link.time.next_question()
                    place, values = self._read(
                        after, max(0.0, min(left, _LOOK, _LOOK if question is None else question))
                    )
                except (OSError, ValueError) as error:
                    self._drop()
                    if self.closed.is_set():
                        return after, []
                    raise StoreUnavailable(f"{self._link.url} broke the stream of notifications: {error}") from None
                except BaseException:
                    self._drop()
                    raise
                if values or left <= 0 or self.closed.is_set():
                    if self.closed.is_set():
                        self._drop()
                        return after, []
                    return place, values
                if question is not None and question <= _LOOK:
                    self._link.read("/v3/kv/range", {"key": packed_text("\0"), "limit": 1})

    def _open(self, after: int) -> None:
        wire = self._link.connect(self._link.address.timeout)
        body = json.dumps({"create_request": {"key": packed_text(self._key), "start_revision": after + 1}}).encode()
        host, port = wire.host
        headers = {
            "Host": f"{host}:{port}", "Content-Type": "application/json", "Content-Length": str(len(body)),
            **self._link.headers,
        }  # fmt: skip
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._wire, self._buffer, self._line = wire, b"", b""
        wire.connection.sock.sendall(f"POST /v3/watch HTTP/1.1\r\n{lines}\r\n".encode() + body)
        while b"\r\n\r\n" not in self._buffer:
            self._receive(self._link.address.timeout)
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise ValueError(head.partition(b"\r\n")[0].decode(errors="replace"))

    def _receive(self, timeout: float) -> None:
        assert self._wire is not None
        sock = self._wire.connection.sock
        sock.settimeout(max(timeout, 0.001))
        data = sock.recv(65_536)
        if not data:
            raise ValueError("the server closed it")
        self._buffer += data

    def _read(self, after: int, timeout: float) -> tuple[int, list[str | None]]:
        place, values = after, list[str | None]()
        with suppress(TimeoutError):
            if not self._whole():
                self._receive(timeout)
        for message in self._messages():
            result = message.get("result", {})
            if result.get("canceled"):
                # Compacted away, or refused: what was written meanwhile cannot be told, and the next wait begins anew.
                self._drop()
                return max(after, int(result.get("compact_revision", 0)) - 1), [None]
            if "error" in message:
                raise ValueError(str(message["error"])[:200])
            for event in result.get("events", ()):
                kv = event.get("kv", {})
                place = max(place, int(kv.get("mod_revision", 0)))
                values.append(unpacked_text(kv.get("value", "")))
        return place, values

    def _whole(self) -> bool:
        """Return whether the buffer holds a whole chunk."""
        size, found, rest = self._buffer.partition(b"\r\n")
        return bool(found) and len(rest) >= int(size or b"0", 16) + 2

    def _messages(self) -> Iterator[dict[str, Any]]:
        """Take whole chunks off the buffer, and whole lines of JSON off those."""
        while self._whole():
            size, _, rest = self._buffer.partition(b"\r\n")
            length = int(size, 16)
            self._line += rest[:length]
            self._buffer = rest[length + 2 :]
            if length == 0:
                raise ValueError("the server ended it")
        *lines, self._line = self._line.split(b"\n")
        for line in lines:
            if line.strip():
                yield json.loads(line)

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
