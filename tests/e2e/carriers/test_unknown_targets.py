"""A task that no worker has: the operator reads of it in the run, or in the log of the node that forwards.

The workers are real ones of each library, with nothing of ours.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solocron import Message
from solocron.carriers.celery import CeleryCarrier
from solocron.carriers.dramatiq import DramatiqCarrier
from solocron.carriers.rq import RQCarrier
from solocron.carriers.taskiq import TaskiqCarrier
from solocron.testing.fleet import wait_until
from tests.servers.redis import Redis

MESSAGE = Message(id="solocron-x", namespace="default", job="x", run="x@1", attempt=1, key="", slot="", fence=1)
SUFFIX = "[target=reports.nightly]"
FORWARDED = replace(MESSAGE, id="solocron-y", target="reports.nightly")
NEXT = replace(FORWARDED, id="solocron-z")


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of the node, in one line each."""
    return [one.getMessage() for one in caplog.records if getattr(one, "event", "") == "target given up"]


THEIRS = """
from celery import Celery

app = Celery("theirs", broker="URL")

@app.task(name="reports.known")
def known(): ...
"""


@pytest.fixture
def celery_worker(redis_server: Redis, tmp_path: Path) -> Iterator[Callable[[], object]]:
    """Starts a worker of a program that has one task, in a process of its own: Celery takes over what is logged."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
        command = [sys.executable, "-m", "celery", "-A", "theirs", "worker", "-P", "solo", *quiet]
        with (tmp_path / "worker.log").open("wb") as log:
            started.append(subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log))

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_celery(
    redis_server: Redis, tmp_path: Path, celery_worker: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    from celery import Celery

    url = redis_server.fresh_url()
    (tmp_path / "theirs.py").write_text(THEIRS.replace("URL", url))
    app = Celery("shop", broker=url, set_as_current=False)
    carrier = CeleryCarrier(app)
    assert carrier.look(MESSAGE.id) == "no worker of Celery answers"
    carrier.forward(FORWARDED)
    assert told(caplog) == [], "without a worker a message waits: nothing is lost"
    celery_worker()
    wait_until(lambda: carrier.look(MESSAGE.id) != "no worker of Celery answers", within=120, what="it answers")
    sentence = "the one worker of Celery that answers has no task {}, and drops it"
    assert carrier.look(MESSAGE.id) == sentence.format("solocron.run")
    for target in ("reports.nightly", "reports.nightly", "reports.known"):
        carrier.forward(replace(NEXT, target=target))
    carrier.close()
    assert told(caplog) == [
        f"what is forwarded to 'reports.nightly' is given up by Celery: {sentence.format('reports.nightly')}; "
        f"start a worker that has it, or correct the name {SUFFIX}"
    ]


def test_rq(redis_server: Redis, caplog: pytest.LogCaptureFixture) -> None:
    import redis
    from rq import Queue, SimpleWorker

    with redis.Redis.from_url(redis_server.fresh_url()) as connection:
        queue = Queue("cron", connection=connection)
        carrier = RQCarrier(queue, scheduler="nowhere.cron:scheduler")
        carrier.publish(MESSAGE)
        carrier.forward(FORWARDED)
        worker = SimpleWorker([queue], connection=connection)
        for job in queue.jobs:
            worker.perform_job(job, queue)
        said = carrier.look(MESSAGE.id)
        assert said == "RQ could not deliver it: ModuleNotFoundError: No module named 'nowhere'"
        carrier.forward(NEXT)
    assert told(caplog) == [
        "what is forwarded to 'reports.nightly' is given up by RQ: ValueError: Invalid attribute name: "
        f"reports.nightly; start a worker that has it, or correct the name {SUFFIX}"
    ]


def test_dramatiq(redis_server: Redis, caplog: pytest.LogCaptureFixture) -> None:
    from dramatiq import Worker
    from dramatiq.brokers.redis import RedisBroker

    url = redis_server.fresh_url()
    ours, theirs = RedisBroker(url=url), RedisBroker(url=url)
    theirs.declare_queue("cron")
    carrier = DramatiqCarrier(ours, queue="cron")
    carrier.publish(MESSAGE)
    carrier.forward(FORWARDED)
    assert carrier.look(MESSAGE.id) is None
    worker = Worker(theirs, worker_timeout=50, worker_threads=1)
    worker.start()
    try:
        sentence = "it is a dead letter: its worker has no actor {}, or that failed, and its log says which"
        wait_until(
            lambda: [carrier.look(one.id) for one in (MESSAGE, FORWARDED)]
            == [sentence.format("solocron_run"), sentence.format("reports.nightly")],
            within=60, what="both are given up",
        )  # fmt: skip
    finally:
        worker.stop()
    carrier.forward(NEXT)
    for broker in (ours, theirs):
        broker.client.connection_pool.disconnect()
    assert told(caplog) == [
        "what is forwarded to 'reports.nightly' is given up by Dramatiq: "
        f"{sentence.format('reports.nightly')}; start a worker that has it, or correct the name {SUFFIX}"
    ]


def test_taskiq(redis_server: Redis, caplog: pytest.LogCaptureFixture) -> None:
    """Its brokers tell nothing, so the run says where to look: the worker's own log has a line."""
    from taskiq.api import run_receiver_task
    from taskiq_redis import ListQueueBroker

    url = redis_server.fresh_url()
    carrier = TaskiqCarrier(ListQueueBroker(url, queue_name="cron"))
    carrier.publish(MESSAGE)
    carrier.forward(FORWARDED)
    carrier.close()
    assert carrier.look(MESSAGE.id) == (
        "taskiq does not tell why; a worker without the task solocron_run drops it and says so in its own log"
    )

    def lines() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name.startswith("taskiq")]

    async def work() -> None:
        broker: Any = ListQueueBroker(url, queue_name="cron")
        receiving = asyncio.create_task(run_receiver_task(broker, run_startup=True))
        async with asyncio.timeout(60):
            while len([line for line in lines() if "is not found" in line]) < 2:
                await asyncio.sleep(0.01)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        await broker.shutdown()

    with caplog.at_level(logging.WARNING):
        asyncio.run(work())
    for task in ("solocron_run", "reports.nightly"):
        assert f'task "{task}" is not found. Maybe you forgot to import it?' in lines()
