"""The harness of the scenarios in which a store goes back: each loss is real, and the judge sees what it must see."""

from __future__ import annotations

import json
import select
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import psycopg
import pytest

from proof.chaos.jobs.quiet import PERIOD
from proof.chaos.places import Place
from proof.chaos.recall import Recall, first_start
from proof.chaos.vaults import SETTINGS, VAULTS, vault_of
from solocron.clock import SECOND
from solocron.model.documents.run import Origin, key_of
from solocron.stores.url import make_store
from solocron.testing.fleet import Fleet, Line
from tests.servers import SERVERS, Postgres
from tests.servers.fixtures import require
from tests.servers.standby import Pair

SINCE = 1_700_000_004 * SECOND
SLOT = SINCE + int(PERIOD) * SECOND
NODE, OTHER = 1, 2
QUICK = {"fsync": "off"}
"""kill -9 leaves the operating system's cache intact."""
SLOW = ("valkey", "etcd", "zookeeper")
"""One is as Redis; the servers of the others take seconds to start again. With --long."""


def test_a_promoted_standby_lacks_what_was_committed_after_the_cut() -> None:
    """The URL that names both servers finds the one that takes writes."""
    require(Postgres)
    with Pair(settings=QUICK) as pair:
        pair.primary.sql("CREATE TABLE note (text varchar(9))")
        pair.primary.sql("INSERT INTO note VALUES ('kept')")
        pair.attach()
        assert standbys(pair) == "WARN", "doctor calls a primary with asynchronous standbys what it is"
        pair.cut()
        pair.primary.sql("INSERT INTO note VALUES ('lost')")
        before = pair.primary.port
        pair.fail_over()
        with psycopg.connect(pair.url) as db:
            assert db.execute("SELECT text FROM note").fetchall() == [("kept",)]
            assert db.info.port == pair.primary.port != before


def standbys(pair: Pair) -> str:
    store = make_store(pair.primary.url)
    try:
        return next(check.level for check in store.checks() if check.name == "standbys")
    finally:
        store.close()


def test_with_remote_apply_a_commit_after_the_cut_is_not_acknowledged() -> None:
    require(Postgres)
    with Pair(synchronous=True, settings=QUICK) as pair:
        pair.attach()
        assert standbys(pair) == "OK"
        pair.primary.sql("CREATE TABLE note (text varchar(9))")
        with closing(psycopg.connect(pair.primary.url, autocommit=True)) as db:
            pair.cut()
            db.pgconn.send_query(b"INSERT INTO note VALUES ('waits')")
            db.pgconn.flush()
            assert select.select([db.pgconn.socket], [], [], 0.3) == ([], [], []), "it has been acknowledged"
            pair.fail_over()
        assert pair.primary.sql("SELECT text FROM note") == []


@pytest.mark.parametrize(
    "store", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in VAULTS]
)
def test_each_way_of_a_restore_takes_away_what_came_after_the_backup(store: str) -> None:
    if store in SERVERS:
        require(SERVERS[store])
    quick = QUICK if store == "postgres" else {}
    with Place(store, settings={**SETTINGS.get(store, {}), **quick}) as place:
        vault = vault_of(place)
        for way in vault.ways:
            vault.back_up(way)
            assert not vault.marked()
            vault.mark()
            assert vault.marked()
            vault.restore(way)
            assert not vault.marked(), way


# --- the judge


class Case:
    """A fleet without nodes, whose ledger a test writes; one slot of each of its four jobs is due."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.judge = Recall(fleet)
        self.judge._since, self.judge._until = SINCE, SLOT
        fleet.scheduler.open().store.open()

    def start(
        self, job: str, *, at: float, attempt: int = 1, pid: int = NODE, fence: int = 1, slot: int = SLOT
    ) -> None:
        line = Line(
            event="start", job=job, run=f"{job}:{slot}", key=key_of(job, Origin.SCHEDULE, slot, None), slot=slot,
            attempt=attempt, fence=fence, node=f"node-{pid}", pid=pid, at=at,
        )  # fmt: skip
        with (self.fleet.ledger.folder / f"{pid}.ledger").open("a") as file:
            file.write(json.dumps(asdict(line)) + "\n")


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with Fleet(["proof.chaos.jobs.quiet"], store=store, folder=tmp_path, lease="3s") as fleet:
        yield Case(fleet)


def test_the_same_attempt_twice_is_told_by_kind_of_job(case: Case) -> None:
    for job in ("once-0s", "again-0s"):
        case.start(job, at=1.0)
        case.start(job, at=2.5, pid=OTHER)
    found = case.judge.find()
    assert found.attempts_twice == {"once": 1, "again": 1}
    assert found.slots_twice == {"once": 1, "again": 1}
    assert "attempt 1 started 2 times: node-1 +0.00 s (fence 1), node-2 +1.50 s (fence 1)" in found.faults[0]
    assert all("I22: " in fault for fault in found.faults[:2])


def test_a_further_attempt_is_honest_with_retries_and_a_fault_without(case: Case) -> None:
    for job in ("once-0s", "again-0s"):
        case.start(job, at=1.0)
        case.start(job, at=2.0, attempt=2, fence=2)
    found = case.judge.find()
    assert found.attempts_twice == {"once": 0, "again": 0}
    assert found.slots_twice == {"once": 1, "again": 1}
    assert [fault for fault in found.faults if fault.startswith("I22: ")] == [
        "I22: once-0s@2023-11-14T22:13:36Z has no retries and started 2 times: node-1 +0.00 s (fence 1), "
        "node-1 +1.00 s (fence 2)"
    ]


def test_what_only_a_dead_node_remembers_is_excused_where_there_are_retries(case: Case) -> None:
    for job in ("once-0s", "again-0s"):
        case.start(job, at=1.0)
        case.start(job, at=2.0, pid=OTHER)
    found = case.judge.find(dead={NODE})
    assert found.attempts_twice == {"once": 1, "again": 0}
    assert found.excused == 1


def test_a_fence_that_two_attempts_have_is_a_fault(case: Case) -> None:
    case.start("again-0s", at=1.0)
    case.start("again-0s", at=2.0, slot=SLOT + SECOND)
    found = case.judge.find()
    assert found.fences_twice == 1
    assert found.faults[0].startswith("I3: fence 1 of again-0s was granted 2 times")


def test_a_slot_with_neither_body_nor_record_is_lost(case: Case) -> None:
    case.start("once-1s", at=1.0)
    found = case.judge.find()
    assert (found.slots, found.lost, found.unrecorded) == (4, 3, 4)
    assert "I5: once-1s 2023-11-14T22:13:36Z: a body ran, but there is no record" in found.faults
    assert "I5: once-0s 2023-11-14T22:13:36Z: no body and no record" in found.faults


def test_the_first_start_after_a_return_is_one_that_had_not_started_before(case: Case) -> None:
    case.start("once-0s", at=1.0)
    case.start("once-0s", at=3.0, pid=OTHER)
    assert first_start(case.fleet, after=2.0) is None
    case.start("once-1s", at=4.0)
    line = first_start(case.fleet, after=2.0)
    assert line is not None
    assert line.at == 4.0
