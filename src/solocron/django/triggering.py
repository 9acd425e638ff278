"""`trigger`: a run that belongs to your transaction. Without a commit there is no run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connections, transaction

from solocron.django.database import is_in_memory
from solocron.django.project import ProjectScheduler, current, releasing
from solocron.errors import NotFoundError
from solocron.near import did_you_mean

__all__ = ["Triggered", "recorded", "trigger"]


@dataclass(frozen=True, slots=True)
class Triggered:
    """A trigger as a test sees it."""

    job: str
    payload: Any = None
    key: str | None = None
    at: datetime | None = None


recorded: list[list[Triggered]] = []
"""The lists of tests that only want to know what was triggered; the innermost is the last."""


def trigger(
    job: str | Callable[..., Any],
    payload: Any = None,
    *,
    at: datetime | None = None,
    key: str | None = None,
    shard: int | str | None = None,
    by: str | None = None,
    note: str | None = None,
) -> str | None:
    """Schedule a run of a job, by its name or its function, and return the run's id.

    Inside `atomic` on the store's own database the request is part of that transaction: a rollback leaves nothing, and
    a crash right after the commit loses nothing. Inside `atomic` on another database it is made after the commit, and
    the id is not known yet: None. Elsewhere it is made at once.
    """
    scheduler = current()
    if recorded:
        recorded[-1].append(Triggered(_known(scheduler, job), payload, key, at))
        return None
    ask = partial(_ask, job, payload, at=at, key=key, shard=shard, by=by, note=note)
    own = scheduler.project.alias
    if own is not None and connections[own].in_atomic_block and not is_in_memory(own):
        return ask(connection=connections[own])
    other = next((one.alias for one in connections.all(initialized_only=True) if one.in_atomic_block), None)
    if other is None:
        return ask()
    transaction.on_commit(ask, using=other)
    return None


def _ask(job: str | Callable[..., Any], payload: Any, **options: Any) -> str:
    with releasing() as scheduler:
        return scheduler.trigger(job, payload, **options)


def _known(scheduler: ProjectScheduler, job: str | Callable[..., Any]) -> str:
    name, jobs = scheduler.registry.name_of(job), scheduler.registry.jobs
    if name not in jobs:
        raise NotFoundError(f"there is no job {name!r:.80}. {did_you_mean(name, jobs)}".rstrip())
    return name
