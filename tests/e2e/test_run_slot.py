"""`solocron run-slot TARGET JOB` with real processes: retries, a killed process, a living one, another job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.testing.fleet import wait_until

PROGRAMS = Path(__file__).parent / "programs"

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setenv("SHOP_STORE", f"sqlite:///{tmp_path}/shop.db")
    return tmp_path / "ledger"


@pytest.fixture
def start(ledger: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "solocron", "run-slot", "slot_shop", "bill", "--log-level", "error"]
        pipe = subprocess.DEVNULL
        started.append(subprocess.Popen(command, cwd=PROGRAMS, stdout=pipe, stderr=pipe))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def shop(ledger: Path, start: Start) -> Iterator[Scheduler]:
    """The store with both jobs in it, each of which no slot has reached."""
    assert start().wait() == 0, "nothing is due, and that is no failure"
    scheduler = Scheduler(os.environ["SHOP_STORE"])
    yield scheduler
    scheduler.stop()


def began(ledger: Path) -> list[list[str]]:
    return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


def test_it_waits_for_its_own_retry_and_leaves_other_jobs_alone(shop: Scheduler, start: Start, ledger: Path) -> None:
    run, _ = shop.trigger("bill", "fail"), shop.trigger("other")
    assert start().wait() == 0
    assert began(ledger) == [[run, "1"], [run, "2"]]


def test_a_killed_one_is_taken_over_and_a_living_one_left_alone(shop: Scheduler, start: Start, ledger: Path) -> None:
    run = shop.trigger("bill", "wait")
    first = start()
    wait_until(lambda: began(ledger), within=60, what="the body began")
    assert start().wait() == 0, "a process is in the middle of it"
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert start().wait() == 0
    assert began(ledger) == [[run, "1"], [run, "2"]]
    assert [str(one.status) for one in shop.attempts(run)] == ["lost", "succeeded"]


def test_of_three_that_two_timers_start_at_once_one_runs_it(shop: Scheduler, start: Start, ledger: Path) -> None:
    """The same CronJob applied in two clusters, and a Pod that its Job replaced too early."""
    run = shop.trigger("bill")
    timers = [start() for _ in range(3)]
    assert [one.wait() for one in timers] == [0, 0, 0]
    assert began(ledger) == [[run, "1"]]


def test_a_failure_for_good_is_told_by_the_exit_code(shop: Scheduler, start: Start, ledger: Path) -> None:
    """Kubernetes then fails the Job, and starts no Pod for what Solocron has given up."""
    run = shop.trigger("bill", "fail for good")
    assert start().wait() == 1
    assert began(ledger) == [[run, "1"], [run, "2"]]
