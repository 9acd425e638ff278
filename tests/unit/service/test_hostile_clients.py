"""Clients that send too slowly, too much or nothing, against the real server: bounded time, and others are served."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from solocron.service import asgi as asgi_module
from solocron.service import heads as heads_module
from solocron.service.asgi import AsgiService
from solocron.service.roles import Role
from solocron.service.server import Listening, opened_socket, serving
from tests.unit.service.kit import TOKENS
from tests.unit.service.kit import world as open_world

HEAD = b"Host: localhost\r\nAuthorization: Bearer " + TOKENS[Role.OPERATE].encode() + b"\r\n"
WITHIN = 0.3


@dataclass
class Served:
    port: int

    def connect(self, sent: bytes) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        found.sendall(sent)
        return found

    def ask(self, sent: bytes) -> bytes:
        """Send all of it, and return all that comes until the server closes."""
        with self.connect(sent) as opened:
            return read(opened)

    def is_well(self) -> bool:
        return b" 200 " in self.ask(b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


def read(opened: socket.socket) -> bytes:
    found = bytearray()
    try:
        while part := opened.recv(65_536):
            found += part
    except ConnectionResetError:
        pass  # it was closed with data of ours unread
    return bytes(found)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(asgi_module, "_BODY_WITHIN", WITHIN)
    monkeypatch.setattr(heads_module, "_HEAD_WITHIN", WITHIN)
    wanted = Listening(port=0)
    app = AsgiService(open_world().service, base="")
    with opened_socket(wanted) as listener, serving(app, wanted, listener):
        yield Served(listener.getsockname()[1])


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        b"GET /api/v1/me HTTP/1.1\r\nHost: local",
        b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\nGET /health/live HTTP/1.1\r\nHo",
    ],
    ids=["nothing", "a letter", "half a head", "half a second head"],
)
def test_a_client_that_does_not_send_its_head_is_dropped(served: Served, sent: bytes) -> None:
    begun = time.monotonic()
    served.ask(sent)
    assert time.monotonic() - begun < 4, "the keep-alive of a connection that has said something would be 5 s"
    assert served.is_well()


def test_a_client_that_sends_its_head_letter_by_letter_is_dropped(served: Served) -> None:
    """A timeout that begins anew with every byte would let it stay forever."""
    with served.connect(b"GET / HTTP/1.1\r\nX: ") as opened:
        over = threading.Event()

        def drip() -> None:
            try:
                while not over.wait(WITHIN / 10):
                    opened.sendall(b"x")
            except OSError:
                pass  # the server has closed it

        thread = threading.Thread(target=drip)
        thread.start()
        begun = time.monotonic()
        assert read(opened) == b""
        took = time.monotonic() - begun
        over.set()
        thread.join()
    assert took < 4


def test_a_client_that_does_not_send_its_body_is_told_so(served: Served) -> None:
    head = b"POST /api/v1/jobs/report/pause HTTP/1.1\r\n" + HEAD
    with served.connect(head + b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{") as opened:
        assert opened.recv(65_536).startswith(b"HTTP/1.1 408 ")
    assert served.is_well()


def test_hundreds_of_idle_clients_keep_no_other_out(served: Served) -> None:
    idle = [served.connect(b"GET / HT") for _ in range(450)]
    begun = time.monotonic()
    while not served.is_well():
        assert time.monotonic() - begun < 15, "those that send nothing hold every place"
    for one in idle:
        one.close()


@pytest.mark.parametrize("size", [17 * 1024, 64 * 1024, 2 * 1024 * 1024])
def test_a_head_that_is_too_long_is_refused_without_being_kept(served: Served, size: int) -> None:
    found = served.ask(b"GET /api/v1/me HTTP/1.1\r\n" + HEAD + b"Connection: close\r\nX: " + b"x" * size + b"\r\n\r\n")
    assert not found or found.split(b" ", 2)[1] in (b"400", b"431"), found[:200]
    assert served.is_well()


def test_a_name_that_another_site_controls_is_refused_on_loopback(served: Served) -> None:
    """DNS rebinding: the page of another site addresses this machine by a name of its own."""
    known = HEAD.replace(b"localhost", b"evil.example:8700")
    found = served.ask(b"GET /api/v1/me HTTP/1.1\r\nConnection: close\r\n" + known + b"\r\n")
    assert found.startswith(b"HTTP/1.1 421 ")
    assert b"set-cookie" not in found.lower()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"POST /api/v1/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    ],
    ids=["TLS", "version", "two hosts", "two spaces", "two lengths", "length and chunks"],
)
def test_what_is_no_request_is_no_bug(served: Served, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    found = served.ask(sent)
    assert not found or found.split(b" ", 2)[1].startswith(b"4"), found[:200]
    assert "Traceback" not in caplog.text
    assert served.is_well()
