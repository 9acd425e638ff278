"""`scheduler.setup`: a function that prepares the processes whose program is Solocron itself."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from solocron import ConfigurationError, InvalidError, Scheduler
from tests.unit.face import boot

JOBS = "tests.unit.face.booted_jobs"


@pytest.fixture
def prepared() -> Iterator[None]:
    """This process has prepared itself, as an application has."""
    boot.boot()
    yield
    boot.calls = 0
    sys.modules.pop(JOBS, None)


def make(folder: Path) -> Scheduler:
    scheduler = Scheduler(f"sqlite:///{folder / 'store.db'}", enabled=True)
    scheduler.discover(importlib.import_module(JOBS))
    return scheduler


@pytest.mark.usefixtures("prepared")
def test_a_process_of_its_own_is_prepared_before_the_module_of_its_job_is_imported(tmp_path: Path) -> None:
    """And what the job is given is made there."""
    scheduler = make(tmp_path)
    scheduler.setup("tests.unit.face.boot:boot")
    with scheduler:
        view = scheduler.wait(scheduler.trigger("isolated"), "60s")
    assert (view.status, view.result) == ("succeeded", "1 call of boot, db in a child"), view.error
    assert boot.calls == 1, "the process of the node has prepared itself, and is left alone"


@pytest.mark.parametrize("place", ["boot", "tests.unit.face.boot", "tests unit:boot", ":boot", "boot:"])
def test_an_address_has_a_module_and_a_function(place: str) -> None:
    with pytest.raises(InvalidError, match='as "module:function"'):
        Scheduler("memory://").setup(place)


def test_a_function_that_is_not_there_is_refused_at_the_start() -> None:
    scheduler = Scheduler("memory://", enabled=True)
    scheduler.setup("tests.unit.face.boot:boots")
    with pytest.raises(ConfigurationError, match=r"boot:boots.*was not found.*nothing was started"):
        scheduler.start()


def test_a_function_by_itself_must_be_one_that_another_process_finds() -> None:
    with pytest.raises(InvalidError, match="is a lambda"):
        Scheduler("memory://").setup(lambda: None)
    Scheduler("memory://").setup(boot.boot)


def test_after_the_start_it_is_too_late() -> None:
    with Scheduler("memory://", enabled=True) as scheduler, pytest.raises(InvalidError, match="before it starts"):
        scheduler.setup("tests.unit.face.boot:boot")
