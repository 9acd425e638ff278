"""A small HTTP server for `/metrics`: the text of the families, and nothing else.

It has no tokens: the text names jobs, pools and nodes of a namespace, and never payloads, results or errors. It listens
on the loopback interface unless told otherwise.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from solocron.errors import ConfigurationError
from solocron.telemetry.families import TEXT, Family, exposition

__all__ = ["MetricsServer"]

_PATIENCE = 10.0
"""Seconds that a client may take for its request."""


_BACKLOG = 128
"""Connections that may wait to be accepted. With the standard library's five, the next ones are dropped while this
process is busy; each tries again after one second, then two, then four: a scrape with a short timeout fails."""


class MetricsServer:
    """Serves from a thread while the `with` block runs."""

    def __init__(self, host: str, port: int, families: Callable[[], tuple[Family, ...]]) -> None:
        class MetricsRequest(BaseHTTPRequestHandler):
            timeout = _PATIENCE
            protocol_version = "HTTP/1.1"
            server_version, sys_version = "solocron", ""

            def do_GET(self) -> None:
                known = self.path.partition("?")[0] == "/metrics"
                body = exposition(families()) if known else "the metrics are at /metrics\n"
                data = body.encode("utf-8", "backslashreplace")
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", TEXT if known else "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: a scrape every few seconds is no news."""

        class MetricsListener(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = _BACKLOG
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

            def handle_error(self, request: object, client_address: object) -> None:
                """Say nothing of a client that went away."""

        try:
            self._server = MetricsListener((host, port), MetricsRequest)
        except OSError as error:
            raise ConfigurationError(
                f"{host}:{port} cannot be listened on ({error.strerror}). Nothing listens. Choose another --port."
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="solocron-metrics", daemon=True)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}/metrics"

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
