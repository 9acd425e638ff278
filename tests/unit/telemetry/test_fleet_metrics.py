"""Fleet metrics: the state of a namespace from its store, and counters of what no living process can count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron import Scheduler
from solocron.client import Client
from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Last, Pause
from solocron.model.documents.run import Origin, Status
from solocron.stores.contract import Store
from solocron.stores.url import make_store
from solocron.telemetry.families import Family, exposition
from solocron.telemetry.fleet import FRESH, FleetMetrics
from solocron.telemetry.fleet_counts import OTHER, SETTLED
from solocron.testing.conformance.kit import HOUR, hold, job, put, record, session


class Fleet:
    """A namespace in memory, and its metrics under a clock that the test moves."""

    def __init__(self, name: str, most: int = 1_000) -> None:
        self.store: Store = make_store(f"memory://{name}")
        self.now = 0.0
        self.away = False
        self.metrics = FleetMetrics(self._client, lambda: "default", clock=lambda: self.now, most=most)

    def _client(self) -> Client:
        if self.away:
            raise StoreUnavailable("it is away")
        return Client(self.store)

    def look(self, *, after: float = FRESH) -> dict[str, dict[tuple[str, ...], float]]:
        """Return the samples by the name of their family, without the label of the namespace."""
        self.now += after
        return {
            family.shown: {labels[1:]: value for labels, value in family.samples.items()}
            for family in self.metrics.families()
        }


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> Fleet:
    return Fleet(request.node.name)


def test_outcomes_are_counted_once_each_and_begin_with_zero(fleet: Fleet) -> None:
    """A run that died with its node, and slots that no node was there for, are on record and counted."""
    store, now = fleet.store, fleet.store.clock()
    put(store, job("j"), records=(record("j@old", at=now - HOUR),))
    assert fleet.look()["solocron_job_runs_total"]["j", "lost"] == 0, (
        "of a series that begins with 1 no increase is seen"
    )
    put(store, job("j"), records=(
        record("j@1", at=now, status=Status.LOST),
        record("j@2", at=now, status=Status.SUCCEEDED),
        record("j@3", at=now, status=Status.MISSED, attempt=0, count=7, first=now - HOUR),
    ))  # fmt: skip
    assert fleet.look()["solocron_job_runs_total"]["j", "lost"] == 0, "a record may become visible after its time"
    for _ in range(2):
        store.shift_clock(SETTLED + SECOND)
        seen = fleet.look()
        assert seen["solocron_job_runs_total"] == {
            ("j", outcome): float(outcome in ("lost", "succeeded"))
            for outcome in ("succeeded", "failed", "timed_out", "cancelled", "lost", "handed_over")
        }
        assert seen["solocron_job_slots_total"]["j", "missed"] == 7


def test_a_failing_job_keeps_the_time_of_its_last_success(fleet: Fleet) -> None:
    """The document has only the last outcome: the alert on absence needs the success before it."""
    now = fleet.store.clock()
    failed = Last(run="j@2", slot=now, attempt=1, status=Status.FAILED, finished_at=now)
    put(fleet.store, job("j", last=failed, failures=1), job("never", last=failed), records=(
        record("j@1", at=now - HOUR), record("j@2", at=now, status=Status.FAILED),
    ))  # fmt: skip
    seen = fleet.look()
    assert seen["solocron_job_last_success_timestamp_seconds"] == {("j",): (now - HOUR) / SECOND}
    assert seen["solocron_job_last_run_timestamp_seconds"]["never",] == now / SECOND
    assert seen["solocron_job_failures_in_a_row"]["j",] == 1


def test_a_pool_with_jobs_and_no_node_has_a_zero_to_alert_on(fleet: Fleet) -> None:
    now = fleet.store.clock()
    put(
        fleet.store,
        job("a", due_at=now - HOUR, active=(hold("a@1", "s"),)),
        job("b", pool="gpu", due_at=now + 60 * SECOND),
        job("c", pool="gpu", due_at=now - HOUR, paused=Pause(at=1)),
        replace(session("s", expires_at=now + HOUR), handlers=("h",)),
    )
    seen = fleet.look()
    assert seen["solocron_nodes"]["gpu", "live"] == 0
    assert seen["solocron_nodes"]["default", "live"] == 1
    assert {key: value for key, value in seen["solocron_jobs"].items() if value} == {
        ("default", "late"): 1, ("gpu", "orphaned"): 1, ("gpu", "paused"): 1,
    }  # fmt: skip
    assert seen["solocron_pool_due"] == {("default",): 1, ("gpu",): 0}
    assert seen["solocron_pool_soon"] == {("default",): 2, ("gpu",): 1}
    assert (seen["solocron_job_paused"]["c",], seen["solocron_job_running"]["a",]) == (1, 1)
    assert (seen["solocron_job_orphaned"]["b",], seen["solocron_job_orphaned"]["a",]) == (1, 0)
    assert seen["solocron_job_next_run_timestamp_seconds"]["b",] == (now + 60 * SECOND) / SECOND
    assert seen["solocron_job_waiting"]["a",] == 0


def test_a_period_is_the_longest_gap_so_that_a_weekend_is_not_a_delay(fleet: Fleet) -> None:
    workdays = Definition(handler="h", schedule={"kind": "cron", "expression": "0 9 * * MON-FRI", "tz": "UTC"})
    off = Definition(handler="h", schedule=workdays.schedule, enabled=False)
    put(fleet.store, job("workdays", definition=workdays), job("off", definition=off), job("by trigger"))
    assert fleet.look()["solocron_job_period_seconds"] == {("workdays",): 3 * 24 * 3_600}


def test_beyond_the_most_the_jobs_that_need_attention_have_names(request: pytest.FixtureRequest) -> None:
    fleet = Fleet(request.node.name, most=2)
    now = fleet.store.clock()
    live = replace(session("s", expires_at=now + HOUR), handlers=("h",))
    put(fleet.store, *(job(f"j{n}") for n in range(4)), job("z", failures=2), live)
    assert {name for (name,) in fleet.look()["solocron_job_running"]} == {"j0", "z"}
    put(fleet.store, job("j3"), records=tuple(record(f"j{n}@1", job=f"j{n}", at=now) for n in range(4)))
    fleet.store.shift_clock(SETTLED + SECOND)
    runs = fleet.look()["solocron_job_runs_total"]
    assert (runs["j0", "succeeded"], runs[OTHER, "succeeded"]) == (1, 3)


def test_a_look_is_shared_and_a_slow_one_for_longer(fleet: Fleet) -> None:
    put(fleet.store, job("j"))
    fleet.look()
    before = fleet.store.statements.total()
    fleet.look(after=FRESH - 1)
    assert fleet.store.statements.total() == before
    fleet.look(after=1)
    assert fleet.store.statements.total() > before


def test_of_a_store_that_is_away_only_that_is_told(fleet: Fleet) -> None:
    put(fleet.store, job("j"))
    assert fleet.look()["solocron_store_up"] == {(): 1}
    fleet.away = True
    seen = fleet.look()
    assert seen.keys() == {"solocron_store_up", "solocron_scrape_seconds"}
    assert seen["solocron_store_up"] == {(): 0}
    fleet.away = False
    assert "solocron_jobs" in fleet.look()


def test_open_alarms_are_counted_by_kind() -> None:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.alarms(every="1ms", patience=0)
    scheduler.every("1h", name="job", pool="gpu")(lambda: None)
    scheduler.tick()
    metrics = FleetMetrics(scheduler.open, lambda: "default", clock=lambda: 0.0)
    (alarms,) = [family for family in metrics.families() if family.name == "solocron_alarms"]
    assert alarms.samples["default", "no node"] == 1
    assert sum(alarms.samples.values()) == 1


def test_labels_are_escaped_in_the_text() -> None:
    family = Family("x", "a\nb", ("l",), "counter")
    family.add(1.5, 'a"b\\c\nd')
    assert exposition([family]) == '# HELP x_total a\\nb\n# TYPE x_total counter\nx_total{l="a\\"b\\\\c\\nd"} 1.5\n'


def test_a_backfill_counts_like_any_run(fleet: Fleet) -> None:
    now = fleet.store.clock()
    put(fleet.store, job("j"))
    fleet.look()
    put(fleet.store, job("j"), records=(record("j@1", at=now, origin=Origin.BACKFILL),))
    fleet.store.shift_clock(SETTLED + SECOND)
    assert fleet.look()["solocron_job_runs_total"]["j", "succeeded"] == 1
