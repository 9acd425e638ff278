"""`solocron serve`: the service in a process of its own, on the loopback interface unless asked otherwise.

Everything that could expose it by mistake is refused before a socket is opened.
"""

from __future__ import annotations

import ipaddress
import re
import signal
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from solocron.errors import ConfigurationError, MissingExtra
from solocron.loopback import is_loopback
from solocron.service.asgi import AsgiService
from solocron.service.namespaces import NamespacesApp
from solocron.service.private_file import check_private

if TYPE_CHECKING:
    import uvicorn

__all__ = ["Listening", "check_listening", "make_server", "opened_socket", "serving", "url_of"]

_NOTHING = "Nothing listens."


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where and how the service listens."""

    host: str = "127.0.0.1"
    port: int = 8700
    base: str = ""
    """The path below which a proxy serves it: empty, or `/a/b`."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded-Proto and X-Forwarded-For are believed."""
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def is_loopback(self) -> bool:
        """True if no other machine can reach it."""
        return is_loopback(self.host)

    @property
    def has_tls(self) -> bool:
        """True if it speaks TLS itself."""
        return self.tls_cert is not None


def check_listening(wanted: Listening, *, has_tokens: bool) -> None:
    """Refuse what would be open to others: an address without tokens, or one that sends them in clear."""
    if not 0 <= wanted.port <= 65_535:
        raise ConfigurationError(f"--port {wanted.port} is not a port: 0 to 65535. {_NOTHING}")
    if (wanted.tls_cert is None) != (wanted.tls_key is None):
        raise ConfigurationError(f"--tls-cert and --tls-key belong together. {_NOTHING}")
    if wanted.base and not re.fullmatch(r"(/[A-Za-z0-9_.~-]+)+", wanted.base):
        raise ConfigurationError(f"--base-path {wanted.base!r:.80} is not a path such as /solocron. {_NOTHING}")
    for address in wanted.proxies:
        try:
            ipaddress.ip_network(address)
        except ValueError:
            raise ConfigurationError(
                f"--behind-proxy {address!r:.80} is not the address of a proxy, such as 127.0.0.1 or 10.0.0.0/8. "
                f"{_NOTHING}"
            ) from None
    if wanted.tls_cert is not None:
        _check_certificate(wanted.tls_cert, wanted.tls_key)
    if wanted.is_loopback:
        return
    if not has_tokens:
        raise ConfigurationError(
            f"--host {wanted.host} can be reached by other machines, so it needs --token-file. {_NOTHING} "
            "Make one: solocron token new NAME --token-file FILE"
        )
    if not wanted.has_tls and not wanted.proxies:
        raise ConfigurationError(
            f"--host {wanted.host} can be reached by other machines, and tokens would be sent in clear. {_NOTHING} "
            "Give --tls-cert and --tls-key, or --behind-proxy ADDRESS if a proxy speaks TLS."
        )


def _check_certificate(cert: str, key: str | None) -> None:
    check_private(Path(key or cert), what="key", untouched=_NOTHING)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "they do not belong together"
        raise ConfigurationError(f"--tls-cert {cert} with --tls-key {key} cannot be used ({why}). {_NOTHING}") from None


def url_of(wanted: Listening, port: int) -> str:
    """Return the address at which it is reached from this machine."""
    shown = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    return f"{'https' if wanted.has_tls else 'http'}://{shown}:{port}{wanted.base}/"


def opened_socket(wanted: Listening) -> socket.socket:
    """Open the socket, so that an address in use is one clear message."""
    family = socket.AF_INET6 if ":" in wanted.host else socket.AF_INET
    try:
        return socket.create_server((wanted.host, wanted.port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"{wanted.host}:{wanted.port} cannot be listened on ({error.strerror}). {_NOTHING} Choose another --port."
        ) from None


def make_server(app: AsgiService | NamespacesApp, wanted: Listening) -> uvicorn.Server:
    """Return the server, which `run(sockets=[...])` starts; SIGTERM and SIGINT end it."""
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise MissingExtra(f"serving needs the package 'uvicorn': pip install \"solocron[web]\". {_NOTHING}") from None

    from solocron.service.heads import BoundedHeads

    class Server(uvicorn.Server):
        """Ends the streams at a signal, and then itself, with exit code 0.

        uvicorn's own would wait for the streams, and raise the signal again after the requests have ended.
        """

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.end_streams()
            if self.should_exit and sig == signal.SIGINT:
                self.force_exit = True
            self.should_exit = True

    proxies: Sequence[str] = wanted.proxies
    config = uvicorn.Config(
        app,
        http=BoundedHeads,  # on h11, whose limit on the size of headers can be set
        h11_max_incomplete_event_size=20 * 1024,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=5,
        timeout_graceful_shutdown=10,
        limit_concurrency=400,
        ssl_certfile=wanted.tls_cert,
        ssl_keyfile=wanted.tls_key,
    )
    return Server(config)


@contextmanager
def serving(app: AsgiService | NamespacesApp, wanted: Listening, listener: socket.socket) -> Iterator[None]:
    """Serve from a thread while the body runs, beside a node that has the main thread and its signals."""
    server = make_server(app, wanted)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="solocron-serve")
    thread.start()
    try:
        yield
    finally:
        app.end_streams()
        server.should_exit = True
        thread.join()
