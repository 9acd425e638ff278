"""Jobs by their next slot, and those first that need a look: in pages that cost what they show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron import NotFoundError
from solocron.client import Client
from solocron.client.job_listing import WantedJobs
from solocron.client.job_order import OrderBy
from solocron.clock import SECOND, SystemClock
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Pause
from solocron.runtime import Threads
from solocron.stores.contract import Store
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import job, put, session
from tests.unit.client.test_status import documents_read

MANY = 600
HANDLED = Definition(handler="h", schedule=None)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    """A live node and some jobs in each state, among many that are well and due in the reverse of their names."""
    store = make_store(f"memory://{request.node.name}")
    now = store.clock()
    node = replace(session("s", expires_at=now + 3_600 * SECOND), handlers=("h",), pools=("default",))
    put(store, node)
    put(store, *(job(f"x{n:03}", definition=HANDLED, due_at=now + (MANY - n) * 60 * SECOND) for n in range(MANY)))
    put(
        store,
        job("failing", definition=HANDLED, failures=2, due_at=now + 1),
        job("late", definition=HANDLED, due_at=now - 20 * SECOND),
        job("lost", definition=Definition(handler="gone", schedule=None), due_at=now + 2),
        job("paused", definition=HANDLED, paused=Pause(at=1)),
        job("removed", definition=HANDLED, removed=True),
    )
    return store


def walked(client: Client, order: OrderBy, wanted: WantedJobs, limit: int = 50) -> list[str]:
    found, after = list[str](), ""
    while True:
        page = client.job_page(wanted, limit=limit, after=after, order=order)
        found += [one.name for one in page.jobs]
        if page.next is None:
            return found
        after = page.next


def test_each_order_has_every_job_once(store: Store) -> None:
    client, wanted = Client(store), WantedJobs(late_after=5 * SECOND)
    by_attention, by_next = walked(client, "attention", wanted), walked(client, "next", wanted)
    assert by_attention[:4] == ["failing", "late", "lost", f"x{MANY - 1:03}"]
    assert by_next[:4] == ["late", "failing", "lost", f"x{MANY - 1:03}"]
    for found in (by_attention, by_next):
        assert found[-1] == "paused"
        assert sorted(found) == walked(client, "name", wanted)


@pytest.mark.parametrize("order", ["attention", "next", "name"])
def test_a_page_reads_the_documents_that_it_shows(store: Store, order: OrderBy) -> None:
    client = Client(store)
    client.job_page(WantedJobs(), limit=1, order="attention")  # counts the jobs by their code, once a minute
    read = documents_read(store)
    client.job_page(WantedJobs(), limit=20, order=order)
    client.job_page(WantedJobs(states=frozenset(["not_well"]), late_after=5 * SECOND), limit=20, order=order)
    assert client.count_not_well(5 * SECOND) == 3
    assert sum(read) < MANY / 10


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ("not_well", ["failing", "late", "lost"]),
        ("orphaned", ["lost"]),
        ("late", ["late"]),
        ("paused", ["paused"]),
        ("stuck", []),
        ("set_aside", []),
    ],
)
def test_a_state_is_found_in_every_order(store: Store, state: str, names: list[str]) -> None:
    wanted = WantedJobs(states=frozenset([state]), late_after=5 * SECOND)
    for order in ("attention", "next", "name"):
        assert sorted(walked(Client(store), order, wanted, limit=2)) == names  # type: ignore[arg-type]


def test_words_of_a_name_are_found_whatever_their_case(store: Store) -> None:
    assert walked(Client(store), "name", WantedJobs(words=("X", "99"))) == [f"x{n}99" for n in range(6)]


def test_a_search_that_is_broken_off_goes_on_with_the_next_page(store: Store) -> None:
    client, wanted = Client(store), WantedJobs(tags=frozenset(["none"]))
    first = client.job_page(wanted, limit=5, scan=100, order="next")
    assert (first.jobs, first.next) == ((), f"x{MANY - 97:03}")
    second = client.job_page(wanted, limit=5, scan=100, order="next", after=first.next or "")
    assert second.next == f"x{MANY - 197:03}"


def test_a_page_after_a_job_that_is_gone_says_so(store: Store) -> None:
    with pytest.raises(NotFoundError, match="is not listed any more"):
        Client(store).job_page(WantedJobs(), limit=5, order="next", after="nothing")


def test_what_a_pause_of_many_keeps_back_is_not_late(store: Store) -> None:
    client = Client(store)
    client.pause_all(match="late")
    assert walked(client, "attention", WantedJobs(late_after=5 * SECOND))[:2] == ["failing", "lost"]


def test_of_very_many_late_jobs_no_more_are_looked_at_than_are_wanted(store: Store) -> None:
    """In a fleet that is behind every job may be late: to page through all of them costs more than to show a page."""
    now = store.clock()
    put(store, *(job(f"z{number:04}", definition=HANDLED, due_at=now - 30 * SECOND) for number in range(2_500)))
    client, asked, due_times = Client(store), list[int](), store.due_times

    def counted(limit: int = 100, **more: Any) -> tuple[tuple[int, str], ...]:
        found = due_times(limit, **more)
        asked.append(len(found))
        return found

    store.due_times = counted  # type: ignore[method-assign]
    assert client.count_not_well(5 * SECOND, most=101) == 101
    assert sum(asked) == 200
    asked.clear()
    client.job_page(WantedJobs(late_after=5 * SECOND), limit=12, order="attention")
    assert sum(asked) == 200
    asked.clear()
    ill = WantedJobs(states=frozenset(["stuck", "failing", "late"]), late_after=5 * SECOND)
    page = client.job_page(ill, limit=12, order="attention")
    assert [one.name for one in page.jobs][:2] == ["failing", "z0000"]
    assert sum(asked) == 200
    assert client.count_not_well(5 * SECOND) == 2_503


def test_what_is_ill_comes_in_pages_each_once(store: Store) -> None:
    now = store.clock()
    put(store, *(job(f"z{number}", definition=HANDLED, due_at=now - 30 * SECOND) for number in range(5)))
    put(store, job("gone", definition=Definition(handler="gone", schedule=None), due_at=now - 40 * SECOND))
    client = Client(store)
    ill = WantedJobs(states=frozenset(["stuck", "failing", "late"]), late_after=5 * SECOND)
    every = [one.name for one in client.job_page(ill, order="attention").jobs]
    assert every == ["failing", "z0", "z1", "z2", "z3", "z4", "late", "gone"]
    for limit in (1, 3):
        assert walked(client, "attention", ill, limit) == every
    assert walked(client, "attention", replace(ill, states=frozenset(["failing"]))) == ["failing"]
    assert walked(client, "attention", replace(ill, words=("z",)), 2) == every[1:6]


def test_a_census_is_read_ahead_a_page_at_a_time(store: Store) -> None:
    """A request that finds the census old reads every job, half a second of ten thousand: the watcher comes first."""
    runtime, put_in = Threads(), [f"y{number:04}" for number in range(1_000)]
    put(store, *(job(name, definition=HANDLED) for name in put_in))
    runtime.clock = clock = SteppedClock()
    client = Client(store, runtime=runtime)
    client.first_created()
    read = documents_read(store)
    client.read_ahead()
    assert read == []
    clock.passed = 45
    put(store, job("lost2", definition=Definition(handler="gone", schedule=None), due_at=1))
    read.clear()
    for _ in range(2):
        client.read_ahead()
    clock.passed = 89  # the census of the first call would be too old now
    assert client.count_not_well(5 * SECOND) == 4
    assert [count for count in read if count > 10] == [1_000, MANY + 6]


class SteppedClock(SystemClock):
    passed = 0.0

    def boot(self) -> float:
        return 1_000 + self.passed
