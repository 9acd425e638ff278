"""Compares what was due by the schedules and the store's clock with what the bodies wrote, and with the store's log.

The ledger decides whether a slot ran. The log only shows which results were accepted and whether every slot is
recorded. Nothing that the engine says of itself counts.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from solocron.clock import SystemClock, iso
from solocron.errors import StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.run import ENDED, Origin, Record, Status, key_of
from solocron.model.documents.session import Session
from solocron.schedules import Schedule, instants
from solocron.stores.contract import All, Query, Store
from solocron.stores.paging import read_sessions
from solocron.testing.fleet.fleet import Fleet
from solocron.testing.fleet.ledger import END, START, Ledger, Line
from solocron.testing.fleet.replica import Incident
from solocron.testing.fleet.verdict import FleetVerdict
from solocron.testing.fleet.waiting import wait_until

__all__ = ["Judge"]

TOLERANCE = 0.05
"""Seconds by which a reading of the store's clock may be off: it is slewed, and reading it takes time."""
_EVERYTHING = 10_000_000
_PATIENCE = 60.0
"""Seconds for which a store that does not answer is asked again."""
_LOOK = 0.2
"""Seconds between two reads of the whole log."""

T = TypeVar("T")
Slot = tuple[str, int]
"""A job and an instant in microseconds."""


