"""Workers of RQ, Dramatiq and taskiq on Redis carry runs out: one body for each attempt, and a dead one is replaced."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from solocron import InvalidError, Message, NotAccepted
from solocron.carriers.celery import CeleryCarrier
from solocron.carriers.dramatiq import DramatiqCarrier
from solocron.carriers.rq import RQCarrier, announced, carry_out
from solocron.carriers.taskiq import TaskiqCarrier
from solocron.testing.fleet import wait_until
from tests.servers import processes
from tests.servers.redis import Redis

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
PRELOADING = "solocron.carriers.rq_worker.PreloadingWorker"
AWAY = "redis://127.0.0.1:1/0"
MESSAGE = Message(id="solocron-x", namespace="default", job="x", run="x@1", attempt=1, key="", slot="", fence=1)

WORKERS = {
    "rq": lambda url: [BIN / "rq", "worker", "--url", url, "--path", ".", "-w", PRELOADING, "cron"],
    "dramatiq": lambda url: [BIN / "dramatiq", "dramatiq_shop", "--processes", "1", "--threads", "2"],
    "taskiq": lambda url: [BIN / "taskiq", "worker", "taskiq_shop:broker", "--workers", "1"],
}


class Shop:
    """The program of one queue, in this process for the node, and its workers."""

    def __init__(self, kind: str, url: str, folder: Path) -> None:
        self.kind = kind
        self._url = url
        self._folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self.module: Any = import_module(f"{kind}_shop")
        self.scheduler = self.module.scheduler
        self.carrier: Any = self.scheduler._core.carriers["queue"].carrier

    def start_worker(self) -> None:
        command = [str(word) for word in WORKERS[self.kind](self._url)]
        with (self._folder / f"worker{len(self.workers)}.log").open("wb") as log:
            self.workers.append(subprocess.Popen(command, cwd=HERE, stdout=log, stderr=log, start_new_session=True))

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill it with the processes that it has made, whatever group they are in."""
        processes.send(signal.SIGKILL, processes.tree(worker.pid))
        worker.wait()

    def began(self) -> list[list[str]]:
        ledger = self.module.keep_books.__globals__["LEDGER"]
        return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


