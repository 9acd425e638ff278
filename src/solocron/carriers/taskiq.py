"""Runs in taskiq workers: `scheduler.carrier("taskiq", TaskiqCarrier(broker))`.

The carrier puts one task on the broker, `solocron_run`. A worker that imports the module needs nothing else: coroutines
run on its event loop, functions on a thread. A node publishes from an event loop that the carrier keeps for itself.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from solocron.carriers.parts import SharedTask, keyword_arguments
from solocron.dispatch.carrier import Message, NotAccepted, check_options
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["TaskiqCarrier"]

TASK = "solocron_run"
OPTIONS = frozenset({"labels"})
WITHIN = 10.0
"""Seconds for one call of the broker; what takes longer is in doubt."""


class TaskiqCarrier:
    """Sends through a broker of taskiq."""

    follows = True

    def __init__(self, broker: Any) -> None:
        if not hasattr(broker, "register_task"):
            raise InvalidError(f"{broker!r:.80} is not a broker of taskiq; nothing was made. Pass the broker object.")
        self._broker = broker
        self._mutex = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def attach(self, namespace: str, scheduler: Scheduler) -> None:
        """Put the task on the broker. Several schedulers may share it, each with a namespace of its own."""
        shared = SharedTask.of(self._broker, TASK, namespace, scheduler)
        if self._broker.find_task(TASK) is not None:
            return

        async def run(message: Any) -> None:
            await shared.carry_out_async(message)

        self._broker.register_task(run, task_name=TASK)

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse `hand_over` options that this carrier does not know."""
        check_options(options, OPTIONS, "TaskiqCarrier")
        if not isinstance(options.get("labels", {}), Mapping):
            raise InvalidError("hand_over={'labels': ...} is not a mapping. Nothing was started.")

    def publish(self, message: Message) -> None:
        """Send the task; return when the broker has it."""
        self._send(message, TASK, message.to_json())

    def forward(self, message: Message) -> None:
        """Send the task that a message names, with its payload as keyword arguments."""
        self._send(message, str(message.target), **keyword_arguments(message))

    def look(self, id: str) -> str:
        """Say where to look: no broker of taskiq tells what became of a message."""
        return f"taskiq does not tell why; a worker without the task {TASK} drops it and says so in its own log"

    def _send(self, message: Message, task: str, *args: Any, **kwargs: Any) -> None:
        from taskiq.exceptions import SendTaskError
        from taskiq.kicker import AsyncKicker

        labels = {**message.options.get("labels", {}), **message.headers}
        kicker: Any = AsyncKicker(task_name=task, broker=self._broker, labels=labels)
        with self._mutex:
            self._start()
            try:
                self._await(kicker.with_task_id(message.id).kiq(*args, **kwargs))
            except SendTaskError as error:  # says only that it was not sent; the error of the broker says why
                raise error.__cause__ or error from None

    def _start(self) -> None:
        """Start the loop and the broker, anew after a fork; a broker that does not start has taken nothing."""
        if self._process != os.getpid():
            self._loop = self._thread = None
            self._process = os.getpid()
        if self._loop is not None:
            return
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="solocron-taskiq", daemon=True)
        self._thread.start()
        try:
            self._await(self._broker.startup())
        except BaseException as error:
            self._stop()
            raise NotAccepted(f"the broker did not start: {error}") from error

    def _await(self, call: Coroutine[Any, Any, Any]) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(call, self._loop).result(WITHIN)

    def _stop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def close(self) -> None:
        """Shut the broker down, and end the loop; the next message starts both again."""
        with self._mutex:
            if self._loop is None or self._process != os.getpid():
                return
            try:
                self._await(self._broker.shutdown())
            finally:
                self._stop()
