"""Celery workers on Redis carry runs out: one body for each attempt, however often its message is sent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from solocron import InvalidError, NotAccepted
from solocron.carriers.celery import CeleryCarrier
from solocron.dispatch.carrier import Message
from solocron.testing.fleet import wait_until
from tests.servers.redis import Redis

HERE = Path(__file__).parent
MESSAGE = Message(id="solocron-x", namespace="default", job="x", run="x@1", attempt=1, key="", slot="", fence=1)


@pytest.fixture
def shop(redis_server: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program, imported here for the node."""
    monkeypatch.setenv("SHOP_BROKER", redis_server.fresh_url())
    monkeypatch.setenv("SHOP_STORE", f"sqlite:///{tmp_path}/shop.db")
    monkeypatch.setenv("SHOP_LEDGER", str(tmp_path / "ledger"))
    spec = util.spec_from_file_location("shop", HERE / "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "shop", module)  # where `setup` is looked for
    spec.loader.exec_module(module)
    yield module
    module.scheduler.stop("1s")
    module.app.close()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-Q", "cron", "-c", "1", "-n", f"{name}@h"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "WARNING"]
        log = (tmp_path / f"{name}.log").open("wb")
        with log:
            started.append(subprocess.Popen(command, cwd=HERE, stdout=log, stderr=log, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(shop: ModuleType) -> list[list[str]]:
    return [line.split() for line in shop.LEDGER.read_text().splitlines()] if shop.LEDGER.exists() else []


def _status(shop: ModuleType, run: str) -> str:
    return str(shop.scheduler.get_run(run).status)


def test_a_worker_carries_a_run_out_and_a_dead_one_is_taken_over(
    shop: ModuleType, worker: Callable[[str], Any]
) -> None:
    """Every message is sent twice, and the worker that has the second run is killed in its body."""
    scheduler, publish = shop.scheduler, CeleryCarrier.publish
    carrier = scheduler._core.carriers["celery"].carrier

    def twice(message: Message) -> None:
        publish(carrier, message)
        publish(carrier, message)

    carrier.publish = twice
    worker("one")
    scheduler.start()
    wait_until(lambda: scheduler.jobs(), within=200, what="the job is registered")
    first = scheduler.trigger("books")
    wait_until(lambda: _status(shop, first) == "succeeded", within=200, what="a worker ran it")
    assert scheduler.get_run(first).result == "closed"

    second = scheduler.trigger("books", "wait")
    wait_until(lambda: any(line[0] == second for line in _lines(shop)), within=200, what="the body began")
    ((_, _, _, child, parent, _),) = [line for line in _lines(shop) if line[0] == second]
    worker("two")
    os.kill(int(parent), signal.SIGKILL)
    os.kill(int(child), signal.SIGKILL)
    died = time.monotonic()
    wait_until(lambda: _status(shop, second) == "succeeded", within=200, what="another worker took over")
    assert time.monotonic() - died < 60
    third = scheduler.trigger("books", "wait")
    wait_until(lambda: any(line[0] == third for line in _lines(shop)), within=200, what="the third body began")
    os.kill(
        int(_lines(shop)[-1][3]), signal.SIGKILL
    )  # a child alone, as a limit of memory does: it has its own session
    wait_until(lambda: _status(shop, third) == "succeeded", within=200, what="another child took over")
    assert [line[:2] for line in _lines(shop)] == [
        [first, "1"],
        *([second, "1"], [second, "2"]),
        *([third, "1"], [third, "2"]),
    ]
    fences = [int(line[2]) for line in _lines(shop)]
    assert fences == sorted(set(fences))
    assert [line[5] for line in _lines(shop)] == ["True"] * 5, "each child was prepared once, before its first body"
    statuses = [str(view.status) for view in scheduler.runs("books")]
    assert statuses == ["succeeded", "lost", "succeeded", "lost", "succeeded"]


def test_a_broker_that_is_away_refuses_for_certain() -> None:
    from celery import Celery

    carrier = CeleryCarrier(Celery("shop", broker="redis://127.0.0.1:1/0"))
    with pytest.raises(NotAccepted, match="no connection to the broker"):
        carrier.publish(MESSAGE)


def test_what_is_not_known_is_refused() -> None:
    from celery import Celery

    with pytest.raises(InvalidError, match="not an option of CeleryCarrier"):
        CeleryCarrier(Celery("shop")).check({"colour": "red"})
    with pytest.raises(InvalidError, match="not a Celery app"):
        CeleryCarrier("shop")