@pytest.fixture
def shop(
    request: pytest.FixtureRequest, redis_server: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    url = redis_server.fresh_url()
    monkeypatch.setenv("SHOP_BROKER", url)
    monkeypatch.setenv("SHOP_STORE", f"sqlite:///{tmp_path}/shop.db")
    monkeypatch.setenv("SHOP_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.syspath_prepend(str(HERE))
    invalidate_caches()
    made = Shop(request.param, url, tmp_path)
    yield made
    for worker in made.workers:
        if worker.poll() is None:
            made.kill_worker(worker)
    made.scheduler.stop("1s")
    for name in ("books", f"{request.param}_shop"):
        sys.modules.pop(name, None)
    if made.kind == "rq":
        made.module.queue.connection.close()
    if made.kind == "dramatiq":
        made.module.broker.client.connection_pool.disconnect()


@pytest.mark.parametrize("shop", WORKERS, indirect=True)
def test_a_worker_carries_a_run_out_and_a_dead_one_is_taken_over(shop: Shop) -> None:
    """Every message is sent twice, and the worker that has the second run is killed in its body."""
    scheduler, publish = shop.scheduler, shop.carrier.publish

    def twice(message: Message) -> None:
        publish(message)
        publish(message)

    shop.carrier.publish = twice
    shop.start_worker()
    scheduler.start()
    wait_until(lambda: scheduler.jobs(), within=120, what="the job is registered")
    first = scheduler.trigger("books")
    wait_until(lambda: scheduler.get_run(first).status == "succeeded", within=200, what="a worker ran it")
    assert scheduler.get_run(first).result == "closed"
    second = scheduler.trigger("books", "wait")
    wait_until(lambda: any(line[0] == second for line in shop.began()), within=120, what="the body began")
    shop.kill_worker(shop.workers[0])
    shop.start_worker()
    wait_until(lambda: scheduler.get_run(second).status == "succeeded", within=200, what="another worker took over")
    assert [line[:2] for line in shop.began()] == [[first, "1"], [second, "1"], [second, "2"]]
    fences = [int(line[2]) for line in shop.began()]
    assert fences == sorted(set(fences))
    assert [line[3] for line in shop.began()] == ["True"] * 3, "each process was prepared once, before its first body"
    if shop.kind == "rq":  # which forks for each run: the worker itself has the program
        assert [line[4] for line in shop.began()] == [str(shop.workers[n].pid) for n in (0, 0, 1)]
    assert [str(view.status) for view in scheduler.runs("books")] == ["succeeded", "lost", "succeeded"]


EARLY = """
import os
from pathlib import Path

Path("imported-by").write_text(str(os.getpid()))
scheduler = None
"""


class TestAWorkerOfRQThatIsStartedLater:
    """In the place of a dead worker it is idle and often gets the next attempt, which must not wait for imports."""

    def test_it_imports_the_program_before_it_takes_a_message(self, redis_server: Redis, tmp_path: Path) -> None:
        (tmp_path / "early_shop.py").write_text(EARLY)
        url = redis_server.fresh_url()
        command = [BIN / "rq", "worker", "--url", url, "--path", ".", "--burst", "-w", PRELOADING, "cron"]
        with _queue(url) as queue:
            carrier = RQCarrier(queue, scheduler="early_shop:scheduler")
            carrier.publish(MESSAGE)
            carrier.publish(replace(MESSAGE, id="solocron-y", options={"queue": "other"}))
            queue.empty()
            worker = subprocess.Popen([str(word) for word in command], cwd=tmp_path, stderr=subprocess.DEVNULL)
            assert worker.wait(120) == 0
            assert (tmp_path / "imported-by").read_text() == str(worker.pid), "and no message was there"
            assert announced(queue.connection, "other") == ["early_shop:scheduler"], "each queue has its own"

    def test_one_that_cannot_be_imported_keeps_no_worker_from_starting(
        self, redis_server: Redis, tmp_path: Path
    ) -> None:
        url = redis_server.fresh_url()
        command = [BIN / "rq", "worker", "--url", url, "--burst", "-w", PRELOADING, "cron"]
        with _queue(url) as queue:
            RQCarrier(queue, scheduler="gone_shop:scheduler").publish(MESSAGE)
            queue.empty()
            worker = subprocess.Popen([str(word) for word in command], cwd=tmp_path, stderr=subprocess.DEVNULL)
            assert worker.wait(120) == 0

    def test_a_redis_that_was_emptied_is_told_again(self, redis_server: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
        with _queue(redis_server.fresh_url()) as queue:
            carrier = RQCarrier(queue, scheduler="shop:scheduler")
            carrier.publish(MESSAGE)
            queue.connection.flushdb()
            carrier.publish(MESSAGE)
            assert announced(queue.connection, "cron") == [], "not with every message"
            monkeypatch.setattr(f"{RQCarrier.__module__}.ANNOUNCE_EVERY", 0.0)
            carrier.publish(MESSAGE)
            assert announced(queue.connection, "cron") == ["shop:scheduler"]


@contextmanager
def _queue(url: str) -> Iterator[Any]:
    """The queue `cron` of RQ, over a connection that ends with the test."""
    import redis
    from rq import Queue

    with redis.Redis.from_url(url) as connection:
        yield Queue("cron", connection=connection)


def make_away(kind: str, url: str = AWAY) -> Any:
    """A carrier whose broker cannot be reached, or refuses it."""
    if kind == "rq":
        import redis
        from rq import Queue

        return RQCarrier(Queue("cron", connection=redis.Redis.from_url(url)), scheduler="shop:scheduler")
    if kind == "celery":
        from celery import Celery

        return CeleryCarrier(Celery("shop", broker=url, set_as_current=False))
    if kind == "taskiq":
        from taskiq_redis import ListQueueBroker

        return TaskiqCarrier(ListQueueBroker(url))
    from dramatiq.brokers.redis import RedisBroker

    return DramatiqCarrier(RedisBroker(url=url))


class TestWhatGoesWrong:
    @pytest.mark.parametrize("kind", ["rq", "dramatiq"])
    def test_a_broker_that_is_away_refuses_for_certain(self, kind: str) -> None:
        with pytest.raises(NotAccepted, match="no connection to the broker"):
            make_away(kind).publish(MESSAGE)

    @pytest.mark.parametrize("kind", ["celery", "rq", "dramatiq"])
    def test_wrong_credentials_are_a_certain_no_in_the_words_of_the_broker(
        self, kind: str, redis_server: Redis
    ) -> None:
        url = redis_server.fresh_url().replace("redis://", "redis://clerk:wrong@")
        with pytest.raises(NotAccepted, match=r"no connection to the broker: .*(password|WRONGPASS)"):
            make_away(kind, url).publish(MESSAGE)

    def test_taskiq_cannot_tell_a_broker_that_is_away_from_a_lost_answer(self) -> None:
        """Its brokers connect with the first message, which is published again under the same id: a copy is dropped."""
        carrier = make_away("taskiq")
        try:
            with pytest.raises(RedisConnectionError, match=r"127\.0\.0\.1:1"):
                carrier.publish(MESSAGE)
        finally:
            carrier.close()

    def test_rq_replaces_a_message_that_it_has_given_up(self, redis_server: Redis) -> None:
        """RQ keeps a failed one under its id, and would refuse the copy that is published again for good."""
        import redis
        from rq import Queue
        from rq.job import JobStatus

        with redis.Redis.from_url(redis_server.fresh_url()) as connection:
            queue = Queue("cron", connection=connection)
            carrier = RQCarrier(queue, scheduler="shop:scheduler")
            carrier.publish(MESSAGE)
            carrier.publish(MESSAGE)
            assert queue.job_ids == [MESSAGE.id]
            (job,) = queue.jobs
            queue.empty()
            assert queue.job_ids == []
            job.set_status(JobStatus.FAILED)
            job.save()
            carrier.publish(MESSAGE)
            assert queue.job_ids == [MESSAGE.id]

    def test_forwarded_messages_reach_their_target_by_name(self, redis_server: Redis) -> None:
        import json

        import redis
        from dramatiq.brokers.redis import RedisBroker
        from rq import Queue
        from taskiq_redis import ListQueueBroker

        url = redis_server.fresh_url()
        message = replace(MESSAGE, target="reports.nightly", payload={"year": 2026})
        with redis.Redis.from_url(url) as connection:
            queue = Queue("rq", connection=connection)
            RQCarrier(queue, scheduler="shop:scheduler").forward(message)
            (job,) = queue.jobs
            assert (job.func_name, job.kwargs) == ("reports.nightly", {"year": 2026})
            broker = RedisBroker(url=url)
            DramatiqCarrier(broker, queue="two").forward(message)
            broker.client.connection_pool.disconnect()
            (text,) = connection.hvals("dramatiq:two.msgs")  # type: ignore[misc]
            found = json.loads(text)
            assert (found["actor_name"], found["kwargs"], found["message_id"]) == (
                "reports.nightly", {"year": 2026}, MESSAGE.id,
            )  # fmt: skip
            taskiq = TaskiqCarrier(ListQueueBroker(url, queue_name="three"))
            taskiq.forward(message)
            taskiq.close()
            (text,) = connection.lrange("three", 0, -1)  # type: ignore[misc]
            found = json.loads(text)
            assert (found["task_name"], found["kwargs"], found["task_id"]) == (
                "reports.nightly", {"year": 2026}, MESSAGE.id,
            )  # fmt: skip
            with pytest.raises(InvalidError, match="not a mapping of names"):
                taskiq.forward(replace(message, payload=[1]))

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: RQCarrier("cron", scheduler="shop:scheduler"), "not a queue of RQ"),
            (lambda: make_away("rq").__class__(make_away("rq")._queue, scheduler="shop"), "where workers find it"),
            (lambda: make_away("rq").check({"colour": 1}), "not an option of RQCarrier; known are at_front"),
            (lambda: DramatiqCarrier("cron"), "not a broker of Dramatiq"),
            (lambda: make_away("dramatiq").check({"colour": 1}), "not an option of DramatiqCarrier"),
            (lambda: TaskiqCarrier("cron"), "not a broker of taskiq"),
            (lambda: TaskiqCarrier(_Broker()).check({"colour": 1}), "not an option of TaskiqCarrier"),
            (lambda: TaskiqCarrier(_Broker()).check({"labels": 1}), "not a mapping"),
            (lambda: carry_out("os:path", {}), "os:path is not a Scheduler"),
        ],
    )
    def test_mistakes_are_told_in_words(self, make: Callable[[], Any], says: str) -> None:
        with pytest.raises(InvalidError, match=says):
            make()

    def test_rabbitmq_must_confirm(self) -> None:
        from dramatiq.brokers.rabbitmq import RabbitmqBroker

        with pytest.raises(InvalidError, match="confirm_delivery=True"):
            DramatiqCarrier(RabbitmqBroker(url="amqp://127.0.0.1:1"))


class _Broker:
    """Has the one method by which a broker of taskiq is known."""

    def register_task(self) -> None: ...
