"""One connection to a member of a ZooKeeper ensemble, and its session.

A thread reads. The server replies in the order of the calls, and tells of a change before any reply that shows it; what
is done with replies and events is done on that thread, so that this order is kept.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.zookeeper import jute
from solocron.stores.swap.zookeeper.address import ZooAddress
from solocron.stores.swap.zookeeper.jute import Operation, Reader
from solocron.stores.swap.zookeeper.login import is_servers_answer, response_to

__all__ = ["Follower", "ZooConnection", "ZooReply"]

_SESSION = 10_000
"""Milliseconds for which a server keeps a silent session. Nothing of ours ends with a session."""
_END, _EVENT, _PING, _AUTH = 0, -1, -2, -4
_FRAME = struct.Struct(">i")
_REQUEST = struct.Struct(">ii")
_NEEDS_LOGIN = -124


class ZooReply(NamedTuple):
    """A reply: the last transaction that its server had seen, an error of `jute`, and what follows."""

    seen: int
    error: int
    content: Reader


Handler = Callable[[ZooReply | None], None]
"""Is called with the reply, or with None if none will come."""


class Follower(Protocol):
    """Follows the changes of watched nodes."""

    def on_event(self, path: str) -> None:
        """Note that a watched node has changed."""
        ...

    def on_idle(self) -> None:
        """Continue after all that is there is handled, or after the connection has broken."""
        ...


class ZooConnection:
    """Made connected. `broken` is set once it is not any more; then it is replaced, never repaired."""

    def __init__(self, address: ZooAddress) -> None:
        self._address = address
        self._where = address.parts.masked
        self._follower: Follower | None = None
        self.host = address.hosts[0]
        self.process = os.getpid()
        self.broken = threading.Event()
        self.why = ""
        self._writing = threading.Lock()
        self._pending: deque[Handler] = deque()
        self._pings = 0
        self._xid = 0
        self._buffer = bytearray()
        self._socket = self._connect()
        self._thread = threading.Thread(target=self._read, name=f"solocron-zookeeper-{self.host[1]}", daemon=True)
        self._thread.start()

    def follow(self, follower: Follower) -> None:
        """Report changes to a follower from now on; to be called before the first watch is set."""
        self._follower = follower

    # --- connecting

    def _connect(self) -> socket.socket:
        try:
            sock = socket.create_connection(self.host, timeout=self._address.timeout)
        except OSError as error:
            self._address.failed(self.host)
            raise self._away(error) from None
        try:
            if self._address.tls is not None:
                sock = self._address.tls.wrap_socket(sock, server_hostname=self.host[0])
            self._socket = sock
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(_framed(jute.connect(_SESSION)))
            reply = Reader(self._frame())
            reply.number()
            granted = reply.number()
            if granted <= 0:
                raise OSError("it gave no session")
            self._log_in()
            sock.settimeout(granted / 3_000)
        except (OSError, EOFError, struct.error) as error:
            sock.close()
            self._address.failed(self.host)
            text = self._address.parts.scrub(str(error))
            if isinstance(error, ssl.SSLError):
                untrusted = refusal(self._where, text, authority="ca=", own="cert=, key=")
                # A port without TLS looks like a server that is just going away.
                raise untrusted or self._away(f"{text} (zookeepers:// wants the secureClientPort)") from None
            raise self._away(error) from None
        except BaseException:
            sock.close()
            raise
        return sock

    def _log_in(self) -> None:
        """Say who we are; a user that the server refuses is told here, unless only rights on nodes tell."""
        parts = self._address.parts
        if parts.user is None or parts.password is None:
            return
        user, password = parts.user, parts.password.reveal()
        if self._address.login == "digest":
            body = _FRAME.pack(0) + jute.text("digest") + jute.buffer(f"{user}:{password}".encode())
            if self._at_once(_AUTH, Operation(jute.AUTH, body)).error != jute.OK:
                raise self._refused("it does not know the scheme 'digest'")
            return
        challenge = self._sasl(b"")
        if not challenge:
            raise StoreRefused(
                f"{self._where} has no SASL users; nothing was written. Configure it with a JAAS file, or write "
                "?login=digest for users that only the rights of nodes know."
            )
        answer, expected = response_to(challenge, user, password)
        if not is_servers_answer(self._sasl(answer), expected):
            raise self._refused("its answer is wrong")

    def _sasl(self, token: bytes) -> bytes:
        self._xid += 1
        try:
            reply = self._at_once(self._xid, Operation(jute.SASL, jute.buffer(token)))
        except EOFError:
            raise self._refused("it closed the connection") from None
        if reply.error != jute.OK:
            raise self._refused(f"error {reply.error}")
        return reply.content.buffer()

    def _refused(self, why: str) -> StoreRefused:
        return StoreRefused(f"{self._where} refused the user or password ({why}); nothing was written.")

    def _at_once(self, xid: int, operation: Operation) -> ZooReply:
        """Make a call before the thread runs."""
        self._socket.sendall(_framed(_REQUEST.pack(xid, operation.code) + operation.body))
        return _reply(self._frame())[1]

    def _away(self, error: object) -> StoreUnavailable:
        text = self._address.parts.scrub(str(error) or type(error).__name__)
        return StoreUnavailable(
            f"{self._where} cannot be reached: {text}; nothing was written. Look whether a majority of the members "
            "runs and the host and port are right."
        )

    # --- reading

    def _read(self) -> None:
        try:
            while True:
                try:
                    self._handle(self._frame())
                except TimeoutError:
                    self._ping()
                    continue
                if self._follower is not None and not self._is_more():
                    self._follower.on_idle()
        except (OSError, EOFError, ValueError, struct.error, StoreUnavailable) as error:
            self.why = self.why or str(error)
        finally:
            with self._writing:
                self.broken.set()
                waiting, self._pending = self._pending, deque()
            self._socket.close()
            for handler in waiting:
                handler(None)
            if self._follower is not None:
                self._follower.on_idle()

    def _handle(self, frame: bytes) -> None:
        self._pings = 0
        xid, reply = _reply(frame)
        if xid == _EVENT:
            reply.content.number()  # what happened: the node is read in any case
            reply.content.number()
            if self._follower is None:
                raise ValueError("an event came before a watch was set")
            self._follower.on_event(reply.content.text())
        elif xid == _END:
            raise EOFError("the session is closed")
        elif xid != _PING:
            if reply.error == _NEEDS_LOGIN:
                self.why = "it wants a user"
            self._pending.popleft()(reply)

    def _ping(self) -> None:
        """Keep the session; twice without a word from the server, it is gone."""
        self._pings += 1
        if self._pings > 2:
            raise OSError("the server is silent")
        self._send(_REQUEST.pack(_PING, jute.PING))

    def _frame(self) -> bytes:
        size = _FRAME.unpack(self._exactly(_FRAME.size, keep=True))[0]
        return self._exactly(_FRAME.size + size)[_FRAME.size :]

    def _exactly(self, size: int, *, keep: bool = False) -> bytes:
        while len(self._buffer) < size:
            data = self._socket.recv(262_144)
            if not data:
                raise EOFError("the server closed the connection")
            self._buffer += data
        block = bytes(self._buffer[:size])
        if not keep:
            del self._buffer[:size]
        return block

    def _is_more(self) -> bool:
        """Return whether a whole frame is there already."""
        if len(self._buffer) < _FRAME.size:
            return False
        return len(self._buffer) >= _FRAME.size + int(_FRAME.unpack_from(self._buffer)[0])

    # --- calls

    def send(self, operation: Operation, handler: Handler) -> None:
        """Send a call; the reply is handled on the reading thread. What is raised means that it was not sent."""
        with self._writing:
            if self.broken.is_set():
                raise self._away(self.why or "the connection is broken")
            self._xid = self._xid % 2_000_000_000 + 1
            self._pending.append(handler)
            try:
                self._socket.sendall(_framed(_REQUEST.pack(self._xid, operation.code) + operation.body))
            except BaseException as error:
                # Also interrupted in the middle: the server does nothing with a part of a call.
                self._pending.pop()
                self._shut()
                if not isinstance(error, OSError):
                    raise
                raise self._away(error) from None

    def call(self, operation: Operation) -> ZooReply:
        """Make a call and wait for its reply; raise `Lost` if none comes in time."""
        came = threading.Event()
        found: list[ZooReply] = []

        def handle(reply: ZooReply | None) -> None:
            if reply is not None:
                found.append(reply)
            came.set()

        self.send(operation, handle)
        came.wait(self._address.timeout)
        if not found:
            self.give_up()
            raise Lost(self.why or "no reply in time")
        if found[0].error == _NEEDS_LOGIN:
            raise StoreRefused(f"{self._where} wants a user and a password in the URL; nothing was written.")
        if found[0].error == jute.NO_AUTH:
            raise StoreRefused(
                f"{self._where}: the user has not the rights. Give it all of them (cdrwa) on {self._address.prefix} "
                "and what is below it. Nothing was written."
            )
        return found[0]

    def give_up(self) -> None:
        """Leave a member that does not reply in time: the next connection goes to another one."""
        self._address.failed(self.host)
        self._shut()

    def _send(self, packed: bytes) -> None:
        with self._writing:
            self._socket.sendall(_framed(packed))

    def _shut(self) -> None:
        self.broken.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already

    def close(self) -> None:
        """End the session, the connection and its thread."""
        if self.process != os.getpid():
            return  # the parent's: closing it here would end it there
        if not self.broken.is_set():
            try:
                self._send(_REQUEST.pack(_END, jute.CLOSE))
            except OSError:
                pass  # the server ends the session by itself
        self._shut()
        if threading.current_thread() is not self._thread:
            self._thread.join(self._address.timeout)


def _framed(packed: bytes) -> bytes:
    return _FRAME.pack(len(packed)) + packed


def _reply(frame: bytes) -> tuple[int, ZooReply]:
    content = Reader(frame)
    xid, seen, error = content.number(), content.long(), content.number()
    return xid, ZooReply(seen, error, content)
