"""What holds for every route, by the table itself: a new row is tested without a new test."""

from __future__ import annotations

import pytest

from solocron.service.roles import Role, RouteAccess, is_allowed
from solocron.service.route import Route
from solocron.service.routes import API, ROUTES
from tests.unit.service.kit import World, path_of, query_of
from tests.unit.service.kit import world as open_world

EVERY = pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
SAFE = {
    *("content-security-policy", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy"),
    *("cross-origin-resource-policy", "permissions-policy", "cache-control", "solocron-request"),
}
PUBLIC = {
    *("/health/live", "/health/ready", "/login", "/open"),
    *("/static/{digest}/{file}", "/static/{digest}/vendor/{file}"),
}


def test_a_route_without_an_access_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="access"):
        Route(method="GET", path="/x", handler=print)  # type: ignore[call-arg]


def test_only_the_known_routes_are_public() -> None:
    assert {route.path for route in ROUTES if route.access is RouteAccess.PUBLIC} == PUBLIC


@EVERY
def test_a_stranger_gets_the_same_401_everywhere(world: World, route: Route) -> None:
    found = world.send(route, role=None)
    if route.access is RouteAccess.PUBLIC:
        assert found.status in (*route.statuses, 429)
        return
    nowhere = world.ask("/no/such/path", method=route.method, role=None)
    assert found.status == nowhere.status == 401
    assert found.header("www-authenticate") == 'Bearer realm="solocron"'
    assert found.json | {"instance": ""} == nowhere.json | {"instance": ""}


@EVERY
@pytest.mark.parametrize("role", Role)
def test_each_role_gets_what_it_may_and_403_for_the_rest(world: World, route: Route, role: Role) -> None:
    found = world.send(route, role=role)
    if not is_allowed(role, route.access):
        assert found.status == 403
        return
    if route.writes:
        assert found.status in (*route.statuses, 404, 409, 429), found.response.body
        return
    if route.form:
        assert found.status in (*route.statuses, 429)
        return
    hidden = route.path.endswith("/output") and role is Role.READ
    absent = route.path.endswith("/output") and role is Role.OPERATE  # this run has none
    assert found.status == (403 if hidden else 404 if absent else 200), found.response.body
    if route.access is RouteAccess.READ and found.status == 200 and not route.streams:
        assert found.header("etag")


@EVERY
@pytest.mark.parametrize("method", ["PATCH", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_a_method_that_no_row_has_is_405_and_says_which_there_are(world: World, route: Route, method: str) -> None:
    found = world.ask(path_of(route, world.names), method=method)
    assert found.status == 405
    assert route.method in (found.header("allow") or "").split(", ")


@EVERY
def test_options_says_which_methods_there_are_and_allows_no_other_origin(world: World, route: Route) -> None:
    found = world.ask(path_of(route, world.names), method="OPTIONS", origin="https://evil.example")
    assert found.status == 204
    assert "OPTIONS" in (found.header("allow") or "")
    assert not any(name.lower().startswith("access-control") for name, _ in found.response.headers)


@EVERY
@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost:x", "[::1]x"]
)
def test_another_host_is_421_before_the_token_is_looked_at(world: World, route: Route, host: str) -> None:
    found = world.send(route, role=Role.OPERATE, host=host)
    assert found.status == (200 if route.any_host else 421)


@EVERY
@pytest.mark.parametrize("role", [None, Role.READ, Role.TICK])
def test_every_response_has_the_whole_set_of_headers(world: World, route: Route, role: Role | None) -> None:
    found = world.send(route, role=role)
    names = [name.lower() for name, _ in found.response.headers]
    assert set(names) >= SAFE
    assert len(names) == len(set(names))
    assert "unsafe" not in (found.header("content-security-policy") or "")


@EVERY
def test_head_is_get_without_a_body(world: World, route: Route) -> None:
    if route.method != "GET":
        return
    if route.form:  # its rate must not be used up by one of the two
        world = open_world()
    path, query = path_of(route, world.names), query_of(route)
    found, whole = world.ask(path, method="HEAD", query=query), world.ask(path, query=query)
    assert (found.status, found.response.body) == (whole.status, b"")
    assert found.header("content-type") == whole.header("content-type")


@EVERY
def test_an_unknown_parameter_is_named(world: World, route: Route) -> None:
    if route.method != "GET":
        return
    query = "&".join(filter(None, [query_of(route), "wibble=1"]))
    found = world.ask(path_of(route, world.names), role=Role.OPERATE, query=query)
    assert found.status == 400
    assert [field["name"] for field in found.json["fields"]] == ["wibble"]


@EVERY
def test_every_parameter_refuses_what_it_is_not(world: World, route: Route) -> None:
    for parameter in route.parameters:
        numbers = parameter.schema.get("type") == "integer"
        # A form of a page sends every field: an empty one is as if it was not there.
        empty = () if route.page else ("",)
        for wrong in (*empty, "%00", "x" * 600, *(("-1", "1e3", "0x1", "99999999999") if numbers else ())):
            role = Role.TICK if route.access is RouteAccess.TICK else Role.OPERATE
            method = "GET" if route.page else route.method  # the twin of a form has the same parameters
            found = world.ask(path_of(route, world.names), method=method, role=role, query=f"{parameter.name}={wrong}")
            assert found.status == 400, (parameter.name, wrong)


@EVERY
def test_a_known_tag_is_answered_with_304(world: World, route: Route) -> None:
    if route.writes:
        return
    path, query = path_of(route, world.names), query_of(route)
    tag = world.ask(path, query=query).header("etag")
    if tag is None or route.path == f"{API}/explain":  # what is next moves on with the clock
        return
    again = world.ask(path, query=query, if_none_match=tag)
    assert (again.status, again.response.body) == (304, b"")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", 200),
        ("APPLICATION/JSON; q=1", 200),
        ("", 200),
        ("image/png", 406),
        ("application/xml, image/*", 406),
    ],
)
def test_a_client_that_takes_none_of_our_kinds_is_told_so(world: World, accept: str, status: int) -> None:
    assert world.ask(f"{API}/me", accept=accept).status == status


def test_no_get_changes_the_store(world: World) -> None:
    def dump() -> str:
        return repr(world.shop.store.world.spaces)  # type: ignore[attr-defined]

    before = dump()
    assert len(before) > 1_000
    for route in ROUTES:
        if route.method == "GET":
            world.ask(path_of(route, world.names), role=Role.OPERATE, query=query_of(route))
    assert dump() == before
