"""The inside of `ChaosProxy`: one thread carries bytes both ways and executes the orders of the others.

Everything in transit, bytes as well as the end or the loss of a connection, goes through a queue and is judged by the
faults when it would leave it. So a fault needs no case of its own anywhere else.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from solocron.testing._wire import END, LOSS, Faults, ProxiedConnection, Stream, Traffic

__all__ = ["Relay"]

_CHUNK = 65_536


class Relay:
    """`run` is the thread; `order`, `change`, `wait_for` and `close` are for the others, the rest is its own."""

    def __init__(self, host: str, port: int) -> None:
        self._family, self._address = _resolve(host, port)
        # A refused client must not find another program at our port: this socket keeps it while we do not listen.
        self._place = _bind(0)
        self.port: int = self._place.getsockname()[1]
        self.traffic = Traffic()
        self._faults = Faults()
        self._links: list[ProxiedConnection] = []
        self._counts = dict.fromkeys(("accepted", "requests", "replies", "swallowed", "cut"), 0)
        self._published = threading.Condition()
        self._orders: deque[tuple[Callable[[], None], threading.Event]] = deque()
        self._gate = threading.Lock()
        self._closed = False
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._listener: socket.socket | None = None
        self.listen()
        self._watch()

    # For the other threads.

    def order(self, what: Callable[[], None]) -> None:
        """Have the thread execute this, and return when it is done."""
        obeyed = threading.Event()
        with self._gate:
            if self._closed:
                raise RuntimeError("this proxy is closed")
            self._orders.append((what, obeyed))
            self._ring()
        obeyed.wait()

    def change(self, change: Callable[[Faults], Faults]) -> None:
        """Have the faults changed."""

        def what() -> None:
            self._faults = change(self._faults)

        self.order(what)

    def wait_for(self, enough: Callable[[Traffic], bool], timeout: float) -> Traffic:
        with self._published:
            if not self._published.wait_for(lambda: enough(self.traffic), timeout):
                raise TimeoutError(f"not seen within {timeout} s; the proxy saw {self.traffic}")
            return self.traffic

    def close(self) -> None:
        """Have the thread end; orders given before are still executed."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._ring()

    def _ring(self) -> None:
        try:
            self._waker.send(b"!")
        except BlockingIOError:
            pass  # enough wake-ups are pending

    # Orders.

    def listen(self) -> None:
        if self._listener is None:
            self._listener = _bind(self.port)
            self._listener.listen(128)

    def unlisten(self) -> None:
        if self._listener is not None:
            self._close(self._listener)
            self._listener = None

    def cut(self) -> None:
        for link in list(self._links):
            self._cut(link)

    def redirect(self, host: str, port: int) -> None:
        self._family, self._address = _resolve(host, port)
        self.cut()

    def heal(self) -> None:
        self._faults = Faults()
        for link in [link for link in self._links if link.holed]:
            self._cut(link)
        self.listen()

    # The thread.

    def run(self) -> None:
        try:
            while not (self._closed and not self._orders):
                self._pass()
        finally:
            self._end()

    def _pass(self) -> None:
        """Take what has arrived, execute orders, deliver what is due, report what happened."""
        ready: set[object] = {key.fileobj for key, _ in self._selector.select(self._patience())}
        if self._woken in ready:
            self._woken.recv(_CHUNK)
        if self._listener in ready:
            self._take_client()
        for link in self._links:
            self._collect(link, ready)
        obeyed = []
        while self._orders:
            what, done = self._orders.popleft()
            what()
            obeyed.append(done)
        for link in list(self._links):
            self._deliver(link)
        self._publish()
        self._watch()
        for done in obeyed:
            done.set()

    def _patience(self) -> float | None:
        """Return the seconds until something delayed is due; None if nothing is."""
        streams = [stream for link in self._links if link.connected for stream in link.streams if stream.chunks]
        due = [stream.chunks[0][0] + self._faults.delay for stream in streams if not stream.blocked]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _watch(self) -> None:
        """Tell the selector what can happen next."""
        events: dict[socket.socket, int] = {self._woken: selectors.EVENT_READ}
        if self._listener is not None:
            events[self._listener] = selectors.EVENT_READ
        for link in self._links:
            if not link.connected:
                events[link.target] = selectors.EVENT_WRITE
            for stream in link.streams:
                if link.wants(stream):
                    events[stream.source] = events.get(stream.source, 0) | selectors.EVENT_READ
                if stream.blocked:
                    events[stream.sink] = events.get(stream.sink, 0) | selectors.EVENT_WRITE
        known = {key.fileobj: key.events for key in self._selector.get_map().values()}
        for gone in known.keys() - events.keys():
            self._selector.unregister(gone)
        for one, wanted in events.items():
            if one not in known:
                self._selector.register(one, wanted)
            elif known[one] != wanted:
                self._selector.modify(one, wanted)

    def _publish(self) -> None:
        held = sum(stream.held for link in self._links for stream in link.streams)
        traffic = Traffic(open=len(self._links), held=held, **self._counts)
        if traffic != self.traffic:
            with self._published:
                self.traffic = traffic
                self._published.notify_all()

    def _end(self) -> None:
        with self._gate:  # from here on no order can be given
            self._closed = True
            for _, obeyed in self._orders:
                obeyed.set()
        for link in list(self._links):
            self._drop(link)
        self.unlisten()
        self._publish()
        for one in (self._woken, self._waker, self._place):
            self._close(one)
        self._selector.close()

    # Connections.

    def _take_client(self) -> None:
        assert self._listener is not None
        try:
            client, _ = self._listener.accept()
        except OSError:
            return  # the client gave up in the meantime
        self._counts["accepted"] += 1
        target = socket.socket(self._family, socket.SOCK_STREAM)
        for side in (client, target):
            side.setblocking(False)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = ProxiedConnection(client, target, Stream("requests", client, target), Stream("replies", target, client))
        self._links.append(link)
        if target.connect_ex(self._address) not in (0, errno.EINPROGRESS):
            link.connected = True
            link.replies.push(LOSS)

    def _collect(self, link: ProxiedConnection, ready: set[object]) -> None:
        """Put what has arrived into the queues."""
        if not link.connected and link.target in ready:
            link.connected = True
            if link.target.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                link.replies.push(LOSS)
        for stream in link.streams:
            if stream.sink in ready:
                stream.blocked = False
            if stream.source in ready and link.wants(stream):
                try:
                    stream.push(stream.source.recv(_CHUNK))
                except BlockingIOError:
                    pass
                except OSError:
                    stream.push(LOSS)

    def _deliver(self, link: ProxiedConnection) -> None:
        for stream, back in (link.streams, link.streams[::-1]):
            try:
                while link.connected and not link.dropped and not stream.blocked and self._pour(link, stream):
                    pass
            except BlockingIOError:
                stream.blocked = True
            except OSError:
                stream.abandon()
                back.push(LOSS)  # it travels the other way, and may be delayed or vanish like anything else
        if not link.dropped and all(stream.done for stream in link.streams):
            self._drop(link)

    def _pour(self, link: ProxiedConnection, stream: Stream) -> bool:
        """Let the first chunk leave the queue, as the faults allow; False if nothing more can leave now."""
        if not stream.chunks:
            return False
        came, data = stream.chunks[0]
        if self._faults.swallow(stream.direction):
            self._counts["swallowed"] += len(data or END)
            stream.shift(len(data or END))
            link.holed = True
            return True
        if came + self._faults.delay > time.monotonic():
            return False
        if data is None:  # LOSS
            self._drop(link)
        elif data == END:
            stream.shift(0)
            stream.done = True
            stream.sink.shutdown(socket.SHUT_WR)
        else:
            self._send(link, stream, data)
        return True

    def _send(self, link: ProxiedConnection, stream: Stream, data: bytes) -> None:
        limit = self._faults.cut_after
        if limit is not None and limit[0] == stream.direction:
            if limit[1] == 0:
                self._faults = replace(self._faults, cut_after=None)
                self._cut(link)
                return
            data = data[: limit[1]]
        sent = stream.sink.send(data)
        stream.shift(sent)
        self._counts[stream.direction] += sent
        if limit is not None and limit[0] == stream.direction:
            self._faults = replace(self._faults, cut_after=(limit[0], limit[1] - sent))

    def _cut(self, link: ProxiedConnection) -> None:
        self._counts["cut"] += 1
        self._drop(link)

    def _drop(self, link: ProxiedConnection) -> None:
        """Close both sides; unless both have received the end, they see a reset."""
        link.dropped = True
        self._links.remove(link)
        for side in (link.client, link.target):
            if not all(stream.done for stream in link.streams):
                # A linger of zero seconds: no orderly close, the peer gets a reset.
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._close(side)

    def _close(self, one: socket.socket) -> None:
        """Unregister and close a socket. The selector first: the next socket may get the same number."""
        try:
            self._selector.unregister(one)
        except KeyError:
            pass
        one.close()


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """Return the first address of a host, as a socket takes it."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return family, address


def _bind(port: int) -> socket.socket:
    """Return a socket at this loopback port (0: a free one), which may share it with another of ours."""
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(("127.0.0.1", port))
        bound.setblocking(False)
    except BaseException:
        bound.close()
        raise
    return bound