class Judge:
    """Judges the slots of a window: those after `open` and not after `close`, by the store's clock."""

    def __init__(
        self, *, ledger: Ledger, store: Store, schedules: Mapping[str, Schedule], incidents: Sequence[Incident] = ()
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._schedules = schedules
        self._incidents = incidents
        self._boot = SystemClock().boot
        self._ahead: list[float] = []
        self._since: int | None = None
        self._until: int | None = None

    @classmethod
    def of(cls, fleet: Fleet) -> Judge:
        """Return the judge of a fleet's own ledger, store and declared jobs."""
        scheduler = fleet.scheduler
        schedules = {declared.name: declared.schedule for declared in scheduler.registry}
        return cls(ledger=fleet.ledger, store=scheduler.open().store, schedules=schedules, incidents=fleet.incidents)

    # --- the window

    def open(self) -> None:
        """Begin the window. All jobs must be in the store: a job has no slots before it was declared."""
        known = {doc.name for doc in self._store.read(All(Kind.JOB))}
        missing = sorted(set(self._schedules) - known)
        if missing:
            raise RuntimeError(f"not in the store yet: {', '.join(missing)}; wait until a replica has begun.")
        self._since = self._clock()

    def close(self) -> None:
        """End the window: slots after now do not count."""
        self._until = self._clock()

    def due(self) -> list[Slot]:
        """Return every slot of the window, or of the window so far."""
        assert self._since is not None, "open() comes first"
        until = self._clock() if self._until is None else self._until
        return [
            (job, slot)
            for job, schedule in sorted(self._schedules.items())
            for slot in instants.between(schedule, self._since, until)
        ]

    def missing(self) -> list[Slot]:
        """Return the due slots that no body has ended yet."""
        ended = {line.key for line in self._ledger.lines(event=END)}
        return [(job, slot) for job, slot in self.due() if _key(job, slot) not in ended]

    def settled(self) -> bool:
        """Return whether bodies have ended every due slot and the log has a final record of each.

        Both: the body of a node that died before it could record the end is repeated once its session is buried.
        """
        return not self.missing() and self.recorded()

    def recorded(self) -> bool:
        """Return whether the log has a final record of every due slot: enough for a job without retries."""
        return not self._unrecorded(self.due(), self._log())

    def wait_settled(self, within: float, *, recorded: bool = False) -> bool:
        """Wait until all is settled, or at least `recorded`; False if something is still waiting after that time."""
        look = self.recorded if recorded else self.settled
        try:
            wait_until(look, within=within, what="the slots that wait", pause=_LOOK)
        except TimeoutError:
            return False
        return True

    def _clock(self) -> int:
        asked = self._boot()
        now = _insist(self._store.clock)
        self._ahead.append((now + self._store.capabilities.clock_within) / 1e6 - asked)
        return now

    # --- the verdict

    def verdict(self) -> FleetVerdict:
        """Return the fate of every slot; the replicas should have stopped, or at least have settled."""
        self._clock()
        by_key: dict[str, list[Line]] = defaultdict(list)
        for line in self._ledger.lines():
            by_key[line.key].append(line)
        log = self._log()
        due = self.due()
        names = {_key(job, slot): f"{job} {iso(slot)}" for job, slot in due}

        twice = {key: why for key in {*by_key, *log} if (why := _twice(by_key[key], log[key]))}
        lost = [key for key in names if key not in twice and not any(line.event == END for line in by_key[key])]
        stale = [line for lines in by_key.values() for line in _stale(lines)]
        succeeded = {(r.run, r.attempt) for r in chain.from_iterable(log.values()) if r.status is Status.SUCCEEDED}
        accepted = [line for line in stale if (line.run, line.attempt) in succeeded]
        early = [line for line in self._ledger.lines(event=START) if self._early(line)]
        unrecorded = self._unrecorded(due, log)
        takeovers = tuple(sorted(round(seconds, 3) for seconds in self._takeovers()))
        return FleetVerdict(
            slots=len(due),
            once=len(due) - len(lost) - len(twice.keys() & names.keys()),
            twice=len(twice),
            lost=len(lost),
            takeover_s=max(takeovers, default=None),
            stale_refused=len(stale) - len(accepted),
            stale_accepted=len(accepted),
            early=len(early),
            unrecorded=len(unrecorded),
            kills=sum(1 for incident in self._incidents if incident.kind == "kill"),
            freezes=sum(1 for incident in self._incidents if incident.kind == "freeze"),
            takeovers=takeovers,
            faults=(
                *(f"twice: {names.get(key, key)}: {why}" for key, why in sorted(twice.items())),
                *(f"lost: {names[key]}: {_story(log[key])}" for key in lost),
                *(f"stale result accepted: {line.run} attempt {line.attempt} of {line.node}" for line in accepted),
                *(f"early: {line.job} {iso(line.slot)} on {line.node}" for line in early),
                *(f"unrecorded: {job} {iso(slot)}" for job, slot in unrecorded),
            ),
        )

    def _log(self) -> dict[str, list[Record]]:
        """Return the records of each slot."""
        log: dict[str, list[Record]] = defaultdict(list)
        for job in self._schedules:
            query = Query(job=job, limit=_EVERYTHING)
            for record in _insist(partial(self._store.history, query)).records:
                log[record.key].append(record)
        return log

    def _unrecorded(self, due: Sequence[Slot], log: Mapping[str, Sequence[Record]]) -> list[Slot]:
        """Return the slots without a final record of their own that lie in no summary either."""
        summaries: dict[str, list[Record]] = defaultdict(list)
        for record in chain.from_iterable(log.values()):
            if record.count > 1:
                summaries[record.job].append(record)

        def is_on_record(job: str, slot: int) -> bool:
            own = log.get(_key(job, slot), ())
            if own and max(own, key=lambda record: record.attempt).status in ENDED:
                return True
            return any((one.first or 0) <= slot <= one.slot for one in summaries[job])

        return [(job, slot) for job, slot in due if not is_on_record(job, slot)]

    def _early(self, line: Line) -> bool:
        return line.at + max(self._ahead) + TOLERANCE < line.slot / 1e6

    def _takeovers(self) -> Iterator[float]:
        """Yield, for each run of a hurt node, the seconds from its last renewal to the next start elsewhere."""
        lines = self._ledger.lines()
        sessions = _insist(partial(read_sessions, self._store))
        for incident in self._incidents:
            if incident.kind not in ("kill", "freeze"):
                continue
            since = self._last_renewal(sessions, incident)
            before = [line for line in lines if line.pid == incident.pid and line.at <= incident.at]
            over = {(line.run, line.fence) for line in before if line.event != START}
            for line in before:
                if line.event == START and (line.run, line.fence) not in over:
                    following = next((o.at for o in lines if o.event == START and _follows(o, line)), None)
                    if following is not None and following > incident.at:
                        yield following - since

    def _last_renewal(self, sessions: Sequence[Session], incident: Incident) -> float:
        """Return the boot time of the last renewal before an incident; the incident's own if the store cannot tell."""
        for session in sorted(sessions, key=lambda doc: doc.started_at, reverse=True):
            if session.pid == incident.pid and self._boot_of(session.started_at) <= incident.at:
                # A session that its own node ended has an expiry that tells nothing of renewals.
                buried = session.ended_at is not None and session.ended_at >= session.expires_at
                return min(self._boot_of(session.expires_at - session.lease), incident.at) if buried else incident.at
        return incident.at

    def _boot_of(self, instant: int) -> float:
        return instant / 1e6 - max(self._ahead)


def _insist(call: Callable[[], T]) -> T:
    """Ask a store that may be away until it answers: a judge is no node, and has time."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return call()
        except StoreUnavailable:
            if time.monotonic() > end:
                raise
        threading.Event().wait(_LOOK)


def _key(job: str, slot: int) -> str:
    return key_of(job, Origin.SCHEDULE, slot, None)


def _twice(lines: Sequence[Line], records: Sequence[Record]) -> str | None:
    """Return why a slot counts as run twice; None if it does not."""
    starts = [line for line in lines if line.event == START]
    attempts = Counter((line.run, line.attempt) for line in starts)
    for (_, attempt), count in attempts.items():
        if count > 1:
            nodes = ", ".join(line.node for line in starts if line.attempt == attempt)
            return f"attempt {attempt} started {count} times ({nodes})"
    runs = {line.run for line in lines}
    if len(runs) > 1:
        return f"{len(runs)} runs of one slot ({', '.join(sorted(runs))})"
    results = sum(1 for record in records if record.status is Status.SUCCEEDED)
    return f"{results} accepted results" if results > 1 else None


def _stale(lines: Sequence[Line]) -> list[Line]:
    """Return the ends of a slot's bodies at which a later claim of it had started already."""
    starts = [line for line in lines if line.event == START]
    return [
        end
        for end in lines
        if end.event == END and any(start.fence > end.fence and start.at < end.at for start in starts)
    ]


def _follows(later: Line, earlier: Line) -> bool:
    return later.run == earlier.run and later.attempt > earlier.attempt and later.pid != earlier.pid


def _story(records: Sequence[Record]) -> str:
    """Return what the log says of a slot, for the reader of the fault."""
    told = [f"attempt {r.attempt} {r.status} on {r.node}" + (f" ({r.reason})" if r.reason else "") for r in records]
    return "; ".join(told) or "not in the log"
