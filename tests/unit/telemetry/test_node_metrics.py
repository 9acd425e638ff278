"""Node metrics: what one process did, counted from its events, for the registry of `prometheus_client`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from solocron import Backoff, ConfigurationError, Event, MissingExtra, Run, Scheduler
from solocron.events import NAMES
from solocron.telemetry.metrics import _WANTED, NodeMetrics


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """Return the sum of the samples that have these labels."""
    found = [
        sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found)


def counting(**options: Any) -> tuple[NodeMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    made = NodeMetrics(
        registry, namespace=lambda: "default", node=lambda: "n", version="1", zone_data="2026a", **options
    )
    return made, registry


def test_a_node_counts_its_runs_their_lateness_and_the_calls_of_its_store() -> None:
    scheduler, registry = Scheduler("memory://", enabled=True, node="n"), CollectorRegistry()
    scheduler.metrics(registry)
    tries: list[int] = []

    @scheduler.every("365d", name="job", retries=1, backoff=Backoff(first="1ms"))
    def job(run: Run) -> None:
        tries.append(run.attempt)
        if len(tries) == 1:
            assert value(registry, "solocron_runs_running", node="n") == 1
            raise ValueError("not yet")

    with scheduler:
        scheduler.wait(scheduler.trigger("job"), "10s")
    where = {"namespace": "default", "node": "n", "job_name": "job"}
    assert value(registry, "solocron_runs_total", outcome="failed", **where) == 1
    assert value(registry, "solocron_runs_total", outcome="succeeded", **where) == 1
    assert value(registry, "solocron_run_duration_seconds_count", **where) == 2
    assert value(registry, "solocron_run_lateness_seconds_count", **where) == 1, "a retry is late on purpose"
    assert value(registry, "solocron_runs_running") == 0
    assert value(registry, "solocron_store_seconds_count", verb="update") >= 4
    assert value(registry, "solocron_build_info", node="n") == 1
    assert 'job="' not in generate_latest(registry).decode(), "Prometheus has a label of that name"


@pytest.mark.parametrize(
    ("name", "facts", "metric", "labels"),
    [
        ("held elsewhere", {}, "claim_conflicts_total", {}),
        ("session lost", {}, "sessions_lost_total", {}),
        ("refused", {"run": "j@1", "fence": 1}, "fence_rejections_total", {}),
        ("store error", {}, "store_errors_total", {}),
        ("not delivered", {}, "deliveries_failed_total", {}),
        ("session renewed", {"skew_s": 0.5}, "renewals_total", {"result": "renewed"}),
        ("session renewed", {"skew_s": 1.0}, "clock_skew_seconds", {}),
        ("renewal failed", {}, "renewals_total", {"result": "failed"}),
        ("taken over", {"runs": ({"run": "j@1"},)}, "takeovers_total", {}),
        ("taken over", {"runs": ({"run": "j@1"},)}, "runs_total", {"job_name": "j", "outcome": "lost"}),
        ("slot passed", {"outcome": "missed", "count": 1}, "slots_total", {"job_name": "j", "outcome": "missed"}),
        ("handed over", {"carrier": "q"}, "handovers_total", {"carrier": "q", "result": "published"}),
        ("hand-over failed", {"carrier": "q"}, "handovers_total", {"carrier": "q", "result": "failed"}),
        ("not picked up", {"carrier": "q"}, "handovers_total", {"carrier": "q", "result": "lapsed"}),
        ("picked up", {"carrier": "q", "waited_s": 2.0}, "handovers_total", {"carrier": "q", "result": "picked_up"}),
        ("picked up", {"carrier": "q", "waited_s": 2.0}, "pickup_wait_seconds_count", {"carrier": "q"}),
        ("message dropped", {"carrier": None, "reason": "x"}, "messages_dropped_total", {"result": "other"}),
    ],
)
def test_each_event_is_counted_where_alerts_look(
    name: str, facts: dict[str, Any], metric: str, labels: dict[str, str]
) -> None:
    metrics, registry = counting()
    assert metrics.wants(name)
    metrics(Event(name, {"job": "j", **facts}))
    assert value(registry, f"solocron_{metric}", namespace="default", node="n", **labels) == 1


def test_only_events_that_exist_are_counted() -> None:
    assert NAMES.keys() >= _WANTED


def test_beyond_the_most_names_all_further_jobs_share_one(caplog: pytest.LogCaptureFixture) -> None:
    metrics, registry = counting(most=2)
    for number in range(5):
        metrics(Event("slot passed", {"job": f"j{number}", "outcome": "skipped", "count": 1}))
    assert value(registry, "solocron_slots_total", job_name="_other") == 3
    assert [record.getMessage().split(";")[0] for record in caplog.records] == ["metrics: more than 2 names of jobs"]


def test_jobs_that_are_data_can_be_counted_by_their_function() -> None:
    metrics, registry = counting(by="handler")
    for tenant in ("a", "b"):
        metrics(Event("slot passed", {"job": f"bill:{tenant}", "handler": "bill", "outcome": "skipped", "count": 1}))
    assert value(registry, "solocron_slots_total", job_name="bill") == 2


def test_the_workers_behind_one_port_are_summed_by_the_multiprocess_mode_of_the_client(tmp_path: Path) -> None:
    """As it is: a worker needs nothing but the client's folder."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    folder = tmp_path / "prometheus"
    folder.mkdir()
    worker = (
        "from solocron import Scheduler\n"
        f"scheduler = Scheduler({url!r}, enabled=True, node='worker')\n"
        "scheduler.metrics()\n"
        "scheduler.every('365d', name='job')(lambda: None)\n"
        "with scheduler: scheduler.wait(scheduler.trigger('job'), '30s')\n"
    )
    answers = (
        "from prometheus_client import CollectorRegistry, generate_latest\n"
        "from prometheus_client.multiprocess import MultiProcessCollector\n"
        "from solocron import Scheduler\n"
        "registry = CollectorRegistry()\n"
        "MultiProcessCollector(registry)\n"
        f"Scheduler({url!r}, enabled=True, node='answers').metrics(registry, fleet=True)\n"
        "print(generate_latest(registry).decode())\n"
    )
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    for program in (worker, worker, answers):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    own = 'job_name="job",namespace="default",node="worker"'
    assert f'solocron_runs_total{{{own},outcome="succeeded"}} 2.0' in lines, done.stdout
    assert f"solocron_run_duration_seconds_count{{{own}}} 2.0" in lines
    assert 'solocron_runs_running{namespace="default",node="worker"} 0.0' in lines
    assert lines.count("# TYPE solocron_runs_total counter") == 1, "no family is there twice"
    assert lines.count("# TYPE solocron_nodes gauge") == 1, "nor is that of the fleet missing"


