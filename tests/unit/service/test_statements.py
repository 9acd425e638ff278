"""Statements of each look, counted on a thousand jobs: what a request costs does not depend on what is in the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.jobs.job_spec import JobSpec
from solocron.service.handle import Service
from solocron.service.moments import apart, moment
from solocron.service.roles import Role
from solocron.service.routes import API, ROUTES, Route
from solocron.stores.contract import RecentSessions
from solocron.stores.sql.sqlite.store import SQLiteStore
from solocron.stores.url import make_store
from tests.unit.service.kit import World, path_of, query_of, tokens

JOBS = 1_000
AT_MOST = {
    "/openapi.json": 0,
    "/me": 0,
    "/explain": 0,
    "/events": 0,
    "/alarms": 1,
    # The acts, the attempts that were lost, the sessions that were buried, which jobs are paused. If any were lost or
    # are paused, one more reads their documents, and one the next attempts of what was lost.
    "/audit": 4,
    "/nodes": 1,
    "/limits": 2,
    "/locks": 2,
    "/calendars": 2,
    "/calendars/{calendar}": 2,
    "/backfills": 1,
    "/accounting": 2,
    "/doctor": 0,
    "/jobs": 3,
    "/jobs/{job}": 3,
    "/jobs/{job}/next": 1,
    "/jobs/{job}/accounting": 2,
    "/jobs/{job}/why": 4,
    "/jobs/{job}/resume": 2,
    "/jobs/{job}/backfill": 3,
    "/runs/{run}": 4,
    "/runs/{run}/output": 3,
    # What runs is in the documents, what has ended is in the log: one statement for each.
    "/runs": 2,
    "/jobs/{job}/runs": 2,
    "/jobs/{job}/slots": 2,
    # A filter that no index answers: the third tells where the search was broken off.
    "/jobs/{job}/durations": 3,
    # The session, the holds, the log, and the sessions before it on its host.
    "/nodes/{session}": 5,
    # Holds, sessions, the log, and for the slots to come which jobs are due, their documents, and the pauses that keep
    # them back; one more if the log is too dense to be listed.
    "/timeline": 6,
    # Nodes, pauses, alarms, what is held, due, set aside, how many jobs bear which mark, and the open minute: eight
    # indexes, each at the cost of what it finds. One more names the paused jobs, if there are some, and one the last
    # tick of a pool without a node. To put them together would need a statement of its own in every store.
    "/status": 10,
}
"""Statements of a look at most, once the parts that do not change are known."""
AT_FIRST = {
    "/status": 10 + 2 + 2,
    "/accounting": 2 + 2,
    "/doctor": 17,
    "/limits": 2 + 2,
    "/calendars": 2 + 3,
    "/calendars/{calendar}": 2 + 3,
    "/backfills": 1 + 2,
}
"""The same of the first look: closed hours are counted, and the jobs are read in pages of a thousand. Both are kept.

