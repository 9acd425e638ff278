"""Behind a proxy and below a path: which headers are believed, and where links lead."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from solocron.service.asgi import AsgiService
from solocron.service.request import RequestHead, make_request_id
from solocron.service.roles import Role, RouteAccess
from solocron.service.routes import ROUTES, Route
from solocron.service.server import Listening, opened_socket, serving
from tests.unit.service.kit import TOKENS, World, path_of, query_of
from tests.unit.service.kit import world as open_world

FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9, 198.51.100.7"}
LINKS = re.compile(r"""(?:href|src|action|formaction)=["']([^"']*)["']""")


@contextmanager
def served(world: World, wanted: Listening) -> Iterator[int]:
    app = AsgiService(world.service, base=wanted.base)
    with opened_socket(wanted) as listener, serving(app, wanted, listener):
        yield listener.getsockname()[1]


def ask(port: int, path: str, *, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        given = {"Host": "localhost", "Authorization": f"Bearer {TOKENS[Role.OPERATE]}", "Connection": "close"}
        connection.request(method, path, body, given | {name.replace("_", "-"): one for name, one in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers.get("Strict-Transport-Security", "")
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("proxies", "secure", "address"),
    [
        ((), False, "127.0.0.1"),
        (("10.0.0.1",), False, "127.0.0.1"),
        (("127.0.0.1",), True, "198.51.100.7"),
        (("127.0.0.0/8",), True, "198.51.100.7"),
    ],
    ids=["not told of one", "told of another", "told of it", "told of its network"],
)
def test_a_forwarded_header_is_believed_of_a_proxy_that_was_named(
    proxies: tuple[str, ...], secure: bool, address: str
) -> None:
    world = open_world()
    with served(world, Listening(port=0, proxies=proxies)) as port:
        _, _, hsts = ask(port, "/api/v1/me", **FORWARDED)
        assert bool(hsts) is secure
        kind = {"Content-Type": "application/json"}
        assert ask(port, "/api/v1/jobs/report/pause", method="POST", body="{}", **FORWARDED, **kind)[0] == 200
        (act,) = json.loads(ask(port, "/api/v1/audit")[1])["items"]
    assert act["address"] == address, "the last one: those before it are the client's own claim"


@pytest.mark.parametrize(
    "name", ["X-Forwarded-Host", "Forwarded", "X-Forwarded-Prefix", "X-Original-URL", "X-Script-Name"]
)
def test_no_other_forwarded_header_is_believed(name: str) -> None:
    with served(open_world(), Listening(port=0, proxies=("127.0.0.1",))) as port:
        assert ask(port, "/api/v1/me", **{name: "localhost"}, Host="evil.example")[0] == 421
        status, body, _ = ask(port, "/api/v1/me", **{name: "/api/v1/status;host=evil.example"})
        assert (status, json.loads(body)["name"]) == (200, "operate-er")


@pytest.mark.parametrize("path", ["/a/b/api/v1/me", "/api/v1/me"], ids=["whole path", "path cut by the proxy"])
def test_below_a_path_it_is_found_whether_the_proxy_cuts_it_or_not(path: str) -> None:
    with served(open_world(), Listening(port=0, base="/a/b")) as port:
        assert ask(port, path)[0] == 200


PAGES = [one for one in ROUTES if one.page and one.method == "GET" and not one.path.startswith("/static/")]


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.path)
def test_every_link_of_every_page_stays_below_the_path(world: World, route: Route) -> None:
    given = (("host", "localhost"), ("authorization", f"Bearer {TOKENS[Role.OPERATE]}"), ("accept", "text/html"))
    head = RequestHead(
        id=make_request_id(), method="GET", path=path_of(route, world.names), query=query_of(route),
        headers=given, base="/a/b",
    )  # fmt: skip
    found = world.service.handle(head)
    assert found.status == 200 or route.access is RouteAccess.PUBLIC
    links = LINKS.findall(found.body.decode())
    assert links
    outside = [link for link in links if not link.startswith(("/a/b/", "#", "?", "https://")) and link != "/a/b"]
    assert outside == []
