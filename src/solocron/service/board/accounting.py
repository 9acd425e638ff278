"""The accounting of all jobs, made in the background: slots by the schedules against what is on record, job by job.

A request may not read the log of every job. So each pass of the watcher compares a few jobs and keeps their sums: first
those in which something has happened, then those that were checked longest ago. A small namespace is checked whole by
the first pass.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from threading import Lock

from solocron.client import Client
from solocron.client.hour_counts import HOUR
from solocron.client.slots import JobAccount
from solocron.clock import SECOND, from_us
from solocron.model.change import Kind
from solocron.model.documents.run import Status
from solocron.model.documents.session import Session
from solocron.stores.contract import Query
from solocron.stores.paging import iter_names

__all__ = ["HOURS", "AccountingBoard", "BoardSums"]

HOURS = 24
_SPAN = HOURS * HOUR
_JOBS = 50_000
"""Jobs that are compared at most."""
_FIRST_ROUND = 60
_LATER_ROUNDS = 3
"""Jobs that one step compares while some were never compared, and afterwards."""
_CHANGED = 40
"""Of those in which something has happened, as many more."""
_AT_ONCE = 20
"""Documents that are read at once."""
_SECONDS = 0.2
_LISTED_FOR = 60 * SECOND
_MISSING = 100
_REFUSED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSums:
    """The slots that came due in the last 24 hours, by what became of them, of all jobs that were compared."""

    hours: int
    due: int
    counts: Mapping[str, int]
    """By the statuses of `SlotView`."""
    taken_over: int
    """Attempts that were lost with their node."""
    done_twice: int
    """Runs whose refused result was a success although another attempt succeeded: the body ran twice to its end."""
    unaccounted: tuple[tuple[str, datetime], ...]
    """Slots that are decided and not on record: job and slot; at most 100."""
    missing: int
    """How many there are."""
    checked_jobs: int
    of_jobs: int
    left_out: Mapping[str, str]
    """Jobs that could not be compared, and why; at most 100."""
    checked_from: datetime | None
    """When the job that was compared longest ago was; None if none was."""
    checked_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Checked:
    account: JobAccount
    at: int


class AccountingBoard:
    """The accounting of the slots of each job. One thread makes steps; any number ask for the sums."""

    def __init__(self, client: Callable[[], Client], *, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._lock = Lock()
        self._jobs: OrderedDict[str, _Checked | None] = OrderedDict()
        """By name; None if it was never compared. Those that were compared longest ago come first."""
        self._counts: Counter[str] = Counter()
        self._worst: dict[str, JobAccount] = {}
        """The accounts in which slots are missing, or that could not be made."""
        self._never = self._removed = self._done_twice = 0
        self._changed: OrderedDict[str, None] = OrderedDict()
        self._listed_at: int | None = None
        self._listings = 0

    @property
    def listed(self) -> int:
        """A number that changes when jobs came or went."""
        return self._listings

    @property
    def verdict(self) -> tuple[int, int, bool]:
        """Return how many slots are missing, how many bodies ended twice, and whether all jobs were compared."""
        with self._lock:
            return self._counts["unaccounted"], self._done_twice, not self._never

    def concern(self, jobs: Iterable[str]) -> None:
        """Compare these jobs first: something has happened in them."""
        for name in jobs:
            self._changed[name] = None
            if len(self._changed) > _JOBS:
                self._changed.popitem(last=False)

    def list_anew(self) -> None:
        """Let the next step find out which jobs there are: some came or went."""
        self._listed_at = None

    def step(self, now: int, *, go_on: bool = True) -> None:
        """Compare some jobs; `now` is the store's time.

        Without `go_on` only those in which something happened, and those that were never compared.
        """
        begun = self._clock()
        new = any(name not in self._jobs for name in self._changed)
        if new or self._listed_at is None or now - self._listed_at > _LISTED_FOR:
            self._list(now)
        names = list(islice(self._changed, _CHANGED))
        rest = (name for name in self._jobs if name not in self._changed)
        names += islice(rest, _FIRST_ROUND if self._never else _LATER_ROUNDS if go_on else 0)
        for begin in range(0, len(names), _AT_ONCE):
            if begin and self._clock() - begun > _SECONDS:
                return
            self._compare(names[begin : begin + _AT_ONCE], now)

    def note_refused(self, sessions: Iterable[Session], now: int) -> None:
        """Count the bodies that ran twice to their ends, from the results that the store refused."""
        refused = {
            (one.run, one.fence)
            for session in sessions
            for one in session.report.refused
            if one.outcome == Status.SUCCEEDED and one.at > now - _SPAN
        }
        runs = tuple(sorted({run for run, _ in refused}))[:_REFUSED]
        query = Query(runs=runs, statuses=frozenset([Status.SUCCEEDED]), limit=_REFUSED)
        found = self._client().store.history(query).records if runs else ()
        succeeded = {record.run: record.fence for record in found}
        twice = sum(run in succeeded and succeeded[run] != fence for run, fence in refused)
        with self._lock:
            self._done_twice = twice

    def sums(self, now: int) -> BoardSums:
        """Return the sums of what was compared so far."""
        taken_over = self._client().hour_counts.total(now - _SPAN, now).get(Status.LOST, 0)
        with self._lock:
            worst = list(islice(self._worst.items(), _MISSING))
            missing = [(name, slot) for name, account in worst for slot in account.unaccounted]
            oldest = next((one for one in self._jobs.values() if one is not None), None)
            newest = next(reversed(self._jobs.values()), None)
            return BoardSums(
                hours=HOURS,
                due=self._counts.total(),
                counts={status: count for status, count in self._counts.items() if count},
                taken_over=taken_over,
                done_twice=self._done_twice,
                missing=self._counts["unaccounted"],
                unaccounted=tuple(missing[:_MISSING]),
                checked_jobs=len(self._jobs) - self._never - self._removed,
                of_jobs=len(self._jobs) - self._removed,
                left_out={name: account.left_out for name, account in worst if account.left_out is not None},
                checked_from=None if oldest is None else from_us(oldest.at),
                checked_at=None if newest is None else from_us(newest.at),
            )

    def _list(self, now: int) -> None:
        """Take over which jobs there are."""
        names = dict.fromkeys(islice(iter_names(self._client().store, Kind.JOB), _JOBS))
        self._listings += self._jobs.keys() != names.keys()
        with self._lock:
            for name in [name for name in self._jobs if name not in names]:
                self._forget(name)
            for name in reversed(names):
                if name not in self._jobs:
                    self._jobs[name] = None
                    self._jobs.move_to_end(name, last=False)
                    self._never += 1
        for name in [name for name in self._changed if name not in names]:
            del self._changed[name]
        self._listed_at = now

    def _compare(self, names: Sequence[str], now: int) -> None:
        for name in names:
            self._changed.pop(name, None)  # before the documents are read: what happens from now on is a new change
        found = self._client().accounts(names, from_us(now - _SPAN), now=now)
        with self._lock:
            for name in names:
                self._forget(name)
                account = found.get(name)
                if account is None:
                    continue
                self._jobs[name] = _Checked(account, now)
                self._counts.update(account.counts)
                self._removed += account.removed
                if account.unaccounted or account.left_out is not None:
                    self._worst[name] = account

    def _forget(self, name: str) -> None:
        known = self._jobs.pop(name)
        self._worst.pop(name, None)
        if known is None:
            self._never -= 1
        else:
            self._counts.subtract(known.account.counts)
            self._removed -= known.account.removed
