"""The store goes back while a body runs in a process of its own, or while its node drains: nothing is done twice."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from solocron import Backoff, Run, Scheduler, every
from solocron.testing.fleet import wait_until

BACKOFF = Backoff(first="500ms", cap="1s")


@dataclass(frozen=True)
class Signs:
    """What test and bodies tell each other: files in one folder."""

    folder: Path

    def give(self, sign: str) -> None:
        (self.folder / sign).touch()

    def wait(self, sign: str) -> None:
        wait_until((self.folder / sign).exists, within=30, what=sign)

    def charge(self) -> None:
        with (self.folder / "charged").open("a") as ledger:
            ledger.write("x")

    def charges(self) -> int:
        return len((self.folder / "charged").read_text())


@every("1d", name="step", run_in="process", retries=1, backoff=BACKOFF)
def saves_a_step(run: Run) -> int:
    signs = Signs(Path(run.payload))
    run.step("charge").call(signs.charge)
    if run.attempt == 1:
        signs.give("saved")
        signs.wait("go")
        raise ValueError("once more")
    return signs.charges()


def uses_a_key(run: Run) -> int:
    signs = Signs(Path(run.payload))
    signs.give("begun")
    signs.wait("go")
    with run.once("charge") as claim:
        if claim:
            signs.charge()
    return signs.charges()


@every("1d", name="key-in-a-process", run_in="process", retries=9, backoff=BACKOFF)
def in_a_process(run: Run) -> int:
    return uses_a_key(run)


@every("1d", name="key-in-a-fork", run_in="process", retries=9, backoff=BACKOFF)
def in_a_fork(run: Run) -> int:
    """A process that the body forks has the same rights, and the same duties, as the body."""
    pid = os.fork()
    if pid == 0:
        try:
            uses_a_key(run)
        except BaseException:  # whatever it is, the exit code tells it
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError("the key was refused")
    return Signs(Path(run.payload)).charges()


@every("1d", name="key-on-a-thread", retries=9, backoff=BACKOFF)
def on_a_thread(run: Run) -> int:
    return uses_a_key(run)


@dataclass(frozen=True)
class House:
    """A scheduler on a file that can be put back to an earlier state, as another file."""

    scheduler: Scheduler
    file: Path
    signs: Signs
    opened: threading.Event
    """Set when claims are granted again after a check."""

    def back_up(self) -> None:
        with closing(sqlite3.connect(self.file)) as live, closing(sqlite3.connect(self._copy)) as copy:
            live.backup(copy)

    def restore(self) -> None:
        for ending in ("-wal", "-shm"):  # with the log of the old file the new one would be rolled forward
            Path(f"{self.file}{ending}").unlink(missing_ok=True)
        os.replace(self._copy, self.file)

    def trigger(self, job: str) -> str:
        return self.scheduler.trigger(job, str(self.signs.folder))

    @property
    def _copy(self) -> Path:
        return self.file.with_name("backup.db")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    file, folder = tmp_path / "store.db", tmp_path / "signs"
    folder.mkdir()
    scheduler = Scheduler(f"sqlite:///{file}", enabled=True, lease="3s", node="here")
    scheduler.discover(saves_a_step, in_a_process, in_a_fork, on_a_thread)
    opened = threading.Event()
    scheduler.events.on("namespace open", lambda event: opened.set())
    with scheduler:
        yield House(scheduler, file, Signs(folder), opened)


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_a_step_of_a_process_of_its_own_is_put_back(house: House) -> None:
    """No node remembered it: the next attempt carried it out again."""
    house.back_up()
    run = house.trigger("step")
    house.signs.wait("saved")
    house.restore()
    assert house.opened.wait(30)
    house.signs.give("go")
    view = house.scheduler.wait(run, "30s")
    assert (view.status, view.attempt, view.result) == ("succeeded", 2, 1), view.error


@pytest.mark.parametrize("job", ["key-in-a-process", "key-in-a-fork"])
def test_a_process_of_its_own_opens_no_key_in_a_store_that_has_to_be_checked(house: House, job: str) -> None:
    """The key was done, and its end was lost. The process opened it again before its node had put it back."""
    house.back_up()
    with house.scheduler.once("charge"):
        house.signs.charge()
    run = house.trigger(job)
    house.signs.wait("begun")
    house.restore()
    house.signs.give("go")
    assert house.opened.wait(30), "until then the store lacks the run"
    view = house.scheduler.wait(run, "30s")
    assert (view.status, view.result) == ("succeeded", 1), view.error


def test_a_body_of_a_node_that_drains_opens_no_key_in_a_store_that_has_to_be_checked(house: House) -> None:
    """A node that drains has left its scheduler, but not its runs: they opened the key again."""
    house.back_up()
    with house.scheduler.once("charge"):
        house.signs.charge()
    house.trigger("key-on-a-thread")
    house.signs.wait("begun")
    draining = threading.Thread(target=house.scheduler.stop, args=("20s",))
    draining.start()
    wait_until(lambda: not house.scheduler.health().ready, within=10, what="the drain")
    house.restore()
    house.signs.give("go")
    draining.join()
    assert house.signs.charges() == 1
