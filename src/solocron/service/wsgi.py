"""The WSGI adapter: the same guard and the same routes. WSGI has no streams, so pages ask again instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from solocron.service.access_log import AccessLog
from solocron.service.bodies import LARGEST_BODY
from solocron.service.handle import Service
from solocron.service.host_auth import HostAuthentication
from solocron.service.problems import ProblemError
from solocron.service.request import RequestHead, Response, make_request_id

__all__ = ["WsgiService"]

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class WsgiService:
    """A WSGI application."""

    def __init__(self, service: Service, *, auth: HostAuthentication | None = None) -> None:
        self._service = service
        self._auth = auth
        self._log = AccessLog()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        head = _head(environ)
        timed = self._log.begin(head)
        try:
            response = self._answer(head, environ, timed.known)
        except ProblemError as problem:
            response = self._service.refused(head, problem)
        except Exception:  # noqa: BLE001 - logged with its trace; the caller gets a constant text
            response = self._service.failed(head)
        timed.end(response)
        phrase = HTTPStatus(response.status).phrase
        start_response(f"{response.status} {phrase}", list(response.headers))
        return [response.body]

    def close(self) -> None:
        """End the connections to the store."""
        self._service.close()

    def _answer(self, head: RequestHead, environ: Environ, known: Callable[[Any], None]) -> Response:
        service = self._service
        opened = service.check(head)
        if isinstance(opened, Response):
            return opened
        caller = service.find_caller(head)
        if caller is None and service.awaits_proof(head):
            caller = service.prove(head)
        if caller is None and self._auth is not None and not service.is_public(head):
            caller = self._auth.find_now(head)
        admission = service.admit(head, caller)
        if isinstance(admission, Response):
            return admission
        known(admission)
        return service.answer(admission, _body(environ) if admission.route.writes else b"")


def _head(environ: Environ) -> RequestHead:
    headers = [
        (name[5:].replace("_", "-").lower(), str(value)) for name, value in environ.items() if name.startswith("HTTP_")
    ]
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers.append((name.replace("_", "-").lower(), str(environ[name])))
    return RequestHead(
        id=make_request_id(),
        method=environ["REQUEST_METHOD"],
        # WSGI has decoded the path; no name has a slash, so encoding it again loses nothing.
        path=quote(environ.get("PATH_INFO", "").encode("latin-1")) or "/",
        query=environ.get("QUERY_STRING", ""),
        headers=tuple(headers),
        address=environ.get("REMOTE_ADDR"),
        secure=environ.get("wsgi.url_scheme") == "https",
        base=quote(environ.get("SCRIPT_NAME", "").encode("latin-1")).rstrip("/"),
    )


def _body(environ: Environ) -> bytes:
    """Read a body. Its length must be known: where it is not, a server may let us wait for its end forever."""
    length = environ.get("CONTENT_LENGTH") or "0"
    if environ.get("HTTP_TRANSFER_ENCODING"):
        raise ProblemError(400, "Send a Content-Length; chunks are not read here. Nothing was done.")
    found: bytes = environ["wsgi.input"].read(min(int(length), LARGEST_BODY + 1))
    return found
