"""Pauses of many jobs at once: of all, of a pool, of the names that match a pattern. The namespace's document has them.

A pause is an interval, from `at` to `until`; lifting it sets its end. One that is over stays listed for a while: a slot
that fell into it, and that no node has decided yet, is skipped and never caught up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from fnmatch import fnmatchcase
from shlex import quote
from typing import Any

from solocron.model.documents.job import Job
from solocron.model.documents.run import plain

__all__ = [
    "NO_PAUSES",
    "STANDING",
    "KeptBack",
    "Reach",
    "Scope",
    "ScopedPause",
    "begin",
    "from_body",
    "kept_back",
    "lift",
    "mark_of",
    "over",
    "standing",
    "to_body",
]  # fmt: skip

STANDING = 100
"""Maximum number of pauses that stand at once."""
_OVER = 64
"""Number of pauses that are over and still listed."""
NO_PAUSES = "-"
"""Mark of a namespace that lists no pause."""


class Reach(StrEnum):
    """How the jobs of a scope are named."""

    ALL = "all"
    POOL = "pool"
    MATCH = "match"


@dataclass(frozen=True, slots=True)
class Scope:
    """The jobs that a pause covers, those deployed later included. At most one pause of a scope stands."""

    reach: Reach
    value: str = ""
    """The pool, or the pattern of names."""

    def __str__(self) -> str:
        if self.reach is Reach.ALL:
            return "all jobs"
        return f"pool {self.value}" if self.reach is Reach.POOL else f"jobs matching {self.value}"

    @property
    def option(self) -> str:
        """Return the option of `solocron pause` and `solocron resume` that names it."""
        return f"--{self.reach}" + (f" {quote(self.value)}" if self.value else "")

    def covers(self, job: Job) -> bool:
        return self.reaches(job.name, job.definition.pool)

    def reaches(self, name: str, pool: str) -> bool:
        """Return whether it covers a job of this name in this pool."""
        if self.reach is Reach.MATCH:
            return fnmatchcase(name, self.value)
        return self.reach is Reach.ALL or pool == self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedPause:
    """One pause: scope, time, author, reason, end."""

    scope: Scope
    at: int
    by: str | None = None
    note: str | None = None
    until: int | None = None
    """Its end: given with the pause, or written when it was lifted. None: it stands until it is lifted."""
    triggers: bool = False
    """True if runs that a person or a program requested wait as well."""
    lifted_by: str | None = None
    lifted_note: str | None = None

    def stands(self, now: int) -> bool:
        return self.until is None or self.until > now

    @property
    def reason(self) -> str:
        """Return the reason of the records of its slots."""
        return f"paused ({self.scope})" + (f": {self.note}" if self.note else "")


class KeptBack(IntEnum):
    """What of a job may not start now."""

    NOTHING = 0
    SCHEDULED = 1
    """Slots, retries and backfills; what a person requested by name may start."""
    EVERYTHING = 2


def standing(pauses: Iterable[ScopedPause], now: int) -> tuple[ScopedPause, ...]:
    return tuple(one for one in pauses if one.stands(now))


def over(pauses: Iterable[ScopedPause], job: Job) -> tuple[ScopedPause, ...]:
    """Return the pauses that cover the job and end after its cursor, by their beginning."""
    found = [one for one in pauses if one.stands(job.cursor) and one.scope.covers(job)]
    return tuple(sorted(found, key=lambda one: one.at)) if found else ()


def kept_back(pauses: Iterable[ScopedPause], job: Job, *, now: int) -> KeptBack:
    """Return what these pauses keep from starting now."""
    found = [one for one in pauses if one.stands(now) and one.scope.covers(job)]
    if not found:
        return KeptBack.NOTHING
    return KeptBack.EVERYTHING if any(one.triggers for one in found) else KeptBack.SCHEDULED


def begin(pauses: Sequence[ScopedPause], wanted: ScopedPause, *, now: int) -> tuple[ScopedPause, ...] | None:
    """Return the pauses with this one; None if too many stand.

    A pause of the same scope that stands goes on with the new author, note and end.
    """
    same = next((one for one in pauses if one.scope == wanted.scope and one.stands(now)), None)
    new = replace(wanted, at=now if same is None else same.at, by=plain(wanted.by), note=plain(wanted.note))
    rest = [one for one in pauses if one is not same]
    if sum(one.stands(now) for one in rest) >= STANDING:
        return None
    return _listed([*rest, new], now)


def lift(
    pauses: Sequence[ScopedPause], scope: Scope, *, by: str | None, now: int, note: str | None = None
) -> tuple[tuple[ScopedPause, ...], ScopedPause] | None:
    """Return the pauses with that of the scope ended now, and the one that ended; None if none of the scope stands."""
    same = next((one for one in pauses if one.scope == scope and one.stands(now)), None)
    if same is None:
        return None
    ended = replace(same, until=now, lifted_by=plain(by), lifted_note=plain(note))
    return _listed([ended if one is same else one for one in pauses], now), ended


def _listed(pauses: Sequence[ScopedPause], now: int) -> tuple[ScopedPause, ...]:
    """Return the pauses without the oldest of those that are over."""
    past = sorted((one for one in pauses if not one.stands(now)), key=lambda one: one.until or 0)
    return (*past[-_OVER:], *standing(pauses, now))


def mark_of(pauses: Sequence[ScopedPause]) -> str:
    """Return a short text that differs between different lists of pauses: a claim names the list it has considered."""
    if not pauses:
        return NO_PAUSES
    return hashlib.blake2b(json.dumps(to_body(pauses)).encode(), digest_size=6).hexdigest()


def to_body(pauses: Iterable[ScopedPause]) -> list[list[Any]]:
    return [
        [
            str(one.scope.reach), one.scope.value, one.at, one.by, one.note, one.until, one.triggers, one.lifted_by,
            one.lifted_note,
        ]
        for one in pauses
    ]  # fmt: skip


def from_body(body: Iterable[Sequence[Any]]) -> tuple[ScopedPause, ...]:
    return tuple(
        ScopedPause(
            scope=Scope(Reach(reach), value), at=at, by=by, note=note, until=until, triggers=triggers,
            lifted_by=lifted_by, lifted_note=lifted_note,
        )
        for reach, value, at, by, note, until, triggers, lifted_by, lifted_note in body
    )  # fmt: skip
