"""The program of nodes and workers: one job every second that writes down each start of its body.

`python -m proof.handover.program` is a node; the workers of the queue that `HANDOVER_QUEUE` names import it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from solocron import Message, Run, Scheduler, allow
from solocron.events import Event

LEASE = "3s"
PICKUP = "6s"
BODY = 0.3
"""Seconds that a body takes: long enough to be killed in."""

LEDGER = Path(os.environ["HANDOVER_LEDGER"])
KIND = os.environ["HANDOVER_QUEUE"]
BROKER = os.environ["HANDOVER_BROKER"]


def _carrier() -> tuple[Any, Any]:
    """Return the carrier of the queue, and what its workers look for in this module."""
    if KIND.startswith("celery"):
        from celery import Celery  # type: ignore[import-untyped]

        from solocron.carriers.celery import CeleryCarrier

        app = Celery("handover", broker=BROKER)
        app.conf.broker_connection_retry_on_startup = True
        app.conf.broker_connection_max_retries = None
        return CeleryCarrier(app, queue="cron"), app
    if KIND == "rq":
        import redis
        from rq import Queue

        from solocron.carriers.rq import RQCarrier

        queue = Queue("cron", connection=redis.Redis.from_url(BROKER))
        return RQCarrier(queue, scheduler="proof.handover.program:scheduler"), queue
    if KIND == "dramatiq":
        import dramatiq
        from dramatiq.brokers.redis import RedisBroker

        from solocron.carriers.dramatiq import DramatiqCarrier

        made = RedisBroker(url=BROKER)  # type: ignore[no-untyped-call]
        dramatiq.set_broker(made)
        return DramatiqCarrier(made, queue="cron"), made
    from taskiq_redis import ListQueueBroker

    from solocron.carriers.taskiq import TaskiqCarrier

    listening = ListQueueBroker(BROKER, queue_name="cron", socket_timeout=None)
    return TaskiqCarrier(listening), listening


class Twice:
    """Sends every message twice."""

    follows = True

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.attach = getattr(inner, "attach", lambda *_: None)
        self.look = getattr(inner, "look", lambda _: None)
        self.close = getattr(inner, "close", lambda: None)

    def publish(self, message: Message) -> None:
        self._inner.publish(message)
        self._inner.publish(message)


carrier, broker = _carrier()
app = broker
scheduler = Scheduler(os.environ["HANDOVER_STORE"], lease=LEASE, keep="1d")
scheduler.carrier("queue", Twice(carrier), pickup=PICKUP)


@scheduler.every("1s", run_in="queue", retries=3, overlap=allow(4), catch_up="all", timeout="30s")
def secondly(run: Run) -> None:
    """Write down that the body began, and that it came to its end."""
    _write("began", run)
    time.sleep(BODY)  # without `run.check()`: one that was frozen past its lease comes to its end, and is refused
    _write("ended", run)


def _write(what: str, run: Run) -> None:
    _note(f"{what} {run.id} {run.attempt} {run.fence} {os.getpid()} {os.getppid()}")


def _note(line: str) -> None:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{line} {time.time():.3f}\n")


@scheduler.on("taken over")
def taken_over(event: Event) -> None:
    """Write down that a lease was found to be over: the next attempt follows."""
    for one in event.runs:
        _note(f"taken {one['run']} {one['attempt'] + 1}")


@scheduler.on("handed over")
def handed_over(event: Event) -> None:
    """Write down that a message is in the queue."""
    _note(f"sent {event.run} {event.attempt}")


@scheduler.on("picked up")
def picked_up(event: Event) -> None:
    """Write down that a worker has a message."""
    _note(f"picked {event.run} {event.attempt}")


if __name__ == "__main__":
    scheduler.run_forever()
