"""Open pages that ask at the same moment get one part, which is never older than what they were told."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

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


def test_readers_who_waited_for_a_slow_part_get_it_and_do_not_make_it_once_more() -> None:
    made, state = list[float](), {"clock": 100.0}
    parts = SharedParts(clock=lambda: state["clock"], position=lambda: 1)

    def look(takes: float) -> float:
        def make() -> Response:
            state["clock"] += takes
            made.append(state["clock"])
            return Response(status=200)

        return parts.get("a", make)[1]

    assert [look(1.5), look(1.5), len(made)] == [1.5, 1.5, 1], "it is as old as its reading"
    state["clock"] += 4.9
    assert [look(1.5), len(made)] == [pytest.approx(6.4), 1]
    state["clock"] += 0.2
    assert [look(0.1), len(made)] == [pytest.approx(0.1), 2], "five seconds at most"


def test_an_older_part_sets_the_clock_of_a_page_to_the_present(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = world.service._parts
    monkeypatch.setattr("solocron.service.shared_parts._FRESH", 600.0)  # however slow this machine is
    monkeypatch.setattr("solocron.service.shared_parts._STALE", 600.0)
    world.ask("/runs", role=Role.READ, **PART)  # the count of a day is a change by itself
    first = world.ask("/runs", role=Role.READ, **PART).header("solocron-now")
    clock = parts._clock
    monkeypatch.setattr(parts, "_clock", lambda: clock() + 4)
    second = world.ask("/runs", role=Role.READ, **PART).header("solocron-now")
    assert first is not None
    assert second is not None
    assert datetime.fromisoformat(second) - datetime.fromisoformat(first) >= timedelta(seconds=4)


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
