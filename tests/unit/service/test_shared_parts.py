"""Open pages that ask at the same moment get one part, which is never older than what they were told."""

from __future__ import annotations

from collections import Counter

import pytest

from solocron.service.request import Response
from solocron.service.roles import Role
from solocron.service.route import Route
from solocron.service.routes import ROUTES
from solocron.service.shared_parts import SharedParts
from tests.unit.service.kit import World

PART = {"solocron_part": "main", "accept": "text/html"}


def test_a_part_is_made_once_until_something_changes_or_it_is_old() -> None:
    made, state = Counter[str](), {"position": 1, "clock": 0.0}
    parts = SharedParts(clock=lambda: state["clock"], position=lambda: state["position"])

    def look(key: str, status: int = 200) -> int:
        def make() -> Response:
            made[key] += 1
            return Response(status=status)

        parts.get(key, make)
        return made[key]

    assert [look("a"), look("a"), look("b")] == [1, 1, 1]
    state["position"] = 2
    assert [look("a"), look("a")] == [2, 2]
    state["clock"] = 1.1
    assert [look("a"), look("a")] == [3, 3]
    parts.forget()
    assert look("a") == 4
    assert [look("broken", status=503), look("broken", status=503)] == [1, 2]


def test_no_caller_is_shown_what_another_role_may_do(world: World) -> None:
    shown = {role: world.ask("/jobs/invoices", role=role, **PART).response.body for role in (Role.OPERATE, Role.READ)}
    assert b"Run now" in shown[Role.OPERATE]
    assert b"Run now" not in shown[Role.READ]


@pytest.mark.parametrize(
    "route", [one for one in ROUTES if one.page and one.method == "GET" and not one.shared], ids=lambda one: one.path
)
def test_what_belongs_to_one_login_is_not_shared(route: Route) -> None:
    assert (
        "/static/" in route.path
        or route.path == "/login"
        or any(one.path == route.path and one.method == "POST" for one in ROUTES)
    )


def test_a_page_sees_its_own_write_at_once(world: World) -> None:
    assert b"Resume" not in world.ask("/jobs/invoices", role=Role.OPERATE, **PART).response.body
    world.ask("/api/v1/jobs/invoices/pause", method="POST", role=Role.OPERATE, body={"note": "moving"})
    assert b"Resume" in world.ask("/jobs/invoices", role=Role.OPERATE, **PART).response.body
