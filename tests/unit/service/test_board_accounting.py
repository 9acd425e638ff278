"""The accounting of all jobs: sums that add up, made a few jobs at a time, and red when a slot is missing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from solocron.client import Client
from solocron.clock import to_us
from solocron.model.documents.definition import Definition
from solocron.model.documents.run import Status
from solocron.model.documents.session import RefusedEnd, SelfReport, Session
from solocron.service.board.accounting import AccountingBoard, BoardSums
from solocron.service.board.watcher import Watcher
from solocron.service.routes import API
from solocron.stores.contract import Store
from solocron.stores.memory import MemoryStore
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import job, put, record, session
from tests.unit.client.kit import FAILS, Stage
from tests.unit.service.kit import World

HOURLY = Definition(handler="h", schedule={"kind": "every", "period": "1h"})


class Board:
    """A board over a store, and a clock for its passes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        client = Client(store)
        self.board = AccountingBoard(lambda: client, clock=lambda: 0.0)

    def sums(self, steps: int = 1) -> BoardSums:
        for _ in range(steps):
            self.board.step(self.store.clock())
        return self.board.sums(self.store.clock())


@pytest.fixture
def stage() -> Stage:
    return Stage()


def remove_record(store: MemoryStore, slot: datetime) -> None:
    """Take a record out of the log by hand, as a person with a database shell would."""
    log = store.world.spaces[store.namespace].log
    (gone,) = [key for key, one in log.items() if one.slot == to_us(slot)]
    del log[gone]


def test_every_slot_of_a_fleet_is_accounted_for(stage: Stage) -> None:
    stage.hours(3)
    FAILS.add(stage.clock.now.hour + 1)
    stage.hours(2)
    found = Board(stage.store).sums()
    truth = stage.client.accounting(stage.begin)
    assert (found.counts, found.due, found.missing) == (truth.counts, truth.due, 0)
    assert (found.checked_jobs, found.of_jobs) == (1, 1)
    assert found.checked_from == found.checked_at == stage.clock.now


def test_a_record_that_is_removed_by_hand_is_found(stage: Stage) -> None:
    stage.hours(4)
    board = Board(stage.store)
    assert board.sums().missing == 0
    slot = stage.slots()[1].slot
    remove_record(stage.store, slot)
    found = board.sums()
    assert (found.missing, found.unaccounted) == (1, (("work", slot),))
    assert sum(found.counts.values()) == found.due


def test_the_watcher_says_that_the_accounting_is_not_what_it_was(stage: Stage) -> None:
    stage.hours(4)
    time = [100.0]
    watcher = Watcher(lambda: stage.client, clock=lambda: time[0])
    watcher.look()
    position = watcher.changes.position
    slot = stage.slots()[1].slot
    remove_record(stage.store, slot)
    for _ in range(6):
        time[0] += 2
        watcher.look()
    changes, _ = watcher.changes.since(position)
    assert [change.topics for change in changes or ()] == [{"accounting"}]


def test_many_jobs_are_compared_a_few_at_a_time_and_those_that_changed_first() -> None:
    store = make_store("memory://many-accounts")
    put(store, *(job(f"j{number:03}", definition=HOURLY) for number in range(200)))
    board = Board(store)
    first = board.sums()
    assert (first.checked_jobs, first.of_jobs) == (60, 200)
    before = store.statements.total()
    board.board.concern(["j199"])
    assert board.sums().checked_jobs == 121, "the one that changed, and sixty more"
    assert store.statements.total() - before < 80
    done = board.sums(3)
    assert (done.checked_jobs, done.of_jobs) == (200, 200)
    before = store.statements.total()
    board.sums()
    assert store.statements.total() - before < 15, "later rounds are slow on purpose"


def test_jobs_that_come_and_go_are_counted_and_forgotten() -> None:
    store = make_store("memory://come-and-go")
    put(store, job("a", definition=HOURLY), job("gone", definition=HOURLY, removed=True))
    board = Board(store)
    assert (board.sums().checked_jobs, board.sums().of_jobs) == (1, 1)
    put(store, job("b", definition=HOURLY))
    board.board.concern(["b"])
    assert board.sums().of_jobs == 2
    put(store, job("b", definition=HOURLY, removed=True))
    board.board.concern(["b", "no such job"])
    found = board.sums()
    assert (found.checked_jobs, found.of_jobs, found.counts) == (1, 1, {"due": 24})


def test_a_job_that_cannot_be_compared_is_named() -> None:
    store = make_store("memory://too-many-slots")
    put(store, job("often", definition=replace(HOURLY, schedule={"kind": "every", "period": "1s"})))
    found = Board(store).sums()
    assert list(found.left_out) == ["often"]
    assert "more than 5000" in found.left_out["often"]


def test_a_refused_success_of_a_run_that_succeeded_elsewhere_is_done_twice() -> None:
    store = make_store("memory://done-twice")
    now = store.clock()
    put(store, job("j"), records=(record("j@1", at=now, status=Status.SUCCEEDED, fence=8),))
    put(store, job("j"), records=(record("j@2", at=now, status=Status.FAILED, fence=8),))

    def refused(*runs: tuple[str, int, str]) -> Session:
        ends = tuple(RefusedEnd(run=run, fence=fence, at=now, outcome=outcome) for run, fence, outcome in runs)
        return replace(session("s", expires_at=now), report=SelfReport(refused=ends))

    board = Board(store)
    board.board.note_refused(
        [refused(("j@1", 7, "succeeded")), refused(("j@1", 6, "failed"), ("j@2", 7, "succeeded"))], now
    )
    assert board.sums().done_twice == 1
    board.board.note_refused([], now)
    assert board.sums().done_twice == 0


def test_the_api_shows_the_sums_and_the_records_of_each_hour(world: World) -> None:
    found = world.ask(f"{API}/accounting").json
    assert (found["checked_jobs"], found["of_jobs"], found["missing"]) == (3, 3, 0)
    assert found["due"] == sum(found["counts"].values())
    assert sum(sum(hour["counts"].values()) for hour in found["by_hour"]) >= 2
