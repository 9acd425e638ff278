"""A real HTTPS server on loopback with a certificate made for the test, which responds as the test says."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Posted:
    """One request that came in."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.body = body


class Server:
    """Returns the statuses in turn, the last one forever; `slow` sends a byte at a time and never comes to an end."""

    def __init__(self, port: int) -> None:
        self.url = f"https://localhost:{port}"
        self.port = port
        self.posted: list[Posted] = []
        self.statuses = [200]
        self.location: str | None = None
        self.slow = False
        self.over = threading.Event()
        self.came = threading.Semaphore(0)

    def wait(self, number: int = 1) -> None:
        for _ in range(number):
            assert self.came.acquire(timeout=30), f"only {len(self.posted)} requests came"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A throw-away certificate for localhost, and its key."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    ask = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ask += ["-keyout", str(key), "-out", str(made), "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*ask, "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return made, key


@contextmanager
def serving(made: Path, key: Path) -> Iterator[Server]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server.posted.append(Posted(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            server.came.release()
            if server.slow:
                while not server.over.wait(0.05):
                    try:
                        self.wfile.write(b"H")
                    except OSError:
                        return
                return
            self.send_response(server.statuses.pop(0) if len(server.statuses) > 1 else server.statuses[0])
            if server.location is not None:
                self.send_header("Location", server.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """A test does not print."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)

    class Quiet(ThreadingHTTPServer):
        daemon_threads = False

        def get_request(self) -> Any:
            raw, address = super().get_request()
            return context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False), address

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that refuse the certificate, or go away, are part of the tests."""

    listener = Quiet(("127.0.0.1", 0), Handler)
    server = Server(listener.server_address[1])
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        listener.shutdown()
        listener.server_close()
        thread.join()
