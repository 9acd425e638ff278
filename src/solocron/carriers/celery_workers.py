"""Ask the workers of Celery what they know: a task that none of them has is dropped by the one that gets it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Workers"]

ANSWER_WITHIN = 1.0
"""Seconds for which answers are collected; Celery's own bound."""
KEPT = 600.0
"""Seconds for which answers serve before the workers are asked again about a task that none of them has: the message
that asks leaves a second later."""


class Workers:
    """Asks the workers by remote control, on a connection of its own. Silence tells nothing: they may be busy."""

    def __init__(self, app: Any, connect: Callable[[], Any]) -> None:
        self._app = app
        self._connect = connect
        self._mutex = threading.Lock()
        self._tasks: dict[str, set[str]] = {}
        self._asked: float | None = None
        self._found: set[str] = set()

    def miss(self, task: str) -> str | None:
        """Return what is wrong if workers answer and none has a task. One that was found is not looked for again."""
        if task in self._found:
            return None
        with self._mutex:
            if self._asked is None or time.monotonic() - self._asked > KEPT:
                self._ask()
            if any(task in names for names in self._tasks.values()):
                self._found.add(task)
                return None
            return self._sentence(task) if self._tasks else None

    def explain(self, task: str) -> str | None:
        """Ask now, and say in a sentence who could take a message of a task; None if they cannot be asked."""
        with self._mutex:
            if not self._ask():
                return None
            if not self._tasks:
                return "no worker of Celery answers"
            having = sum(task in names for names in self._tasks.values())
            return f"{having} workers of Celery have its task" if having else self._sentence(task)

    def _sentence(self, task: str) -> str:
        if len(self._tasks) == 1:
            return f"the one worker of Celery that answers has no task {task}, and drops it"
        return f"none of the {len(self._tasks)} workers of Celery that answer has the task {task}, and each drops it"

    def _ask(self) -> bool:
        """Ask every worker for its tasks; return whether that can be done."""
        self._asked, self._tasks = time.monotonic(), {}
        try:
            with self._connect() as connection:
                if not self._has_remote_control(connection):
                    return False
                mailbox = self._app.control.mailbox(connection)
                mailbox.producer_pool = None  # that of the app would connect in its own way, and stay connected
                for answer in mailbox.multi_call("registered", {}, timeout=ANSWER_WITHIN) or ():
                    self._tasks |= {worker: set(names) for worker, names in answer.items()}
        except Exception:  # noqa: BLE001 - a help: a broker that is away is told of by the message itself
            return False
        return True

    def _has_remote_control(self, connection: Any) -> bool:
        """Return whether workers listen to more than tasks. On SQS they do not, and a question would make queues."""
        return "fanout" in connection.transport.implements.exchange_type and bool(
            self._app.conf.worker_enable_remote_control
        )
