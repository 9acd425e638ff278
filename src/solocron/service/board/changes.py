"""The last changes of a namespace, numbered, so that a reader learns what it has missed, or that it missed too much.

A reader has a position and no queue: one that is slow, or away for a while, costs nothing, and gets everything since
its position put together in one message.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any

__all__ = ["MOST_JOBS", "BoardChange", "Changes", "Position", "SeenRun", "told"]

_KEPT = 1_000
_RUNS = 20
_BYTES = 2_048
MOST_JOBS = 200
"""Jobs that one change names; one that concerns more concerns all."""


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run that began or ended."""

    run: str
    job: str
    status: str
    node: str | None
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardChange:
    """Something that is not as it was: what it concerns, and the runs that it is about."""

    number: int
    topics: frozenset[str]
    """`runs`, `nodes`, `alarms`, `jobs`, `audit`, and `job:NAME`."""
    runs: tuple[SeenRun, ...] = ()
    everything: bool = False
    """True if it may concern any topic: too much has happened to tell it apart."""
    urgent: bool = True
    """False if all went as it should: runs that began for the first time or succeeded."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place among the changes of one watch. Another watch, such as that of another process, has another token."""

    token: str
    number: int

    def __str__(self) -> str:
        return f"{self.token}-{self.number}"

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """Read what `str` wrote; None for anything else."""
        token, _, number = text.rpartition("-")
        good = token.isalnum() and len(text) <= 64 and number.isascii() and number.isdigit()
        return cls(token, int(number)) if good else None


class Changes:
    """The last changes, for any number of threads."""

    def __init__(self, make_token: Callable[[], str]) -> None:
        self._lock = Lock()
        self._make_token = make_token
        self._token = make_token()
        self._changes: deque[BoardChange] = deque(maxlen=_KEPT)
        self._number = 0

    @property
    def position(self) -> Position:
        """The place after the last change."""
        with self._lock:
            return Position(self._token, self._number)

    def add(
        self, topics: Collection[str], runs: Sequence[SeenRun] = (), *, everything: bool = False, urgent: bool = True
    ) -> None:
        """Add a change; one that names too many jobs concerns everything."""
        if sum(topic.startswith("job:") for topic in topics) > MOST_JOBS:
            topics, everything = [topic for topic in topics if not topic.startswith("job:")], True
        shown = tuple(runs) if len(runs) <= _RUNS else ()
        with self._lock:
            self._number += 1
            self._changes.append(
                BoardChange(
                    number=self._number, topics=frozenset(topics), runs=shown, everything=everything, urgent=urgent
                )
            )

    def restart(self) -> None:
        """Begin anew: a client with an older position has missed what happened while no pass was made."""
        with self._lock:
            self._token = self._make_token()
            self._changes.clear()

    @property
    def last(self) -> Position:
        """The place after all changes that are known."""
        with self._lock:
            return Position(self._token, self._number)

    def since(self, position: Position) -> tuple[list[BoardChange] | None, Position]:
        """Return the changes after a place, and the place after them; None if some are not kept any more."""
        with self._lock:
            last = Position(self._token, self._number)
            first = self._changes[0].number if self._changes else self._number + 1
            if position.token != self._token or not first - 1 <= position.number <= self._number:
                return None, last
            return [one for one in self._changes if one.number > position.number], last


def told(changes: Sequence[BoardChange], wanted: frozenset[str]) -> dict[str, Any] | None:
    """Return what a reader of these topics is told of the changes, put together; None if they do not concern it."""
    everything = any(one.everything for one in changes)
    topics = sorted(wanted if everything else wanted & frozenset(topic for one in changes for topic in one.topics))
    if not topics:
        return None
    latest: dict[tuple[str, int], SeenRun] = {}
    for change in changes:
        for run in change.runs:
            if "runs" in wanted or f"job:{run.job}" in wanted:
                latest[run.run, run.attempt] = run
    runs = [] if everything or len(latest) > _RUNS else [asdict(run) for run in latest.values()]
    found = {"topics": topics, "runs": runs}
    return found if len(json.dumps(found)) <= _BYTES else {"topics": topics, "runs": []}
