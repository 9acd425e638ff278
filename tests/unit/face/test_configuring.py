"""Another configuration before the start, as the flags of the command line give one: everything follows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solocron import ConfigurationError, Scheduler
from solocron.clock import SECOND
from solocron.scheduler.hooks import core_of
from solocron.stores.url import Secret


def move(scheduler: Scheduler, url: str) -> None:
    core = core_of(scheduler)
    core.configure(replace(core.configuration, store=Secret(url)))


@pytest.mark.parametrize(
    ("url", "days"),
    [("etcd://h1,h2/solocron", 7), ("etcds://u:secret@h1/jobs", 7), ("postgresql://h/jobs", 30), ("memory://etcd", 30)],
)
def test_how_long_records_are_kept_follows_from_the_store(url: str, days: int) -> None:
    assert core_of(Scheduler(url)).settings.keep == days * 24 * 3600 * SECOND
    assert core_of(Scheduler(url, keep="2d")).settings.keep == 2 * 24 * 3600 * SECOND


def test_a_lock_of_module_level_follows_the_scheduler_to_another_store() -> None:
    scheduler = Scheduler("memory://module", enabled=True)
    lock = scheduler.lock("door", keep_alive=True)
    move(scheduler, "memory://flag")
    with lock:
        assert [one.name for one in Scheduler("memory://flag").locks()] == ["door"]
    assert Scheduler("memory://module").locks() == []


def test_a_job_that_was_added_before_stays_behind_and_later_ones_follow() -> None:
    scheduler = Scheduler("memory://before", enabled=True)
    scheduler.register(print, name="work")
    scheduler.add("old", "work", "@daily")
    move(scheduler, "memory://after")
    scheduler.add("new", "work", "@daily")
    assert [job.name for job in Scheduler("memory://before").jobs()] == ["old"]
    assert [job.name for job in Scheduler("memory://after").jobs()] == ["new"]


def test_a_scheduler_that_runs_keeps_its_configuration() -> None:
    with (
        Scheduler("memory://runs", enabled=True) as scheduler,
        pytest.raises(ConfigurationError, match="runs already, so nothing was changed"),
    ):
        move(scheduler, "memory://elsewhere")
    assert scheduler.open().store.url == "memory://runs"
