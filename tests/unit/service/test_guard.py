"""What a write must show before its body is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.service.bodies import BodyField
from solocron.service.call import ApiCall
from solocron.service.identity import cookie_name, identify, make_login
from solocron.service.request import RequestHead
from solocron.service.roles import Role, RouteAccess
from solocron.service.route import Route
from solocron.service.routes import ROUTES
from solocron.service.tokens import FixedTokens, TokenEntry, hash_of
from tests.unit.service.kit import TOKENS, Reply, World
from tests.unit.service.kit import world as open_world

DONE: list[dict[str, Any]] = []


def act(call: ApiCall) -> dict[str, Any]:
    """Do something."""
    DONE.append(dict(call.body))
    return {"done": True}


FIELDS = (BodyField.text("note", "why", most=20), BodyField.whole("n", "how many", least=1, most=3))
WRITE = Route(method="POST", path="/api/v1/act", access=RouteAccess.OPERATE, handler=act, fields=FIELDS)
CREATE = Route(method="POST", path="/api/v1/create", access=RouteAccess.OPERATE, handler=act, creates_runs=True)


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


@pytest.fixture
def writing() -> World:
    return open_world(table=(*ROUTES, WRITE, CREATE))


@pytest.fixture
def post(writing: World) -> Callable[..., Reply]:
    def call(path: str = WRITE.path, *, body: Any = None, role: Role | None = Role.OPERATE, **headers: str) -> Reply:
        return writing.ask(path, method="POST", role=role, body={} if body is None else body, **headers)

    return call


def login(csrf: bool = True) -> dict[str, str]:
    """The cookie of a login over plain HTTP, as the browser of a page of ours sends it."""
    now = 1_800_000_000 * SECOND
    head = RequestHead(id="", method="GET", path="/")
    cookie = f"{cookie_name(head)}={make_login(TOKENS[Role.OPERATE], now=now)}"
    tokens = FixedTokens(TokenEntry("ana", Role.OPERATE, hash_of(TOKENS[Role.OPERATE])))
    caller = identify(RequestHead(id="", method="GET", path="/", headers=(("cookie", cookie),)), tokens, now=now)
    assert caller is not None
    assert caller.csrf is not None
    return {"cookie": cookie, "solocron_csrf": caller.csrf if csrf else "x"}


class Noon:
    """A clock at which the login of `login` has just begun."""

    def wall(self) -> int:
        return 1_800_000_001 * SECOND

    def boot(self) -> float:
        return 1.0


def test_a_bearer_token_needs_no_origin(post: Callable[..., Reply]) -> None:
    assert post(body={"note": "x", "n": 2}).json == {"done": True}
    assert DONE == [{"note": "x", "n": 2}]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "none"}, 403),
        ({"sec_fetch_site": "cross-site", "origin": "http://localhost:8700"}, 403),
        ({"origin": "http://localhost:8700"}, 200),
        ({"origin": "https://localhost:8700"}, 403),
        ({"origin": "http://localhost:8701"}, 403),
        ({"origin": "http://localhost:8700.evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_a_page_of_another_origin_can_do_nothing(
    post: Callable[..., Reply], headers: dict[str, str], status: int
) -> None:
    assert post(**headers).status == status
    assert len(DONE) == (status == 200)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
def test_only_json_is_taken(post: Callable[..., Reply], kind: str, status: int) -> None:
    assert post(content_type=kind).status == status


def test_a_cookie_needs_the_origin_and_the_csrf_token() -> None:
    writing = open_world(table=(*ROUTES, WRITE), clock=Noon())

    def post(**headers: str) -> int:
        return writing.ask(WRITE.path, method="POST", role=None, body={}, **headers).status

    assert post(**login(), sec_fetch_site="same-origin") == 200
    assert post(**login(), origin="http://localhost:8700") == 200
    assert post(**login()) == 403
    assert post(**login(csrf=False), sec_fetch_site="same-origin") == 403
    assert post(cookie=login()["cookie"], sec_fetch_site="same-origin") == 403
    assert len(DONE) == 2


def test_with_a_token_and_a_cookie_the_token_counts_alone() -> None:
    writing = open_world(table=(*ROUTES, WRITE), clock=Noon())
    headers = login() | {"authorization": "Bearer solocron_" + "x" * 43, "sec_fetch_site": "same-origin"}
    assert writing.ask(WRITE.path, method="POST", role=None, body={}, **headers).status == 401
    assert not DONE


def test_a_write_that_creates_runs_needs_a_key(post: Callable[..., Reply]) -> None:
    assert post(CREATE.path).status == 428
    assert post(CREATE.path, idempotency_key="").status == 400
    assert post(CREATE.path, idempotency_key="k" * 257).status == 400
    assert post(CREATE.path, idempotency_key="a\tb").status == 400
    assert post(CREATE.path, idempotency_key="k" * 256).status == 200
    assert len(DONE) == 1


def test_a_rate_that_is_used_up_says_when_to_come_again(post: Callable[..., Reply]) -> None:
    assert [post().status for _ in range(31)] == [200] * 30 + [429]
    refused = post()
    assert 1 <= int(refused.header("retry-after") or "") <= 60
    assert post(CREATE.path, idempotency_key="k").status == 200, "runs have a rate of their own"
    assert len(DONE) == 31


def test_a_read_only_service_refuses_every_write() -> None:
    writing = open_world(table=(*ROUTES, WRITE), read_only=True)
    assert writing.ask(WRITE.path, method="POST", role=Role.OPERATE, body={}).status == 403
    assert not DONE


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "JSON"),
        (b"\xff\xfe{\x00}\x00", "JSON"),
        (b"[]", "not an object"),
        (b'{"note": NaN}', "NaN"),
        (b'{"note": Infinity}', "Infinity"),
        (b'{"note": "a", "note": "b"}', "twice"),
        (b'{"note": ' + b"[" * 40 + b"]" * 40 + b"}", "deeper"),
        (b"[" * 60_000, "deeper"),
        (b'{"note": "\\ud800"}', "JSON"),
        (b'{"n": ' + b"9" * 5_000 + b"}", ""),
        (b'{"wibble": 1}', "wibble"),
        (b'{"n": true}', "n: "),
        (b'{"n": 4}', "1 to 3"),
        (b'{"note": ""}', "note"),
    ],
)
def test_a_body_that_cannot_be_read_is_400_and_does_nothing(post: Callable[..., Reply], body: bytes, why: str) -> None:
    found = post(body=body)
    assert found.status == 400
    assert why in found.json["detail"]
    assert not DONE


def test_a_body_too_large_is_413_by_its_length_and_by_its_size(post: Callable[..., Reply]) -> None:
    assert post(content_length="65537").status == 413
    assert post(content_length="9" * 5_000).status == 413
    assert post(content_length="-1").status == 400
    assert post(body=b" " * 65_537).status == 413
    assert not DONE


def test_two_headers_of_one_name_are_refused(writing: World) -> None:
    for name in ("host", "authorization", "origin", "content-length", "idempotency-key"):
        twice = ((name, "localhost"), (name, "localhost"))
        head = RequestHead(id="req-1", method="GET", path="/api/v1/me", headers=(*twice, ("host", "localhost")))
        assert writing.service.handle(head).status == 400


def test_what_is_too_long_is_refused_before_anything_else(writing: World) -> None:
    assert writing.ask("/" + "a" * 3_000, role=None).status == 414
    assert writing.ask("/", role=None, x="a" * 20_000).status == 431
    assert writing.ask("/\u00e9", role=None).status == 400


def test_a_bug_tells_its_caller_nothing_but_the_id(caplog: pytest.LogCaptureFixture) -> None:
    def broken(call: ApiCall) -> dict[str, Any]:
        raise RuntimeError("canary-in-a-bug")

    route = Route(method="GET", path="/api/v1/broken", access=RouteAccess.READ, handler=broken)
    found = open_world(table=(route,)).ask(route.path)
    assert found.status == 500
    assert b"canary" not in found.response.body
    assert found.json["instance"] == found.header("solocron-request")
    assert found.json["instance"] in caplog.text
    assert "canary-in-a-bug" in caplog.text
