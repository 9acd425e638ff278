"""Stand-ins for services that cannot be had for tests: what their documents say of a few calls, and no proof of them.

Each honours its conditions under one lock, and can be told to err at the next creation of a commit.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["Handler", "Reply", "StandIn"]

Reply = tuple[int, bytes]
Fault = Callable[[Callable[[], Reply]], Reply | None]


class StandIn(ThreadingHTTPServer):
    """Serves objects on the loopback."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    """Clients that may wait to be let in. Of more the kernel drops the first packet, and they try again after a second:
    with the usual five, some of twenty clients at once gave up on a busy machine."""

    def __init__(self, handler: type[Handler], *, ignores_conditions: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.ignores_conditions = ignores_conditions
        self.objects: dict[str, bytes] = {}
        self.mutex = threading.Lock()
        self.faults: list[Fault] = []
        """Each gets the next creation of a commit: it makes it or not, and returns the reply, or None for silence."""
        self._links: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        self._links.add(request)
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._links.discard(request)

    def create(self, name: str, content: bytes, taken: Reply, made: Reply) -> Reply | None:
        """Create an object if it is absent, unless a fault is at hand."""

        def create() -> Reply:
            with self.mutex:
                if name in self.objects and not self.ignores_conditions:
                    return taken
                self.objects[name] = content
                return made

        return self.faults.pop(0)(create) if self.faults and "/c/" in name else create()

    def delete(self, name: str) -> None:
        with self.mutex:
            self.objects.pop(name, None)

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
        for link in list(self._links):
            link.close()


class Handler(BaseHTTPRequestHandler):
    """Reads a call; `serve` of each stand-in replies to it."""

    server: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        reply = self.serve(unquote(parts.path), dict(parse_qsl(parts.query, keep_blank_values=True)), body)
        if reply is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, content = reply
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if status != 204:
            self.wfile.write(content)
        self.wfile.flush()

    do_GET = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - as the base class finds them

    def serve(self, path: str, query: dict[str, str], body: bytes) -> Reply | None:
        raise NotImplementedError
