"""Statements of each look, counted on a thousand jobs: what a request costs does not depend on what is in the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.jobs.job_spec import JobSpec
from solocron.service.handle import Service
from solocron.service.roles import Role
from solocron.service.routes import API, ROUTES, Route
from solocron.stores.sql.sqlite.store import SQLiteStore
from solocron.stores.url import make_store
from tests.unit.service.kit import World, path_of, query_of, tokens

JOBS = 1_000
AT_MOST = {
    "/openapi.json": 0,
    "/me": 0,
    "/explain": 0,
    "/alarms": 1,
    "/audit": 1,
    "/nodes": 1,
    "/locks": 2,
    "/jobs": 3,
    "/jobs/{job}": 4,
    "/jobs/{job}/runs": 3,
    "/jobs/{job}/next": 4,
    "/jobs/{job}/slots": 3,
    "/jobs/{job}/why": 5,
    "/jobs/{job}/accounting": 3,
    "/jobs/{job}/durations": 3,
    "/jobs/{job}/resume": 2,
    "/jobs/{job}/backfill": 3,
    "/runs": 3,
    "/runs/{run}": 5,
    "/runs/{run}/output": 5,
    "/nodes/{session}": 4,
}
"""Those that look at every job are not here: their statements grow with the pages of jobs."""
GROWING = {"/status", "/doctor", "/limits", "/calendars", "/calendars/{calendar}", "/backfills"}
ELSEWHERE = {"/accounting", "/events", "/timeline"}
"""They are answered from what a watcher has read, or have a bound of their own."""
LOOKS = [route for route in ROUTES if route.method == "GET" and route.path.startswith(API)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, SQLiteStore]]:
    url = f"sqlite:///{tmp_path_factory.mktemp('budget') / 'jobs.db'}"
    scheduler = Scheduler(url, node="n")
    scheduler.every("1h", name="invoices")(lambda: None)
    scheduler.tick()
    run = scheduler.trigger("invoices")
    scheduler.tick()
    scheduler.add_all([JobSpec(f"job-{number:04}", "invoices", "0 3 * * *") for number in range(JOBS)])
    scheduler.calendar("bank", holidays={})
    scheduler.stop()
    store = make_store(url)
    assert isinstance(store, SQLiteStore)
    store.open(read_only=True)
    client = Client(store)
    session = client.nodes(ended=True)[0].session
    names = {"job": "invoices", "run": run, "session": session, "calendar": "bank"}
    yield World(None, Service(client, tokens=tokens()), names), store  # type: ignore[arg-type]
    store.close()


def test_every_look_has_its_budget() -> None:
    paths = {route.path.removeprefix(API) for route in LOOKS}
    assert paths <= AT_MOST.keys() | GROWING | ELSEWHERE


@pytest.mark.parametrize(
    "route", [route for route in LOOKS if route.path.removeprefix(API) in AT_MOST], ids=lambda route: route.path
)
def test_a_look_stays_within_its_statements(filled: tuple[World, SQLiteStore], route: Route) -> None:
    world, store = filled
    path, query = path_of(route, world.names), query_of(route)
    before = store.statements.copy()
    assert world.ask(path, role=Role.OPERATE, query=query).status in (200, 404)
    counted = store.statements - before
    assert sum(counted.values()) <= AT_MOST[route.path.removeprefix(API)], counted
