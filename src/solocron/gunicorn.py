"""Hooks for gunicorn: a node in each worker, started before its first request and drained at its end.

In `gunicorn.conf.py`:

    from solocron.gunicorn import post_worker_init, worker_exit

They concern the schedulers that ask for it: those of `solocron.flask` with `SOLOCRON_START`, and those that were passed
to `start_in_workers`. Nothing of the engine is imported with this module, because gunicorn reads its configuration
before a gevent worker replaces the threads.
"""

from __future__ import annotations

import logging
import os
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["post_worker_init", "start_in_workers", "worker_exit"]

log = logging.getLogger("solocron")

_GRACE = 25.0
_SPARE = 5.0
"""Seconds between our drain and the moment at which gunicorn kills the worker."""

_asked: weakref.WeakSet[Scheduler] = weakref.WeakSet()


def start_in_workers(scheduler: Scheduler) -> None:
    """Let the hooks start this scheduler in each worker; call it where the application is made."""
    _asked.add(scheduler)


def post_worker_init(worker: Any) -> None:
    """Start every scheduler that asks for it. Called by gunicorn in the worker, once the application is loaded."""
    if not _asked:
        log.warning(
            "gunicorn's worker %s started no node: no scheduler asked for it. Set SOLOCRON_START in Flask's config, or "
            "call solocron.gunicorn.start_in_workers(scheduler) where the application is made",
            os.getpid(),
            extra={"event": "no scheduler"},
        )
    for scheduler in list(_asked):
        scheduler.start()


def worker_exit(server: Any, worker: Any) -> None:
    """Drain every scheduler, within the time that gunicorn leaves. Called by gunicorn in the worker, at its end."""
    left = float(worker.cfg.graceful_timeout) - _SPARE
    for scheduler in list(_asked):
        scheduler.stop(max(0.0, min(_GRACE, left)))
