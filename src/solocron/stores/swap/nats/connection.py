"""One connection to a NATS server: its plain protocol, as much of it as JetStream's requests and streams need.

A thread reads; each message goes to the subscription that it is for. Requests of all threads share the connection, and
each has a reply subject of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.nats.address import NatsAddress

__all__ = ["NatsConnection", "NatsMessage", "Outgoing"]

_FORBIDDEN = re.compile(r'Permissions Violation for (Publish|Subscription) to "([^"]*)"')


class NatsMessage(NamedTuple):
    """A message as it came in."""

    subject: str
    reply: str
    headers: Mapping[str, str]
    status: str
    data: bytes


class Outgoing(NamedTuple):
    """A message to send."""

    subject: str
    data: bytes = b""
    headers: Mapping[str, str] = {}


Handler = Callable[[NatsMessage], None]


class _Reply:
    __slots__ = ("came", "forbidden", "message", "subjects")

    def __init__(self, subjects: frozenset[str]) -> None:
        self.came = threading.Event()
        self.message: NatsMessage | None = None
        self.subjects = subjects
        """Where the request is published."""
        self.forbidden = ""
        """What the server said if this user may not publish there."""


class NatsConnection:
    """Made connected. `broken` is set once it is not any more; then it is replaced, never repaired."""

    def __init__(self, address: NatsAddress) -> None:
        self._address = address
        self._where = address.parts.masked
        self.host = address.hosts[0]
        self.process = os.getpid()
        self.broken = threading.Event()
        self.why = ""
        self._deaf = ""
        """What the server said if this user may not subscribe to replies."""
        self._writing = threading.Lock()
        self._replies: dict[str, _Reply] = {}
        self._numbers = itertools.count(1)
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._handlers: dict[str, Handler] = {}
        self._socket, self.info, self._rest = self._connect()
        self._file = _Reader(self._socket, self._rest)
        self._login()
        self._thread = threading.Thread(target=self._read, name=f"solocron-nats-{self.host[1]}", daemon=True)
        self._thread.start()
        self.subscribe(f"{self._inbox}.*", self._replied)

    # --- connecting

    def _connect(self) -> tuple[socket.socket, dict[str, Any], bytes]:
        timeout, text = self._address.timeout, ""
        try:
            sock = socket.create_connection(self.host, timeout=timeout)
        except OSError as error:
            self._address.failed(self.host)
            raise self._away(error) from None
        try:
            line, rest = b"", b""
            while b"\r\n" not in line:
                data = sock.recv(65_536)
                if not data:
                    raise OSError("it closed the connection")
                line += data
            line, _, rest = line.partition(b"\r\n")
            info = json.loads(line.partition(b" ")[2])
            if self._address.tls is not None:
                if not (info.get("tls_required") or info.get("tls_available")):
                    raise StoreRefused(
                        f"{self._where} offers no TLS, which the URL demands; nothing was written. Switch it on."
                    )
                sock = self._address.tls.wrap_socket(sock, server_hostname=self.host[0])
                rest = b""
            elif info.get("tls_required"):
                raise StoreRefused(f"{self._where} demands TLS; nothing was written. Write tls:// instead of nats://.")
            sock.settimeout(None)
        except (OSError, ValueError) as error:
            sock.close()
            self._address.failed(self.host)
            text = self._address.parts.scrub(str(error))
            untrusted = (
                refusal(self._where, text, authority="ca=", own="cert=, key=")
                if isinstance(error, ssl.SSLError)
                else None
            )
            raise untrusted or self._away(error) from None
        except BaseException:
            sock.close()
            raise
        return sock, info, rest

    def _login(self) -> None:
        """Say who we are, and wait for the first answer: a refused user is told here."""
        parts = self._address.parts
        words: dict[str, Any] = {
            "verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "python",
            "version": "1", "protocol": 1, "name": "solocron",
        }  # fmt: skip
        password = parts.password.reveal() if parts.password is not None else None
        if parts.user is not None and password is not None:
            words |= {"user": parts.user, "pass": password}
        elif parts.user is not None or password is not None:
            words["auth_token"] = parts.user or password
        try:
            self._socket.settimeout(self._address.timeout)
            self._socket.sendall(f"CONNECT {json.dumps(words)}\r\nPING\r\n".encode())
            while True:
                line = self._file.line()
                if line.startswith(b"PONG"):
                    break
                if line.startswith(b"-ERR"):
                    text = parts.scrub(line.decode(errors="replace"))
                    raise StoreRefused(f"{self._where} refused the user or password ({text}); nothing was written.")
            self._socket.settimeout(None)
        except (OSError, EOFError) as error:
            self._socket.close()
            self._address.failed(self.host)
            raise self._away(error) from None
        except BaseException:
            self._socket.close()
            raise

    def _away(self, error: object) -> StoreUnavailable:
        text = self._address.parts.scrub(str(error) or type(error).__name__)
        return StoreUnavailable(
            f"{self._where} cannot be reached: {text}; nothing was written. Look whether the server runs and the host "
            "and port are right."
        )

    # --- reading

    def _read(self) -> None:
        try:
            while True:
                line = self._file.line()
                word = line[:4].upper()
                if word in (b"MSG ", b"HMSG"):
                    self._message(line)
                elif word == b"PING":
                    self._send(b"PONG\r\n")
                elif word == b"-ERR":
                    self._error(self._address.parts.scrub(line.decode(errors="replace")))
        except (OSError, EOFError, ValueError, StoreUnavailable) as error:
            self.why = self.why or str(error)
        finally:
            self.broken.set()
            self._socket.close()
            for waiting in list(self._replies.values()):
                waiting.came.set()

    def _error(self, text: str) -> None:
        """Take an error. A missing right ends no connection, and brings no reply: the request is told here."""
        forbidden = _FORBIDDEN.search(text)
        if forbidden is None:
            self.why = text
            return
        if forbidden[1] == "Subscription":
            self._deaf = text
        for waiting in list(self._replies.values()):
            if self._deaf or forbidden[2] in waiting.subjects:
                waiting.forbidden = text
                waiting.came.set()

    def _message(self, line: bytes) -> None:
        words = line.decode().split(" ")
        headed = words[0].upper() == "HMSG"
        *middle, size = words[1:]
        subject, sid = middle[0], middle[1]
        reply = middle[2] if len(middle) > (3 if headed else 2) else ""
        whole = self._file.exactly(int(size) + 2)[:-2]
        headers: dict[str, str] = {}
        status = ""
        data = whole
        if headed:
            length = int(middle[-1])
            first, *rest = whole[:length].decode(errors="replace").split("\r\n")
            status = first.removeprefix("NATS/1.0").strip()
            headers = {name: value.strip() for name, colon, value in (one.partition(":") for one in rest) if colon}
            data = whole[length:]
        handler = self._handlers.get(sid)
        if handler is not None:
            handler(NatsMessage(subject, reply, headers, status, data))

    def _replied(self, message: NatsMessage) -> None:
        waiting = self._replies.pop(message.subject.rpartition(".")[2], None)
        if waiting is not None:
            waiting.message = message
            waiting.came.set()

    # --- calls

    def subscribe(self, subject: str, handler: Handler) -> str:
        """Have messages of a subject handled on the reading thread; return the name of the subscription."""
        sid = str(next(self._numbers))
        self._handlers[sid] = handler
        self._send(f"SUB {subject} {sid}\r\n".encode())
        return sid

    def unsubscribe(self, sid: str) -> None:
        self._handlers.pop(sid, None)
        if not self.broken.is_set():
            self._send(f"UNSUB {sid}\r\n".encode())

    def new_inbox(self) -> str:
        return f"_INBOX.{secrets.token_hex(11)}"

    def request(self, messages: Sequence[Outgoing], timeout: float) -> NatsMessage:
        """Send messages in one go and wait for the reply to the last; raise `Lost` if none comes."""
        if self._deaf:
            raise self._refused(self._deaf)
        token = str(next(self._numbers))
        waiting = self._replies[token] = _Reply(frozenset(one.subject for one in messages))
        *first, last = messages
        packed = b"".join([_packed(one, "") for one in first] + [_packed(last, f"{self._inbox}.{token}")])
        try:
            self._send(packed)
            waiting.came.wait(timeout)
        finally:
            self._replies.pop(token, None)
        if waiting.message is not None:
            return waiting.message
        if waiting.forbidden:
            raise self._refused(waiting.forbidden)
        raise Lost(self.why or "no reply in time")

    def _refused(self, text: str) -> StoreRefused:
        return StoreRefused(
            f"{self._where}: the user has not the rights ({text}); nothing was written. Let it publish to $JS.API.> "
            "and to the subjects of its streams, and subscribe to _INBOX.>: see the page on NATS."
        )

    def _send(self, packed: bytes) -> None:
        """Send; what cannot be sent whole does nothing, because NATS takes no part of a message or of a batch."""
        if self.broken.is_set():
            raise self._away(self.why or "the connection is broken")
        try:
            with self._writing:
                self._socket.sendall(packed)
        except OSError as error:
            self.close()
            raise self._away(error) from None

    def close(self) -> None:
        """End the connection and its thread."""
        if self.process != os.getpid():
            return  # the parent's: closing it here would end it there
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already
        if threading.current_thread() is not self._thread:
            self._thread.join(self._address.timeout)


class _Reader:
    """Lines and blocks off a socket."""

    def __init__(self, sock: socket.socket, rest: bytes) -> None:
        self._socket = sock
        self._buffer = bytearray(rest)

    def line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            self._more()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        block = bytes(self._buffer[:size])
        del self._buffer[:size]
        return block

    def _more(self) -> None:
        data = self._socket.recv(262_144)
        if not data:
            raise EOFError("the server closed the connection")
        self._buffer += data


def _packed(message: Outgoing, reply: str) -> bytes:
    to = f"{message.subject} {reply}" if reply else message.subject
    if not message.headers:
        return f"PUB {to} {len(message.data)}\r\n".encode() + message.data + b"\r\n"
    lines = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in message.headers.items()) + "\r\n"
    head = lines.encode()
    return f"HPUB {to} {len(head)} {len(head) + len(message.data)}\r\n".encode() + head + message.data + b"\r\n"
