"""The endpoint: one pass of a scheduler for a caller that has proved who it is. Adapters only carry it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, NamedTuple

from solocron.errors import SolocronError, StoreError
from solocron.http_tick.proof import ProofVerdict, check_proof
from solocron.scheduler import Scheduler
from solocron.scheduler.hooks import core_of, tick_once
from solocron.service.ticking import Ticking
from solocron.views import to_json

__all__ = ["TickEndpoint", "TickResponse"]

log = logging.getLogger("solocron.service")

_LARGEST_BODY = 64 * 1024
_RETRY = {"Retry-After": "5"}
_SPARE = 10.0
"""Seconds before the end of a Lambda at which no more runs are claimed."""


class TickResponse(NamedTuple):
    """The response to a tick."""

    status: int
    json: Mapping[str, Any]
    headers: Mapping[str, str] = {}

    @property
    def body(self) -> bytes:
        return json.dumps(self.json).encode()

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers with those that every answer has."""
        return {
            "Content-Type": "application/json",
            "Content-Length": str(len(self.body)),
            "Cache-Control": "no-store",
            **self.headers,
        }


class TickEndpoint:
    """Does what `POST /api/v1/tick` of the service does, alone at a path of yours. Only POST; the query is not read.

    A run that failed is 200: its retry is Solocron's business and not the platform's.
    """

    def __init__(self, scheduler: Scheduler, *, verify: Any = None) -> None:
        self._scheduler = scheduler
        self._judge = check_proof(verify)
        self._claim_for: float | None = None
        self._ticking = Ticking(self._tick, runs_node=lambda: core_of(scheduler).alive)

    def handle(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> TickResponse:
        """Answer a request; without a good proof nothing is looked at."""
        if method != "POST":
            return TickResponse(405, {"detail": "Only POST ticks."}, {"Allow": "POST"})
        if len(body) > _LARGEST_BODY:
            return TickResponse(413, {"detail": f"A body may have {_LARGEST_BODY} bytes. Nothing was done."})
        verdict = self._verdict({name.lower(): value for name, value in headers.items()}, body)
        if verdict is not ProofVerdict.GOOD:
            return TickResponse(verdict.value, {"detail": "There is no proof that you may tick. Nothing was done."})
        return self._pass()

    def _verdict(self, headers: Mapping[str, str], body: bytes) -> ProofVerdict:
        try:
            return self._judge(headers, body)
        except Exception:
            log.exception("verify= failed, so its caller may not tick")
            return ProofVerdict.WRONG

    def _pass(self) -> TickResponse:
        try:
            answer = self._ticking.run(wait=True)
        except StoreError as error:
            return TickResponse(503, {"detail": str(error)}, _RETRY)
        except SolocronError as error:
            return TickResponse(error.status, {"detail": str(error)})
        except Exception:
            log.exception("a tick failed")
            return TickResponse(500, {"detail": "The tick failed; the log has its trace."})
        return TickResponse(202 if answer.busy else 200, to_json(answer), _RETRY if answer.busy else {})

    def _tick(self) -> Any:
        return tick_once(self._scheduler, claim_for=self._claim_for)

    # --- adapters ------------------------------------------------------------------------------------------------

    async def asgi(
        self, scope: MutableMapping[str, Any], receive: Callable[..., Any], send: Callable[..., Any]
    ) -> None:
        """Serve it as an ASGI application; the pass runs in a thread."""
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']!r} is not served")
        body = bytearray()
        while len(body) <= _LARGEST_BODY:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer = await asyncio.to_thread(self.handle, scope["method"], headers, bytes(body))
        found = [(name.lower().encode(), value.encode()) for name, value in answer.all_headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": found})
        await send({"type": "http.response.body", "body": answer.body})

    def wsgi(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve it as a WSGI application."""
        headers = {name[5:].replace("_", "-"): str(value) for name, value in environ.items() if name[:5] == "HTTP_"}
        length = str(environ.get("CONTENT_LENGTH") or "0")
        size = min(int(length), _LARGEST_BODY + 1) if length.isdecimal() else 0
        answer = self.handle(environ["REQUEST_METHOD"], headers, environ["wsgi.input"].read(size))
        phrase = HTTPStatus(answer.status).phrase
        start_response(f"{answer.status} {phrase}", list(answer.all_headers.items()))
        return [answer.body]

    def django(self, request: Any) -> Any:
        """Serve it as a view of Django; it needs no token against forgery, for it takes no cookie as a proof."""
        from django.http import HttpResponse

        answer = self.handle(request.method, dict(request.headers), request.body)
        return HttpResponse(answer.body, status=answer.status, headers=answer.all_headers)

    django.csrf_exempt = True  # type: ignore[attr-defined]

    def aws_lambda(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Serve it as a handler of AWS Lambda: of a function URL or an API gateway, or called by a schedule.

        An event without HTTP comes from a caller that AWS has let invoke the function; it needs no proof. Claims end
        10 s before the time of the function is over.
        """
        self._claim_for = max(0.0, context.get_remaining_time_in_millis() / 1000 - _SPARE)
        try:
            return self._answer_lambda(event)
        finally:
            self._claim_for = None

    def _answer_lambda(self, event: Mapping[str, Any]) -> dict[str, Any]:
        http = event.get("requestContext", {}).get("http") or event.get("httpMethod")
        if http is None:
            answer = self._pass()
            if answer.status >= 500:
                raise RuntimeError(str(answer.json["detail"]))  # the platform repeats what raises
            return dict(answer.json)
        method = http["method"] if isinstance(http, Mapping) else http
        body = event.get("body") or ""
        raw = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
        answer = self.handle(method, event.get("headers") or {}, raw)
        return {"statusCode": answer.status, "headers": answer.all_headers, "body": answer.body.decode()}
