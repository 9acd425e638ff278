"""One entry of another scheduler, as an import reads it: a job as data, or the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from solocron.errors import InvalidError, SolocronError
from solocron.importers.celery import BeatEntry
from solocron.importers.crontab import CrontabJob
from solocron.jobs.checks import check_payload
from solocron.schedules import At, Cron, Every

__all__ = [
    "ImportedJob",
    "RefusedEntry",
    "each",
    "from_beat_entry",
    "from_crontab_job",
    "job_name",
    "named_once",
    "reason",
]

_UNSUITABLE = re.compile(r"[^A-Za-z0-9_.:-]+")
_LONGEST = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedJob:
    """A job to be added: its name, the handler that it calls, and `notes` where it differs from what it was."""

    name: str
    handler: str
    schedule: Cron | Every | At
    options: dict[str, Any]
    notes: tuple[str, ...] = ()
    paused: bool = False
    """It was switched off there, so it is added paused."""
    command: CrontabJob | None = None
    """The line of a crontab that its handler has to run; never written to the store."""


@dataclass(frozen=True, slots=True)
class RefusedEntry:
    """An entry that is not imported, and why."""

    entry: str
    why: str


def job_name(given: str) -> tuple[str, tuple[str, ...]]:
    """Return a name that a job may have, and a note if it is another one."""
    name = _UNSUITABLE.sub("-", given).strip("-")[:_LONGEST]
    if not name:
        raise InvalidError(f"{given!r:.60} has no letter or digit, so it cannot be the name of a job.")
    return name, () if name == given else (f"it was named {given!r:.150}.",)


def from_beat_entry(given: str, entry: BeatEntry) -> ImportedJob:
    """Return the job of an entry of Celery beat: its handler is the task's name, its payload the message."""
    name, notes = job_name(given)
    if not entry.task:
        raise InvalidError("it names no task.")
    handler, renamed = job_name(entry.task)
    if renamed:
        raise InvalidError(
            f"its task is named {entry.task!r:.80}, which no handler can be: letters, digits and _ . : -."
        )
    payload = {"args": entry.args, "kwargs": entry.kwargs, "options": entry.options}
    options: dict[str, Any] = {"payload": check_payload(payload, whose=name), **entry.bounds}
    expires = entry.options.get("expires")
    if isinstance(expires, int | float):
        options["start_within"] = f"{expires:g}s"
    return ImportedJob(
        name=name,
        handler=handler,
        schedule=entry.schedule,
        options=options,
        notes=(*notes, *entry.notes),
        paused=not entry.enabled,
    )


def from_crontab_job(job: CrontabJob) -> ImportedJob:
    """Return the job of a crontab's line. Its handler is a function that runs the command; the store has its name only.

    A command in the payload would be simpler, and would let everyone who can write to the store run any program.
    """
    program = _program(job.command)
    name, _ = job_name(program.rpartition("/")[2] or program)
    return ImportedJob(
        name=name,
        handler=name,
        schedule=job.converted.schedule,
        options={},
        notes=tuple(note for note in job.notes),
        command=job,
    )


def _program(command: str) -> str:
    """Return the first program of a command that does something: not the `cd` before it, nor its environment."""
    parts = [part.split() for part in re.split(r"&&|;", command)]
    programs = [words[0] for part in parts if (words := [word for word in part if "=" not in word])]
    return next((program for program in programs if program != "cd"), programs[0] if programs else command)


def named_once(
    found: Iterable[ImportedJob | RefusedEntry], *, number: bool = False
) -> Iterator[ImportedJob | RefusedEntry]:
    """Yield the entries, and refuse the second of one name; with `number` it gets a number instead."""
    seen: set[str] = set()
    for one in found:
        if isinstance(one, RefusedEntry) or one.name not in seen:
            made = one
        elif number:
            free = next(f"{one.name}-{n}" for n in range(2, 100_000) if f"{one.name}-{n}" not in seen)
            made = replace(one, name=free, handler=free)
        else:
            made = RefusedEntry(one.name, f"another entry becomes a job of the name {one.name!r}, too.")
        if isinstance(made, ImportedJob):
            seen.add(made.name)
        yield made


def each(entries: Iterable[tuple[str, Callable[[], ImportedJob]]]) -> Iterator[ImportedJob | RefusedEntry]:
    """Yield what each entry becomes; one that cannot be converted does not hide the others."""
    for label, make in entries:
        try:
            yield make()
        except InvalidError as error:
            yield RefusedEntry(label, reason(error))


def reason(error: SolocronError) -> str:
    """Return the message without its word on what was left undone: the report says that for all entries."""
    text = re.sub(r" Nothing was (?:converted|registered|added)\.", "", str(error))
    return re.sub(r" Nothing was converted; (\w)", lambda found: f" {found[1].upper()}", text)
