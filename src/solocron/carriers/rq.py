"""Runs in RQ workers: `scheduler.carrier("rq", RQCarrier(Queue("cron", connection=...), scheduler="shop:scheduler"))`.

A worker needs nothing but the module on its path. Its work horse is a fork per job, so the session of the run begins
and ends there. RQ refuses an id that it knows: a message that is published again while the first copy waits is accepted
as that one, and a copy that RQ has given up is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from solocron.carriers.parts import GivenUp, Probe, keyword_arguments, read_message
from solocron.dispatch.carrier import Message, check_options
from solocron.errors import InvalidError
from solocron.jobs.address import find, read_address
from solocron.scheduler import Scheduler

__all__ = ["RQCarrier", "announced", "carry_out"]

FUNCTION = "solocron.carriers.rq.carry_out"
OPTIONS = frozenset({"queue", "at_front", "ttl"})
FAILURES_KEPT = 86_400
"""Seconds for which RQ keeps a message that it could not deliver; the record of the run is in the store."""
WAITS = frozenset({"created", "queued", "started", "deferred", "scheduled"})
"""States in which RQ will still deliver a message, or does."""
ANNOUNCED = "rq:solocron:schedulers:"
"""Prefix of a sorted set for each queue: where its workers find schedulers, by the time at which that was told last."""
ANNOUNCED_KEPT, ANNOUNCE_EVERY = 86_400, 60.0
"""Seconds for which it is kept, and between two tellings of one carrier: a Redis that was emptied has it again."""


class RQCarrier:
    """Enqueues into a queue of RQ. `scheduler` is where a worker finds the scheduler: `"module:name"`."""

    follows = True

    def __init__(self, queue: Any, *, scheduler: str) -> None:
        if not hasattr(queue, "enqueue_call"):
            raise InvalidError(f"{queue!r:.80} is not a queue of RQ; nothing was made. Pass the `Queue(...)` object.")
        try:
            read_address(scheduler, "scheduler=")
        except (InvalidError, AttributeError):
            raise InvalidError(
                f'scheduler={scheduler!r:.80}: give the place where workers find it, such as "shop.cron:scheduler". '
                "Nothing was made."
            ) from None
        self._queue = queue
        self._scheduler = scheduler
        self._probe = Probe(queue.connection.ping)
        self._given_up = GivenUp("RQ", self._not_found)
        self._announced: dict[str, float] = {}

    def attach(self, namespace: str, scheduler: Scheduler) -> None:
        """Take a scheduler whose runs wait while Redis is away; workers find it by its address."""
        self._probe.back.serve(namespace, scheduler)

    def close(self) -> None:
        """Look for Redis no more; its connection stays the application's."""
        self._probe.back.close()

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse `hand_over` options that RQ does not know."""
        check_options(options, OPTIONS, "RQCarrier")

    def publish(self, message: Message) -> None:
        """Enqueue the run; return when Redis has answered."""
        queue = self._enqueue(message, FUNCTION, args=(self._scheduler, message.to_json()), timeout=-1, result_ttl=0)
        self._announce(queue)

    def forward(self, message: Message) -> None:
        """Enqueue the function that a message names, with its payload as keyword arguments."""
        self._given_up.sending(str(message.target), message.id)
        self._enqueue(message, str(message.target), kwargs=keyword_arguments(message))

    def look(self, id: str) -> str | None:
        """Say what RQ knows of a message that no worker has picked up."""
        job = self._queue.fetch_job(id)
        if job is None:
            return "RQ does not have it any more"
        state = _state(job)
        if state == "failed":
            return f"RQ could not deliver it: {_error(job).rpartition(chr(10))[2]}"
        return f"RQ has it as {state}, {len(self._queue)} in the queue"

    def _not_found(self, id: str) -> str | None:
        """Return the error of a message whose function a worker could not import; what a body raises is its own."""
        job = self._queue.fetch_job(id)
        error = "" if job is None or _state(job) != "failed" else _error(job)
        return error.rpartition("\n")[2] if "in import_attribute" in error else None

    def withdraw(self, id: str) -> None:
        """Delete a message that still waits."""
        job = self._queue.fetch_job(id)
        if job is not None and _state(job) == "queued":
            job.delete()

    def _announce(self, queue: Any) -> None:
        """Tell workers that start later what to import before they take a message; see `PreloadingWorker`."""
        now = time.time()
        if abs(now - self._announced.get(queue.name, 0.0)) < ANNOUNCE_EVERY:
            return
        self._announced[queue.name] = now
        key = ANNOUNCED + queue.name
        with suppress(Exception), queue.connection.pipeline() as pipeline:  # a help: the message is out
            pipeline.zadd(key, {self._scheduler: now})
            pipeline.zremrangebyscore(key, "-inf", now - ANNOUNCED_KEPT)
            pipeline.expire(key, ANNOUNCED_KEPT)
            pipeline.execute()

    def _enqueue(self, message: Message, function: str, **call: Any) -> Any:
        """Enqueue a call, and return the queue that has it."""
        from rq.exceptions import DuplicateJobError

        options = dict(message.options)
        queue = self._queue
        if "queue" in options:
            queue = type(queue)(options.pop("queue"), connection=queue.connection)
        call |= {"job_id": message.id, "unique": True, "failure_ttl": FAILURES_KEPT, **options}
        call |= {"meta": message.headers, "description": f"{message.job} {message.run} attempt {message.attempt}"}
        with self._probe.sending(message):
            try:
                queue.enqueue_call(function, **call)
            except DuplicateJobError:
                known = queue.fetch_job(message.id)
                if known is not None and _state(known) in WAITS:
                    return queue
                if known is not None:
                    known.delete()
                queue.enqueue_call(function, **call)
        return queue


def announced(connection: Any, queue: str) -> list[str]:
    """Return where workers of a queue find the schedulers of its messages, as far as carriers have told."""
    found = connection.zrange(ANNOUNCED + queue, 0, -1)
    return [one.decode() if isinstance(one, bytes) else str(one) for one in found]


def _state(job: Any) -> str:
    return str(job.get_status(refresh=True)).rpartition(".")[2].lower()


def _error(job: Any) -> str:
    """Return the traceback that RQ keeps of a failed message."""
    result = job.latest_result()
    return str((result.exc_string if result is not None else None) or "").strip()


def carry_out(where: str, message: Any) -> None:
    """Carry out the run of a message in the process of an RQ worker; its session ends with it."""
    found = find(read_address(where, "RQCarrier(scheduler=...)"))
    if not isinstance(found, Scheduler):
        raise InvalidError(f"{where} is not a Scheduler, so the run of this message was not carried out.")
    ticket = read_message(message, FUNCTION)
    if ticket is None:
        return
    try:
        found.carry_out(ticket)
    finally:
        found._end_guest()
