"""ASGI and WSGI: the same guard and the same routes through both, and nothing else through either."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from solocron.service import asgi as asgi_module
from solocron.service.asgi import AsgiService
from solocron.service.call import ApiCall, Text
from solocron.service.host_auth import HostAuthentication
from solocron.service.roles import Identity, Role, RouteAccess
from solocron.service.route import Route
from solocron.service.routes import API, ROUTES
from solocron.service.wsgi import WsgiService
from tests.unit.service.kit import TOKENS, World, path_of, query_of
from tests.unit.service.kit import world as open_world

Answer = tuple[int, dict[str, str], bytes]
EVERY = pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")


def scope(path: str, *, method: str = "GET", query: str = "", root: str = "", **headers: str) -> dict[str, Any]:
    given = {"host": "localhost"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": root,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "scheme": "http",
        "client": ("127.0.0.1", 5),
    }


async def ask(app: AsgiService, given: dict[str, Any], *parts: bytes) -> Answer:
    sent: list[Any] = []
    waiting = [
        {"type": "http.request", "body": part, "more_body": at < len(parts) - 1}
        for at, part in enumerate(parts or (b"",))
    ]

    async def receive() -> Any:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(given, receive, send)
    start, *bodies = sent
    content = b"".join(one["body"] for one in bodies)
    return start["status"], {name.decode().lower(): value.decode() for name, value in start["headers"]}, content


def ask_wsgi(app: WsgiService, path: str, *, body: bytes = b"", **environ: Any) -> Answer:
    started: list[Any] = []
    given = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "HTTP_HOST": "localhost",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "REMOTE_ADDR": "127.0.0.1",
        **environ,
    }
    content = b"".join(app(given, lambda status, headers: started.append((status, headers))))
    (status, headers) = started[0]
    return int(status.split()[0]), {name.lower(): value for name, value in headers}, content


@pytest.fixture
def app(world: World) -> Iterator[AsgiService]:
    made = AsgiService(world.service)
    yield made
    made.close()


@EVERY
def test_a_stranger_is_401_on_every_route_of_both(world: World, app: AsgiService, route: Route) -> None:
    path = path_of(route, world.names)
    if route.form and route.access is RouteAccess.PUBLIC:
        return
    wanted = 200 if route.access is RouteAccess.PUBLIC else 401
    status, headers, _ = asyncio.run(ask(app, scope(path, method=route.method, query=query_of(route))))
    assert status == wanted
    assert "content-security-policy" in headers
    found = ask_wsgi(WsgiService(world.service), path, REQUEST_METHOD=route.method, QUERY_STRING=query_of(route))
    assert found[0] == wanted
    assert "content-security-policy" in found[1]


@EVERY
def test_both_give_the_same_answer(world: World, app: AsgiService, route: Route) -> None:
    if route.writes:
        return
    path, token = path_of(route, world.names), f"Bearer {TOKENS[Role.OPERATE]}"
    given = scope(path, method=route.method, query=query_of(route), authorization=token)
    one = asyncio.run(ask(app, given))
    two = ask_wsgi(
        WsgiService(world.service), path.replace("%40", "@").replace("%23", "#"), REQUEST_METHOD=route.method,
        QUERY_STRING=query_of(route), HTTP_AUTHORIZATION=token,
    )  # fmt: skip
    assert one[0] == two[0]
    if route.path != f"{API}/explain":
        assert one[1].get("etag") == two[1].get("etag")


def test_a_websocket_is_closed(app: AsgiService) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app({"type": "websocket", "path": "/api/v1/status"}, receive, send))
    assert [(one["type"], one["code"]) for one in sent] == [("websocket.close", 1008)]


def test_anything_else_is_refused(app: AsgiService) -> None:
    async def nothing(*args: Any) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match="not served"):
        asyncio.run(app({"type": "tea"}, nothing, nothing))


@pytest.mark.parametrize("root", ["/a/b", "/a/b/"])
@pytest.mark.parametrize("below", [True, False], ids=["whole path", "path below the mount"])
def test_it_can_be_mounted_below_a_path(app: AsgiService, root: str, below: bool) -> None:
    path = "/health/live" if below else "/a/b/health/live"
    assert asyncio.run(ask(app, scope(path, root=root)))[0] == 200


def test_a_slow_body_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi_module, "_BODY_WITHIN", 0.01)
    app = AsgiService(open_world(table=(writing(lambda call: {}),)).service)

    async def never() -> Any:
        await asyncio.Event().wait()

    assert asyncio.run(_post(app, never))[0] == 408


def test_a_body_in_many_parts_is_bounded() -> None:
    app = AsgiService(open_world(table=(writing(lambda call: {}),)).service)
    parts = iter([{"type": "http.request", "body": b" " * 1_000, "more_body": True}] * 1_000)
    taken = 0

    async def receive() -> Any:
        nonlocal taken
        taken += 1
        return next(parts)

    assert asyncio.run(_post(app, receive))[0] == 413
    assert taken == 66


def test_a_caller_that_leaves_during_its_body_does_nothing() -> None:
    done: list[ApiCall] = []
    app = AsgiService(open_world(table=(writing(lambda call: done.append(call) or {}),)).service)

    async def left() -> Any:
        return {"type": "http.disconnect"}

    assert asyncio.run(_post(app, left))[0] == 408
    assert not done


def test_too_many_that_wait_for_the_store_are_refused_and_health_is_not() -> None:
    go = threading.Event()

    def slow(call: ApiCall) -> Text:
        assert go.wait(60)
        return Text("done")

    route = Route(method="GET", path="/slow", access=RouteAccess.READ, handler=slow)
    app = AsgiService(open_world(table=(*ROUTES, route)).service)

    async def many() -> list[Answer]:
        token = f"Bearer {TOKENS[Role.READ]}"
        asked = [asyncio.create_task(ask(app, scope("/slow", authorization=token))) for _ in range(40)]
        while sum(task.done() for task in asked) < 6:
            await asyncio.sleep(0)
        assert (await ask(app, scope("/health/live")))[0] == 200
        go.set()
        return await asyncio.gather(*asked)

    found = asyncio.run(many())
    app.close()
    assert sorted(status for status, _, _ in found) == [200] * 34 + [503] * 6
    assert all(headers["retry-after"] == "5" for status, headers, _ in found if status == 503)


def test_a_store_that_takes_too_long_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi_module, "_ANSWER_WITHIN", 0.01)
    go = threading.Event()
    route = Route(method="GET", path="/slow", access=RouteAccess.READ, handler=lambda call: Text(str(go.wait(60))))
    app = AsgiService(open_world(table=(route,)).service)

    async def one() -> Answer:
        found = await ask(app, scope("/slow", authorization=f"Bearer {TOKENS[Role.READ]}"))
        go.set()
        return found

    assert asyncio.run(one())[0] == 503
    app.close()


async def good(headers: Any, cookies: Any) -> Identity | None:
    return Identity("host", Role.READ) if headers.get("x-user") == "ana" else None


def good_now(headers: Any, cookies: Any) -> Identity | None:
    return Identity("host", Role.READ) if headers.get("x-user") == "ana" else None


def broken(headers: Any, cookies: Any) -> Identity | None:
    raise RuntimeError("no database")


@pytest.mark.parametrize(
    ("auth", "user", "wanted"),
    [
        (good, "ana", 200),
        (good, "bob", 401),
        (good_now, "ana", 200),
        (good_now, "bob", 401),
        (broken, "ana", 401),
        (lambda headers, cookies: True, "ana", 401),
        (lambda headers, cookies: "ana", "ana", 401),
        (lambda headers, cookies: Identity("x", "root"), "ana", 401),  # type: ignore[arg-type]
    ],
)
def test_the_host_application_says_who_a_caller_is(world: World, auth: Any, user: str, wanted: int) -> None:
    app = AsgiService(world.service, auth=HostAuthentication(auth))
    assert asyncio.run(ask(app, scope("/api/v1/me", x_user=user)))[0] == wanted
    app.close()
    if auth is not good:
        served = WsgiService(world.service, auth=HostAuthentication(auth))
        assert ask_wsgi(served, "/api/v1/me", HTTP_X_USER=user)[0] == wanted


def test_the_log_has_the_template_and_neither_path_nor_query_nor_token(
    world: World, app: AsgiService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="solocron.access")
    token = TOKENS[Role.READ]
    asyncio.run(ask(app, scope("/api/v1/jobs/invoices", query="include=payload", authorization=f"Bearer {token}")))
    (record,) = [one for one in caplog.records if one.name == "solocron.access"]
    assert record.getMessage().startswith("GET /api/v1/jobs/{job} 200 [request=req-")
    assert "who=read-er" in record.getMessage()
    assert not any(secret in repr(vars(record)) for secret in (token, "include=", "invoices"))


def test_a_bug_in_the_guard_itself_lets_nothing_through(
    world: World, app: AsgiService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any) -> Any:
        raise RuntimeError("canary")

    monkeypatch.setattr("solocron.service.guard.Guard.admit", broken)
    token = f"Bearer {TOKENS[Role.READ]}"
    for status, headers, body in (
        asyncio.run(ask(app, scope("/api/v1/me", authorization=token))),
        ask_wsgi(WsgiService(world.service), "/api/v1/me", HTTP_AUTHORIZATION=token),
    ):
        assert (status, b"canary" in body, "content-security-policy" in headers) == (500, False, True)
    assert "RuntimeError: canary" in caplog.text


def writing(handler: Callable[[ApiCall], Any]) -> Route:
    return Route(method="POST", path="/act", access=RouteAccess.OPERATE, handler=handler)


async def _post(app: AsgiService, receive: Callable[[], Awaitable[Any]]) -> Answer:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    token = f"Bearer {TOKENS[Role.OPERATE]}"
    await app(scope("/act", method="POST", content_type="application/json", authorization=token), receive, send)
    return sent[0]["status"], {}, sent[1]["body"]
