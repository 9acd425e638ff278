"""Ends the waits of runs that a broker has not accepted as soon as it can be reached again.

A message that was not accepted is published again after 1 second, 2, 4 and so on up to a minute, by whichever node
claims its run. So a broker that is back would have nothing to do for up to a minute. The carrier that had no connection
therefore looks for one from a thread of its own, and then makes the runs that it could not send due at once. It looks
only while such runs wait, and it ends no other wait: a broker that can be reached and refuses is asked as before.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from solocron.dispatch.carrier import Message
from solocron.model.transitions.offering import publish_now

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["BrokerReturn"]

log = logging.getLogger("solocron")

FIRST_LOOK, LONGEST_LOOK = 1.0, 4.0
"""Seconds between two looks, doubling."""
CLOSE_WITHIN = 5.0
"""Seconds for a look under way when the carrier is closed."""
ROUNDS = 2
"""How often the runs of a job are made due: the write that puts one back may come after the first time."""


class BrokerReturn:
    """Watches for a broker that could not be reached. `connect` raises as long as it is away."""

    def __init__(self, connect: Callable[[], object]) -> None:
        self._connect = connect
        self._schedulers: dict[str, Scheduler] = {}
        self._mutex = threading.Lock()
        self._waiting: dict[tuple[str, str], int] = {}
        """Rounds left for each namespace and job of which a message was not accepted."""
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def serve(self, namespace: str, scheduler: Scheduler) -> None:
        """Take a scheduler whose messages may wait."""
        self._schedulers[namespace] = scheduler

    def not_connected(self, message: Message) -> None:
        """Take note of a message that was not sent for want of a connection, and look for the broker's return."""
        if message.namespace not in self._schedulers:
            return
        with self._mutex:
            if self._process != os.getpid():
                self._thread, self._process, self._ends = None, os.getpid(), threading.Event()
            self._waiting[message.namespace, message.job] = ROUNDS
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._look, args=(self._ends,), name="solocron-broker", daemon=True
                )
                self._thread.start()

    def _look(self, ends: threading.Event) -> None:
        pause = FIRST_LOOK
        while not ends.wait(pause):
            try:
                self._connect()
            except Exception:  # noqa: BLE001 - whatever it is, the broker cannot be used yet
                pause = min(2 * pause, LONGEST_LOOK)
                continue
            pause = FIRST_LOOK
            with self._mutex:
                back = list(self._waiting)
                self._waiting = {one: rounds - 1 for one, rounds in self._waiting.items() if rounds > 1}
            for namespace, job in back:
                if not ends.is_set():
                    self._make_due(namespace, job)
            with self._mutex:
                if not self._waiting and not ends.is_set():
                    self._thread = None
                    return

    def _make_due(self, namespace: str, job: str) -> None:
        try:
            documents = self._schedulers[namespace].open().documents
            documents.change(job, lambda doc, now: publish_now(doc, now=now, resolve=documents.resolve))
        except Exception as error:  # noqa: BLE001 - a help: a run that is not made due waits as long as it would have
            log.warning("the runs of %s wait on: %s", job, error, extra={"event": "broker back", "job": job})

    def close(self) -> None:
        """Look no more, until another message is not sent."""
        with self._mutex:
            thread, self._thread = self._thread, None
            self._waiting.clear()
            ends, self._ends = self._ends, threading.Event()
        ends.set()
        if thread is not None and self._process == os.getpid() and thread is not threading.current_thread():
            thread.join(CLOSE_WITHIN)
