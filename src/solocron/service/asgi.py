"""The ASGI adapter: heads and bodies in, responses out. Nothing but `http` is served, whatever the server speaks.

Questions to the store block, so they run in two threads of their own. A request that finds too many waiting is refused
at once: a slow store must not fill the memory with requests whose callers have left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import quote

from solocron.service.access_log import AccessLog
from solocron.service.bodies import LARGEST_BODY
from solocron.service.guard import Admission
from solocron.service.handle import Service
from solocron.service.host_auth import HostAuthentication
from solocron.service.live import FOREIGN, LiveTimes, Streams
from solocron.service.problems import ProblemError
from solocron.service.request import RequestHead, Response, make_request_id
from solocron.service.watch_loop import WatchLoop

__all__ = ["AsgiService", "Receive", "Scope", "Send"]

log = logging.getLogger("solocron.service")

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_WORKERS = 2
_WAITING = 32
_BODY_WITHIN = 5.0
_ANSWER_WITHIN = 10.0
_POLICY_VIOLATION = 1008


class AsgiService:
    """An ASGI application. It needs no lifespan, and starts no thread before the first request."""

    def __init__(
        self,
        service: Service,
        *,
        auth: HostAuthentication | None = None,
        base: str | None = None,
        below: str = "",
        live: LiveTimes = FOREIGN,
    ) -> None:
        self._service = service
        self._auth = auth
        self._base = base
        self._below = below
        self._log = AccessLog()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streams = Streams(service.watcher, times=live)
        self._watch = WatchLoop(service.watcher, self._streams, self._in_pool, pace=service.pace)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await receive()
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": "not served"})
            case "lifespan":
                await self._lifespan(receive, send)
            case other:
                raise ValueError(f"{other!r} is not served")

    def end_streams(self) -> None:
        """End every open stream, and let no new one begin. May be called by a signal handler or another thread."""
        if self._loop is None:
            self._streams.stopping = True
        else:
            self._loop.call_soon_threadsafe(self._streams.end)

    def shut(self) -> None:
        """End the watch, the threads and the connections, on the loop that served it."""
        self._watch.end()
        self.close()

    def close(self) -> None:
        """End the threads and the connections; a question that is under way ends first."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._service.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                self.shut()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = self._head(scope)
        timed = self._log.begin(head)
        try:
            admission = await self._admit(head)
            if isinstance(admission, Response):
                response = admission
            else:
                timed.known(admission)
                if admission.route.streams and head.method == "GET":
                    await self._stream(admission, timed.end, receive, send)
                    return
                response = await self._answer(admission, receive)
        except ProblemError as problem:
            response = self._service.refused(head, problem)
        except Exception:  # noqa: BLE001 - logged with its trace; the caller gets a constant text
            response = self._service.failed(head)
        timed.end(response)
        await send(_start(response))
        await send({"type": "http.response.body", "body": response.body})

    async def _admit(self, head: RequestHead) -> Admission | Response:
        service = self._service
        opened = service.check(head)
        if isinstance(opened, Response):
            return opened
        caller = service.find_caller(head)
        if caller is None and service.awaits_proof(head):
            caller = await self._in_thread(lambda: service.prove(head))
        if caller is None and self._auth is not None and not service.is_public(head):
            caller = await self._auth.find(head, lambda call: self._in_thread(call))
        return service.admit(head, caller)

    async def _answer(self, admission: Admission, receive: Receive) -> Response:
        service = self._service
        body = await _body(receive) if admission.route.writes else b""
        if admission.route.lasts:
            return await _in_own_thread(lambda: service.answer(admission, body))
        if not admission.route.asks_store:
            return service.answer(admission, body)
        response = await self._in_thread(lambda: service.answer(admission, body))
        if admission.route.writes:
            self._watch.hasten()
        if admission.route.watched:
            self._watch.keep()
        return response

    async def _stream(
        self, admission: Admission, known: Callable[[Response], None], receive: Receive, send: Send
    ) -> None:
        """Keep a stream open. It is refused, by a ProblemError, before anything is sent."""
        assert admission.caller is not None
        who, (wanted, response) = admission.caller.identity.name, self._service.subscribe(admission)
        self._streams.check_room(who)
        self._loop = asyncio.get_running_loop()
        self._watch.keep()
        known(response)

        async def is_known() -> bool:
            return isinstance(await self._admit(admission.head), Admission)

        try:
            await self._streams.serve(
                wanted, who=who, is_known=is_known, start=_start(response), receive=receive, send=send
            )
        except Exception:
            # The response has begun, so there is nothing to answer any more; the client comes again with its last id.
            log.exception("request %s: its stream ended early", admission.head.id)
        self._watch.keep()

    async def _in_pool(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._made_pool(), call)

    def _made_pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="solocron-service")
        return self._pool

    async def _in_thread(self, call: Callable[[], T]) -> T:
        if self._waiting >= _WORKERS + _WAITING:
            raise ProblemError(503, "Too many requests wait for the store.", headers=[("Retry-After", "5")])
        future = asyncio.get_running_loop().run_in_executor(self._made_pool(), call)
        self._waiting += 1
        future.add_done_callback(self._left)
        try:
            # Shielded: a thread cannot be stopped, and it gives its connection back only when it is done.
            return await asyncio.wait_for(asyncio.shield(future), _ANSWER_WITHIN)
        except TimeoutError:
            raise ProblemError(
                503, "The store takes too long. A write may have been done.", headers=[("Retry-After", "5")]
            ) from None

    def _left(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # looked at, so that the loop does not report one whose caller has left

    def _head(self, scope: Scope) -> RequestHead:
        base = (scope.get("root_path", "") if self._base is None else self._base).rstrip("/")
        raw = scope.get("raw_path")
        path = quote(scope["path"]) if raw is None else raw.partition(b"?")[0].decode("latin-1")
        shown = quote(base)
        if shown and (path == shown or path.startswith(f"{shown}/")):
            path = path[len(shown) :]
        client = scope.get("client")
        return RequestHead(
            id=make_request_id(),
            method=scope["method"],
            path=path or "/",
            query=scope.get("query_string", b"").decode("latin-1"),
            headers=tuple(
                (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
            ),
            address=None if client is None else client[0],
            secure=scope.get("scheme") == "https",
            base=shown,
            below=self._below,
        )


def _start(response: Response) -> MutableMapping[str, Any]:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
    return {"type": "http.response.start", "status": response.status, "headers": headers}


async def _in_own_thread(call: Callable[[], T]) -> T:
    """Wait for a call that may last: it must not take a place from those that ask the store."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="solocron-tick")
    future = asyncio.get_running_loop().run_in_executor(pool, call)
    pool.shutdown(wait=False)  # the thread ends with the call
    return await asyncio.shield(future)


async def _body(receive: Receive) -> bytes:
    """Read a body within its limits of size and time."""
    found = bytearray()
    try:
        async with asyncio.timeout(_BODY_WITHIN):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ProblemError(408, "The connection ended before the body did. Nothing was done.")
                found += message.get("body", b"")
                if len(found) > LARGEST_BODY:
                    raise ProblemError(413, f"A body may have {LARGEST_BODY} bytes. Nothing was done.")
                if not message.get("more_body", False):
                    return bytes(found)
    except TimeoutError:
        raise ProblemError(408, f"The body did not come within {_BODY_WITHIN:g} s. Nothing was done.") from None
