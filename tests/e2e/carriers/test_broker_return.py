"""A broker that was away has its messages when it is back, although the next try was to come much later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solocron import Run, Scheduler
from solocron.carriers.celery import CeleryCarrier
from solocron.carriers.dramatiq import DramatiqCarrier
from solocron.carriers.rq import RQCarrier
from solocron.engine import publication
from solocron.testing.fleet import wait_until
from tests.servers import RabbitMQ, Redis, Server
from tests.servers.fixtures import StartServer

AN_HOUR = 3_600_000_000


def celery(url: str) -> tuple[Any, Callable[[], object]]:
    from celery import Celery

    return CeleryCarrier(Celery("shop", broker=url, set_as_current=False), queue="cron"), lambda: None


def rq(url: str) -> tuple[Any, Callable[[], object]]:
    import redis
    from rq import Queue

    client = redis.Redis.from_url(url)
    return RQCarrier(Queue("cron", connection=client), scheduler="shop:scheduler"), client.close


def dramatiq(url: str) -> tuple[Any, Callable[[], object]]:
    from dramatiq.brokers.rabbitmq import RabbitmqBroker
    from dramatiq.brokers.redis import RedisBroker

    if url.startswith("amqp"):
        plain = url.removesuffix("//")  # to pika, `//` is a virtual host without a name
        confirming = RabbitmqBroker(url=plain, confirm_delivery=True)
        return DramatiqCarrier(confirming, queue="cron"), confirming.close
    broker = RedisBroker(url=url)
    return DramatiqCarrier(broker, queue="cron"), broker.client.connection_pool.disconnect


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        *((Redis, one) for one in (celery, rq, dramatiq)),
        *(pytest.param(RabbitMQ, one, marks=pytest.mark.long) for one in (celery, dramatiq)),
    ],
)
def test_a_run_is_handed_over_when_the_broker_is_back(
    kind: type[Server], make: Callable[[str], Any], start_server: StartServer, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(publication, "FIRST", AN_HOUR)
    monkeypatch.setattr(publication, "MOST", AN_HOUR)
    server = start_server(kind)
    server.kill9()
    carrier, close = make(server.url)
    scheduler = Scheduler(f"sqlite:///{tmp_path}/jobs.db", enabled=True, lease="3s")
    scheduler.carrier("queue", carrier)

    @scheduler.cron("0 3 1 1 *", run_in="queue")
    def books(run: Run) -> None: ...

    try:
        scheduler.start()
        wait_until(scheduler.jobs, within=120, what="the job is registered")
        run = scheduler.trigger("books")
        away = "not accepted by queue (NotAccepted: no connection to the broker: "
        wait_until(lambda: away in str(scheduler.get_run(run).reason), within=120, what="the broker is away")
        server.restart()
        wait_until(lambda: scheduler.get_run(run).status == "offered", within=120, what="the broker has it")
        wait_until(lambda: "solocron-broker" not in _threads(), within=60, what="nothing is looked for any more")
    finally:
        scheduler.stop("1s")
        close()


def test_a_scheduler_that_stops_looks_for_no_broker(tmp_path: Path) -> None:
    carrier, close = rq("redis://127.0.0.1:1/0")
    scheduler = Scheduler(f"sqlite:///{tmp_path}/jobs.db", enabled=True, lease="3s")
    scheduler.carrier("queue", carrier)

    @scheduler.every("1s", run_in="queue")
    def books(run: Run) -> None: ...

    scheduler.start()
    wait_until(lambda: "solocron-broker" in _threads(), within=120, what="the broker is looked for")
    scheduler.stop("1s")
    close()
    assert "solocron-broker" not in _threads()


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}
