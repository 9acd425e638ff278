"""Runs in Dramatiq workers: `scheduler.carrier("dramatiq", DramatiqCarrier(broker, queue="cron"))`.

The carrier puts one actor on the broker, `solocron_run`, without retries and without a time limit. A worker that
imports the module needs nothing else. Dramatiq delivers the message of a dead worker again: that copy is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from solocron.carriers.parts import GivenUp, Probe, SharedTask, keyword_arguments
from solocron.dispatch.carrier import Message, NotAccepted, check_options
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["DramatiqCarrier"]

ACTOR = "solocron_run"
OPTIONS = frozenset({"queue", "delay", "broker_priority"})
DEAD_LETTERS = 100
"""How many dead letters of a queue are looked through, the newest first."""


class DramatiqCarrier:
    """Enqueues through a broker of Dramatiq, which stays the application's; RabbitMQ has to confirm messages."""

    follows = True

    def __init__(self, broker: Any, *, queue: str = "default") -> None:
        if not hasattr(broker, "declare_actor"):
            raise InvalidError(f"{broker!r:.80} is not a broker of Dramatiq; nothing was made. Pass the broker object.")
        if getattr(broker, "confirm_delivery", True) is False:
            raise InvalidError(
                "this broker does not confirm messages, so one that RabbitMQ lost would count as sent. Nothing was "
                "made; pass RabbitmqBroker(..., confirm_delivery=True)."
            )
        self._broker = broker
        self._queue = queue
        client = getattr(broker, "client", None)
        if client is not None:
            self._probe = Probe(client.ping)
        else:
            self._probe = Probe(lambda: broker.connection, self._connect_and_close)
        self._given_up = GivenUp("Dramatiq", self._dead)

    def attach(self, namespace: str, scheduler: Scheduler) -> None:
        """Put the actor on the broker. Several schedulers may share it, each with a namespace of its own."""
        from dramatiq import actor

        self._probe.back.serve(namespace, scheduler)
        shared = SharedTask.of(self._broker, ACTOR, namespace, scheduler)
        if ACTOR in self._broker.actors:
            return

        def run(message: Any) -> None:
            shared.carry_out(message)

        limits: dict[str, Any] = {"max_retries": 0, "time_limit": float("inf")}
        options = {name: value for name, value in limits.items() if name in self._broker.actor_options}
        actor(actor_name=ACTOR, queue_name=self._queue, broker=self._broker, **options)(run)

    def close(self) -> None:
        """Look for the broker no more; its connections stay the application's."""
        self._probe.back.close()

    def _connect_and_close(self) -> None:
        """Connect to RabbitMQ, on the connection that the broker keeps for each thread."""
        try:
            self._broker.connection  # noqa: B018 - it connects here
        finally:
            del self._broker.connection

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse `hand_over` options that Dramatiq does not know."""
        check_options(options, OPTIONS, "DramatiqCarrier")

    def publish(self, message: Message) -> None:
        """Enqueue the run; return when the broker has it."""
        self._enqueue(message, ACTOR, (message.to_json(),), {})

    def forward(self, message: Message) -> None:
        """Enqueue for the actor that a message names, with its payload as keyword arguments."""
        self._given_up.sending(str(message.target), message.id)
        self._enqueue(message, str(message.target), (), keyword_arguments(message))

    def look(self, id: str) -> str | None:
        """Say whether a message that no worker has picked up is among the dead letters of Redis."""
        return self._dead(id)

    def _dead(self, id: str) -> str | None:
        """Return what a message is that a worker has given up; Redis keeps no reason with it."""
        client = getattr(self._broker, "client", None)
        if client is None:
            return None  # RabbitMQ shows a dead letter only to the one who takes it out
        dead = f"{self._broker.namespace}:{self._queue}.XQ"
        kept = client.zrevrange(dead, 0, DEAD_LETTERS - 1)
        for text in client.hmget(f"{dead}.msgs", kept) if kept else ():
            found = json.loads(text or "{}")
            if found.get("message_id") == id:
                actor = found["actor_name"]
                return f"it is a dead letter: its worker has no actor {actor}, or that failed, and its log says which"
        return None

    def _enqueue(self, message: Message, actor: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from dramatiq import Message as DramatiqMessage
        from dramatiq.errors import ConnectionFailed

        options = dict(message.options)
        queue, delay = options.pop("queue", self._queue), options.pop("delay", None)
        made: Any = DramatiqMessage(
            queue_name=queue, actor_name=actor, args=args, kwargs=kwargs, options={**options, **message.headers},
            message_id=message.id,
        )  # fmt: skip
        with self._probe.sending(message):
            try:
                self._broker.declare_queue(queue)
                self._broker.enqueue(made, delay=delay)
            except ConnectionFailed as error:
                raise NotAccepted(f"no connection to the broker: {error}") from error
