"""A worker of RQ that imports the program once: `rq worker -w solocron.carriers.rq_worker.PreloadingWorker cron`.

RQ forks for each job, and an ordinary worker imports the program in each fork: a second or more before every body, and
before the next attempt of a run whose worker died. Here the worker itself imports it with the first message, and the
forks have it. As with every program that forks, a module must not start threads when it is imported, and a worker runs
the code that it has imported until it is started again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from solocron.carriers.parts import missing
from solocron.carriers.rq import FUNCTION
from solocron.jobs.address import find, read_address

try:
    from rq import Worker
except ImportError:
    raise missing("PreloadingWorker", "rq") from None

__all__ = ["PreloadingWorker"]


class PreloadingWorker(Worker):
    """Imports the scheduler of a message before the fork that carries it out."""

    def fork_work_horse(self, job: Any, queue: Any) -> None:
        """Fork, with the program in memory. One that cannot be imported fails in the fork, which reports it to RQ."""
        if job.func_name == FUNCTION:
            with suppress(Exception, SystemExit):
                find(read_address(job.args[0], "RQCarrier(scheduler=...)"))
        super().fork_work_horse(job, queue)