A pass of the doctor is kept for ten seconds.
"""
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
    assert {route.path.removeprefix(API) for route in LOOKS} == AT_MOST.keys()


@pytest.mark.parametrize("route", LOOKS, ids=lambda route: route.path)
def test_a_look_stays_within_its_statements(filled: tuple[World, SQLiteStore], route: Route) -> None:
    world, store = filled
    path, query, budget = path_of(route, world.names), query_of(route), AT_MOST[route.path.removeprefix(API)]
    for most in (AT_FIRST.get(route.path.removeprefix(API), budget), budget):
        world.service.watcher.look(at_once=True)  # its passes have a budget of their own: none is due within this look
        before = store.statements.copy()
        assert world.ask(path, role=Role.OPERATE, query=query).status in (200, 404)
        counted = store.statements - before
        assert sum(counted.values()) <= most, counted


def test_limits_calendars_and_backfills_cost_what_they_show(filled: tuple[World, SQLiteStore]) -> None:
    """Which jobs name a limit or a calendar, no index knows: a large namespace is read for it once a minute."""
    world, store = filled
    for path in ("/limits", "/calendars", "/backfills"):
        world.ask(API + path, role=Role.READ)
        before = store.statements["all_jobs"]
        assert world.ask(API + path, role=Role.READ).status == 200
        assert store.statements["all_jobs"] == before, path


def test_the_page_that_renews_the_glance_reads_nothing_of_it_once_more(filled: tuple[World, SQLiteStore]) -> None:
    world, store = filled
    for path in ("/", "/jobs"):
        world.ask(path, role=Role.OPERATE)
        world.service.watcher.changes.add(("runs",))
        before = store.statements.copy()
        assert world.ask(path, role=Role.OPERATE).status == 200
        counted = store.statements - before
        assert (counted["held_by_any_jobs"], counted["named_documents"]) <= (1, 1), (path, counted)


OF_A_PAGE = 6
GLANCE = 16
"""Statements of the glance, which all pages of a moment share: at most twice a second, however many readers."""
PAGES_AT_MOST = {"/": 3}
"""Where a page may do with fewer."""
FIRST_TIME = {
    "/": 8 + 6, "/accounting": 1, "/limits": 2, "/calendars": 2, "/calendars/{calendar}": 2,
    "/doctor": 17, "/doctor/repair": 17,
}  # fmt: skip
"""What is read beside that once in a while, and kept: closed hours, jobs in pages, a pass of the doctor."""
AGAIN = 5
"""What a page has read before the glance, which reads it again: sessions, pauses, alarms, holds, due jobs."""
PAGES = [one for one in ROUTES if one.page and one.method == "GET" and one.access in ("read", "operate")]


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.path)
def test_a_page_stays_within_its_statements_beside_the_glance(
    filled: tuple[World, SQLiteStore], route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = ("board.glance._FRESH", "board.watcher._EVERY", "board.watcher._EVERY_WHEN_SLOW", "examination._KEPT")
    for patience in slow:  # however slow this machine is
        monkeypatch.setattr(f"solocron.service.{patience}", 600.0)
    world, store = filled
    budget, more = PAGES_AT_MOST.get(route.path, OF_A_PAGE), FIRST_TIME.get(route.path, 0)
    names = world.names | {"kind": "job", "document": "invoices", "lock": "till"}
    world.service.watcher.look(at_once=True)
    world.service._board.glance()  # counts the closed hours, which are kept

    def cost() -> int:
        before = store.statements.copy()
        answer = world.ask(path_of(route, names), role=Role.OPERATE, query=query_of(route), accept="text/html")
        assert answer.status in (200, 303, 404)
        return (store.statements - before).total()

    world.service._board.forget()
    assert cost() <= budget + more + GLANCE + AGAIN
    assert cost() <= budget, "the glance is known"


def test_the_glance_reads_everything_once(filled: tuple[World, SQLiteStore]) -> None:
    """The status, the number of jobs that are not well and the worst of them need the same sessions, pauses, holds."""
    world, store = filled
    world.service._board.glance()
    world.service._board.forget()
    before = store.statements.copy()
    world.service._board.glance()
    counted = store.statements - before
    assert counted.total() <= GLANCE, counted
    for kind in ("sessions", "held_by_any_jobs", "named_documents", "count_jobs", "marked_jobs", "blocked"):
        assert counted[kind] <= 1, counted


def test_two_parts_of_a_page_that_ask_for_the_same_get_one_read_and_the_next_page_another(
    filled: tuple[World, SQLiteStore],
) -> None:
    world, store = filled
    client = world.service._clients.reading()
    wanted = RecentSessions(None)
    before = store.statements.copy()
    with moment():
        assert client.store.read(wanted) is client.store.read(wanted)
        assert client.store.clock() == client.store.clock()
        with apart():
            client.store.read(wanted)
            client.store.read(wanted)
    client.store.read(wanted)
    assert (store.statements - before)["sessions"] == 1 + 2 + 1
