"""Records outcomes, many in one write. What was contended or unknown is repeated until it is in or the lease over.

An outcome leaves the mailbox once it is settled, and not before: whatever is raised meanwhile, it is written again.

While the node has more to claim than it could take, outcomes wait a moment for each other: what is late starts sooner,
and the store is written less often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from solocron.engine.attempts import Board, Running
from solocron.engine.memory import Memory
from solocron.engine.permits import Permits
from solocron.engine.settings import Settings
from solocron.errors import StoreError
from solocron.events import Events
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Entry
from solocron.model.timetable import Resolve
from solocron.model.transitions.finishing import PAUSED, HandBack, Outcome, finish, hand_back
from solocron.runtime import Runtime
from solocron.stores.contract import Named, Result, Store, Verdict

__all__ = ["Finisher"]

_APPLIED = Verdict.APPLIED
_AGAIN = (Verdict.CONTENDED, Verdict.UNKNOWN, Verdict.BLOCKED)

BATCH = 500
GATHER = 0.05
"""Seconds that an outcome waits for others while more is due. What a crash may lose of them counts as lost runs."""


@dataclass(slots=True)
class _Item:
    running: Running
    outcome: Outcome | HandBack
    tries: int = 0


class Finisher:
    """A mailbox of ended runs, settled in batches."""

    def __init__(
        self,
        *,
        store: Store,
        board: Board,
        runtime: Runtime,
        settings: Settings,
        events: Events,
        resolve: Resolve,
        wake_claimer: Callable[[int | None], None],
        flooded: Callable[[], bool],
        permits: Permits,
        memory: Memory,
    ) -> None:
        self._memory = memory
        self._store = store
        self._board = board
        self._runtime = runtime
        self._settings = settings
        self._events = events
        self._resolve = resolve
        self._wake_claimer = wake_claimer
        self._flooded = flooded
        self._permits = permits
        self._mutex = runtime.mutex()
        self._items: list[_Item] = []
        self._most = BATCH
        """How many are written at once: fewer after a batch that made the store raise, so that one keeps no others."""
        self._since = 0.0
        """Boot time at which the first of them came."""
        self.wake: Callable[[], None] = lambda: None

    def add(self, running: Running, outcome: Outcome | HandBack) -> None:
        """An attempt ended here; called from the body's thread."""
        if isinstance(outcome, HandBack):
            self._memory.handed_back(running.key)
        else:
            self._memory.ended(running.key, outcome)
        with self._mutex:
            if not self._items:
                self._since = self._runtime.clock.boot()
            self._items.append(_Item(running, outcome))
            count = len(self._items)
        self._wake_claimer(None)
        if count == 1 or count >= BATCH or not self._flooded():
            self.wake()

    def waiting(self) -> int:
        with self._mutex:
            return len(self._items)

    def step(self, now: float) -> float:
        """Write one batch; returns now if there is more, far away if there is nothing to do."""
        if self._flooded() and 0 < self.waiting() < BATCH and now < self._since + GATHER:
            return self._since + GATHER
        batch = self._next_batch()
        if not batch:
            return now + self._settings.poll
        by_job: dict[str, list[_Item]] = {}
        for item in batch:
            by_job.setdefault(item.running.job, []).append(item)
        self._runtime.failpoint("finishing")
        for item in batch:
            item.tries += 1
        try:
            applied = self._store.update(
                Named(Kind.JOB, tuple(sorted(by_job))), lambda doc, at: self._end(doc, at, by_job)
            )
        except StoreError:
            raise
        except Exception:
            self._behind_the_others(batch)
            raise
        self._most = min(2 * self._most, BATCH)
        self._runtime.failpoint("finished")
        replied = self._runtime.clock.boot()
        self._board.saw_store_time(applied.now, asked=now, replied=replied)
        again: list[_Item] = []
        settled: list[Result] = []
        for result in applied.results:
            if result.verdict in _AGAIN:
                again.extend(by_job[result.name])
            else:
                settled.append(result)
        self._over([item for result in settled for item in by_job[result.name]])
        for result in settled:
            self._tell(result, by_job[result.name], replied)
        # Claims rest while too many outcomes wait; no body may be left whose end would wake the claimer.
        self._wake_claimer(None)
        moments = [r.doc.due_at for r in settled if isinstance(r.doc, Job) and r.doc.due_at is not None]
        if moments:
            self._wake_claimer(min(moments))
        self._permits.flush()
        if again:
            return now + min(0.01 * 2.0 ** min(again[0].tries, 7), 1.0)
        return now if self.waiting() else now + self._settings.poll

    def _next_batch(self) -> list[_Item]:
        """What is to be written next, without what the lost session took with it."""
        with self._mutex:
            batch = self._items[: self._most]
        session = self._board.session
        stale = [item for item in batch if item.running.session != session]
        if stale:
            self._over(stale)
            for item in stale:
                self._refused(item, "its lease was lost before its outcome could be recorded")
        return [item for item in batch if item.running.session == session]

    def _behind_the_others(self, batch: list[_Item]) -> None:
        self._most = max(1, len(batch) // 10)
        with self._mutex:
            self._items = self._items[len(batch) :] + self._items[: len(batch)]

    def _over(self, items: list[_Item]) -> None:
        """Their ends are in the store, or will never be."""
        self._board.done(item.running for item in items)
        for item in items:
            self._permits.run_over(item.running.hold)
        gone = set(map(id, items))
        with self._mutex:  # last: what comes here once more because it was not reached is declined by the store
            self._items = [item for item in self._items if id(item) not in gone]

    def _end(self, doc: Job | Absent, now: int, by_job: dict[str, list[_Item]]) -> Change | None:
        """End every attempt of one job that ended here; stale ones change nothing."""
        if isinstance(doc, Absent):
            return None
        job: Job | None = doc
        entries: list[Entry] = []
        answers: dict[tuple[str, int], str] = {}
        for item in by_job[doc.name]:
            change = None if job is None else self._ended(job, now, item)
            if change is not None:
                assert change.doc is None or isinstance(change.doc, Job)
                job = change.doc
                entries.extend(change.entries)
                answers[item.running.key] = change.answer
        return Change(job, tuple(entries), answers) if answers else None

    def _ended(self, job: Job, now: int, item: _Item) -> Change | None:
        hold, outcome = item.running.hold, item.outcome
        if isinstance(outcome, HandBack):
            return hand_back(job, run=hold.run, fence=hold.fence, now=now, reason=outcome.reason, resolve=self._resolve)
        return finish(job, run=hold.run, fence=hold.fence, outcome=outcome, now=now, resolve=self._resolve)

    def _tell(self, result: Result, items: list[_Item], now: float) -> None:
        answers = result.answer if result.verdict is _APPLIED else {}
        for item in items:
            if item.running.key not in answers:
                known = "another node has taken over"
                self._refused(item, known if item.tries == 1 else f"it is on record by an earlier try, or {known}")
                continue
            hold, outcome = item.running.hold, item.outcome
            if isinstance(outcome, HandBack):
                self._events.emit("handed back", job=item.running.job, run=hold.run, reason=outcome.reason)
                continue
            begun = item.running.begun_at
            self._events.emit(
                "finished", job=item.running.job, run=hold.run, slot=hold.slot, attempt=hold.attempt, fence=hold.fence,
                node=self._settings.node, outcome=outcome.status, reason=outcome.reason, error=outcome.error,
                duration_s=None if begun is None else now - begun,
            )  # fmt: skip
        if isinstance(result.doc, Job) and result.doc.paused is not None and PAUSED in answers.values():
            self._events.emit("paused", job=result.name, reason=result.doc.paused.note)

    def _refused(self, item: _Item, reason: str) -> None:
        status = "handed back" if isinstance(item.outcome, HandBack) else item.outcome.status
        self._events.emit(
            "refused", job=item.running.job, run=item.running.hold.run, fence=item.running.hold.fence, outcome=status,
            reason=reason,
        )  # fmt: skip
