"""A worker of RQ that imports the program once: `rq worker -w solocron.carriers.rq_worker.PreloadingWorker cron`.

RQ forks for each job, and an ordinary worker imports the program in each fork: a second or more before every body, and
before the next attempt of a run whose worker died. Here the worker itself imports it, and the forks have it. It does so
before it takes its first message: carriers leave in Redis where the schedulers of a queue are found. A worker that is
started in the place of a dead one is idle, so it often gets the next attempt; it must not import while that waits. As
with every program that forks, a module must not start threads when it is imported, and a worker runs the code that it
has imported until it is started again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from solocron.carriers.parts import missing
from solocron.carriers.rq import FUNCTION, announced
from solocron.jobs.address import find, read_address

try:
    from rq import Worker
except ImportError:
    raise missing("PreloadingWorker", "rq") from None

__all__ = ["PreloadingWorker"]


class PreloadingWorker(Worker):
    """Imports the schedulers of its queues, and that of a message before the fork that carries it out."""

    def bootstrap(self, *args: Any, **more: Any) -> None:
        """Import what carriers have announced; then RQ shows the worker, and it takes messages."""
        for queue in self.queue_names():
            with suppress(Exception):  # a Redis that is away is RQ's to report
                for where in announced(self.connection, queue):
                    _preload(where)
        super().bootstrap(*args, **more)

    def fork_work_horse(self, job: Any, queue: Any) -> None:
        """Fork, with the program in memory."""
        if job.func_name == FUNCTION:
            with suppress(Exception):
                _preload(job.args[0])
        super().fork_work_horse(job, queue)


def _preload(where: str) -> None:
    """Import a scheduler. One that cannot be imported fails in the fork, which reports it to RQ."""
    with suppress(Exception, SystemExit):
        find(read_address(where, "RQCarrier(scheduler=...)"))