def test_two_schedulers_of_a_process_share_a_registry() -> None:
    registry = CollectorRegistry()
    for namespace in ("a", "b"):
        scheduler = Scheduler("memory://", enabled=True, namespace=namespace)
        scheduler.metrics(registry)
        scheduler.every("365d", name="job")(lambda: None)
        scheduler.tick()
    assert value(registry, "solocron_build_info", namespace="a") == value(
        registry, "solocron_build_info", namespace="b"
    )


def test_the_fleet_can_be_asked_through_the_same_registry() -> None:
    scheduler, registry = Scheduler("memory://", enabled=True), CollectorRegistry()
    scheduler.metrics(registry, fleet=True)
    scheduler.every("365d", name="job")(lambda: None)
    with scheduler:
        assert value(registry, "solocron_nodes", state="live") == 1
        assert value(registry, "solocron_store_up") == 1


def test_nonsense_is_refused_and_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler("memory://", enabled=True)
    with pytest.raises(ConfigurationError, match=r"by=.pool. is not known; choose job or handler\. Nothing was"):
        scheduler.metrics(by="pool")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"most=0: give a whole number from 1 up"):
        scheduler.metrics(most=0)
    scheduler.metrics(CollectorRegistry())
    with pytest.raises(ConfigurationError, match="was called before"):
        scheduler.metrics(CollectorRegistry())
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtra, match=r"solocron\[metrics\]"):
        Scheduler("memory://", enabled=True).metrics()
