"""Logins: one answer for every failure, a bounded rate, and a cookie that pages can use and others cannot."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from solocron.service.roles import Role
from tests.unit.service.kit import TOKENS, Reply, World
from tests.unit.service.kit import world as open_world

FORM = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin"}


def log_in(world: World, token: str, wanted: str = "/jobs", **headers: str) -> Reply:
    body = f"token={quote(token)}&wanted={quote(wanted)}".encode()
    return world.ask("/login", method="POST", role=None, body=body, **(FORM | headers))


def cookie_of(found: Reply) -> str:
    header = found.header("set-cookie") or ""
    assert header.endswith("; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict")
    return header.partition(";")[0]


def test_a_token_is_exchanged_for_a_cookie_that_shows_pages_and_the_api() -> None:
    world = open_world()
    found = log_in(world, TOKENS[Role.OPERATE])
    assert (found.status, found.header("location")) == (303, "/jobs")
    shown = world.ask("/api/v1/me", role=None, cookie=cookie_of(found)).json
    assert (shown["name"], shown["role"], shown["via"]) == ("operate-er", "operate", "cookie")
    assert shown["until"] is not None


def test_every_failure_is_the_same_and_takes_its_time() -> None:
    took: list[float] = []
    world = open_world(pause=took.append)
    wrong = [TOKENS[Role.TICK], "solocron_" + "x" * 43, "x", "é" * 100]
    found = [log_in(world, token) for token in wrong]
    assert {(one.status, one.header("location"), one.response.body) for one in found} == {(303, "/login?failed=1", b"")}
    assert not any(one.header("set-cookie") for one in found)
    log_in(world, TOKENS[Role.READ])
    assert took == [0.2] * 5


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "jobs", "", "/a b", "/\u00e9", "javascript:1"],
)
def test_a_login_leads_to_pages_of_ours_alone(wanted: str) -> None:
    assert log_in(open_world(), TOKENS[Role.READ], wanted).header("location") == "/"


def test_attempts_are_bounded_by_address() -> None:
    world = open_world()
    statuses = [log_in(world, "x").status for _ in range(6)]
    assert statuses == [303] * 5 + [429]
    assert log_in(world, TOKENS[Role.READ]).status == 429


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"content_type": "application/json"}, 415),
        ({"content_type": "text/plain"}, 415),
    ],
)
def test_a_page_of_another_site_cannot_log_a_reader_in(headers: dict[str, str], status: int) -> None:
    found = log_in(open_world(), TOKENS[Role.READ], **headers)
    assert (found.status, found.header("set-cookie")) == (status, None)


@pytest.mark.parametrize("body", [b"token", b"token=a&token=b", b"token=%FF", b"\xff", b"token=a&x=1", b"token="])
def test_a_form_that_cannot_be_read_is_400(body: bytes) -> None:
    assert open_world().ask("/login", method="POST", role=None, body=body, **FORM).status == 400


def test_a_log_out_needs_the_token_of_a_page_and_ends_the_cookie() -> None:
    world = open_world()
    cookie = cookie_of(log_in(world, TOKENS[Role.READ]))
    assert world.ask("/logout", method="POST", role=None, body=b"csrf=x", cookie=cookie, **FORM).status == 403
    head = world.head("/", "GET", None, "", "localhost", None, {"cookie": cookie})
    caller = world.service.find_caller(head)
    assert caller is not None
    body = f"csrf={caller.csrf}".encode()
    found = world.ask("/logout", method="POST", role=None, body=body, cookie=cookie, **FORM)
    assert (found.status, found.header("location")) == (303, "/login")
    assert "Max-Age=0" in (found.header("set-cookie") or "")


def test_a_read_only_service_lets_readers_log_in() -> None:
    assert log_in(open_world(read_only=True), TOKENS[Role.READ]).header("location") == "/jobs"
