"""Many jobs at once on real servers: a handful of statements, and two that sync together do not block each other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from solocron import JobSpec, Scheduler
from solocron.client import bulk

STORES = ("sqlite", "postgres", "mariadb", "redis_server")


def url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    return f"sqlite:///{folder / 'jobs.db'}" if kind == "sqlite" else str(request.getfixturevalue(kind).fresh_url())


def made(url: str) -> Scheduler:
    scheduler = Scheduler(url, enabled=True)
    scheduler.register(lambda: None, name="send")
    return scheduler


def specs(count: int, hour: int = 7) -> list[JobSpec]:
    return [
        JobSpec(f"invoice:{number:04}", "send", f"0 {hour} * * *", payload={"n": number}) for number in range(count)
    ]


@pytest.mark.parametrize("kind", STORES)
def test_a_thousand_jobs_take_a_handful_of_statements(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """One by one they were 8,000 statements to add and 5,000 to remove on PostgreSQL."""
    scheduler = made(url_of(kind, request, tmp_path))
    counted = scheduler.open().store.statements
    before = sum(counted.values())
    assert len(scheduler.add_all(specs(1_000))) == 1_000
    added = sum(counted.values()) - before
    assert scheduler.sync(specs(1_000), within="invoice:").same == 1_000
    assert len(scheduler.remove_all([spec.name for spec in specs(1_000)])) == 1_000
    removed = sum(counted.values()) - before - added
    scheduler.stop()
    assert added <= 20
    assert removed <= 30


@pytest.mark.parametrize("kind", STORES)
def test_processes_that_sync_at_once_end_with_their_list(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 16)  # several writes each, in turns with those of the others
    url, errors, start = url_of(kind, request, tmp_path), list[BaseException](), threading.Barrier(3)
    first = made(url)
    first.sync([*specs(40), JobSpec("invoice:old", "send", "@daily")], within="invoice:")

    def one() -> None:
        scheduler = made(url)
        try:
            start.wait(60)
            scheduler.sync(specs(60, hour=8), within="invoice:")
        except BaseException as error:
            errors.append(error)
        finally:
            scheduler.stop()

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    found = {job.name: job.expression for job in first.jobs()}
    first.stop()
    assert errors == []
    assert found == {spec.name: "0 8 * * *" for spec in specs(60)}
