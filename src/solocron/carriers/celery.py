"""Runs in Celery workers: `scheduler.carrier("celery", CeleryCarrier(app, queue="cron"))`.

The carrier puts one task on the app, `solocron.run`. A worker that imports the module needs nothing else. The task
acknowledges at delivery: the store notices the death of a worker within a lease, while a late acknowledgement would
only add deliveries to drop, and RabbitMQ closes the channel of a task that takes longer than its consumer timeout.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from solocron.carriers.broker_return import BrokerReturn
from solocron.carriers.celery_workers import Workers
from solocron.carriers.parts import SharedTask, UnknownTargets, keyword_arguments
from solocron.dispatch.carrier import Message, NotAccepted, check_options
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["CeleryCarrier"]

TASK = "solocron.run"
CONNECT_WITHIN = 2.0
"""Seconds for a connection to the broker, within a beat of the shortest sensible lease."""
OPTIONS = frozenset({"queue", "priority", "routing_key", "exchange", "expires"})


class _UnreadResult:
    """Stands for the result of a task that nothing here waits for.

    Celery's own would open the result backend, anew in each thread that publishes: a scan of every installed package.
    """

    ignored = True

    def __init__(self, id: str) -> None:
        self.id = id


class CeleryCarrier:
    """Publishes through an app's broker, on a connection of its own that confirms each message."""

    follows = True

    def __init__(self, app: Any, *, queue: str | None = None) -> None:
        if not hasattr(app, "connection_for_write"):
            raise InvalidError(f"{app!r:.80} is not a Celery app; nothing was made. Pass the `Celery(...)` object.")
        self.app = app
        self._queue = queue
        self._mutex = threading.Lock()
        self._connection: Any = None
        self._process = 0
        self._workers = Workers(app, self._connect)
        self._unknown = UnknownTargets("Celery")
        self._back = BrokerReturn(lambda: self._connect().release())

    def attach(self, namespace: str, scheduler: Scheduler) -> None:
        """Put the task on the app. Several schedulers may share it, each with a namespace of its own."""
        self.serve(namespace, scheduler)
        shared = SharedTask.of(self.app, TASK, namespace, scheduler)
        tasks = vars(self.app)
        if "solocron_task" in tasks:
            return

        def run(message: Any) -> None:
            shared.carry_out(message)

        tasks["solocron_task"] = self.app.task(
            run, name=TASK, ignore_result=True, acks_late=False, max_retries=0, serializer="json", time_limit=None,
            soft_time_limit=None, typing=False, shared=False,  # else it were the task of every app of this process
        )  # fmt: skip

    def serve(self, namespace: str, scheduler: Scheduler) -> None:
        """Take a scheduler whose runs wait while the broker is away, and are due when it is back."""
        self._back.serve(namespace, scheduler)

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse `hand_over` options that Celery does not know."""
        check_options(options, OPTIONS, "CeleryCarrier")

    def publish(self, message: Message) -> None:
        """Send the task, and return once the broker has confirmed it."""
        self.send(TASK, message, args=[message.to_json()], ignore_result=True, serializer="json")

    def forward(self, message: Message) -> None:
        """Send the task that a message names, with its payload as keyword arguments."""
        self.send(str(message.target), message, kwargs=keyword_arguments(message))

    def send(self, task: str, message: Message, **arguments: Any) -> None:
        """Send a task under the id of a message, which is equal for every copy of it, and wait for the broker's yes."""
        options = {"queue": self._queue, **message.options} if self._queue else dict(message.options)
        if task != TASK and (said := self._workers.miss(task)) is not None:
            self._unknown.tell(task, said)
        with self._mutex:
            try:
                connection = self._connected()
            except NotAccepted:
                self._back.not_connected(message)
                raise
            try:
                self.app.send_task(
                    task, task_id=message.id, retry=False, producer=self.app.amqp.Producer(connection),
                    result_cls=_UnreadResult, add_to_parent=False,
                    **{**arguments, **options, "headers": {**(options.get("headers") or {}), **message.headers}},
                )  # fmt: skip
            except BaseException:
                self._drop()
                raise

    def _connected(self) -> Any:
        """Return the connection, made anew after an error and after a fork."""
        if self._process != os.getpid():
            self._connection, self._process = None, os.getpid()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Any:
        """Return a connection of its own, in bounded time; raises `NotAccepted`."""
        given = self.app.conf.broker_transport_options or {}
        options = {"confirm_publish": True, "socket_connect_timeout": CONNECT_WITHIN, "socket_timeout": 10.0}
        connection = self.app.connection_for_write(
            connect_timeout=CONNECT_WITHIN, transport_options={**options, **given}
        )
        try:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_WITHIN)
            connection.default_channel.connection  # noqa: B018 - it connects here, and nothing was sent
        except Exception as error:
            raise NotAccepted(f"no connection to the broker: {error}") from error
        return connection

    def look(self, id: str) -> str | None:
        """Say whether a worker would take a message that none has picked up."""
        return self._workers.explain(TASK)

    def withdraw(self, id: str) -> None:
        """Tell the workers that listen to leave a task out."""
        self.app.control.revoke(id)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release()

    def close(self) -> None:
        """Close the connection; the next message opens another."""
        self._back.close()
        with self._mutex:
            if self._process == os.getpid():
                self._drop()


def __getattr__(name: str) -> Any:
    """Return `BeatScheduler`, for `-S solocron.carriers.celery:BeatScheduler`; only a beat imports what it needs."""
    if name == "BeatScheduler":
        from solocron.carriers.beat import BeatScheduler

        return BeatScheduler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
