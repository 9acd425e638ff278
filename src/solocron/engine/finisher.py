"""Records outcomes, many in one write, and repeats contended or unknown ones until recorded or the lease is over.

An outcome leaves the mailbox once its result is known, and not before: whatever is raised meanwhile, it is written
again.

Under backlog, outcomes wait a moment for each other: late runs start sooner, and there are fewer writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from solocron.engine.attempts import Attempts, Running
from solocron.engine.memory import Memory
from solocron.engine.node_context import NodeContext
from solocron.engine.permits import Permits
from solocron.engine.recorded import tell_recorded_twice
from solocron.errors import StoreError
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.model.transitions.finishing import PAUSED, HandBack, HandOver, NotPublished, Outcome, finish, hand_back
from solocron.model.transitions.offering import Handed, hand_over, put_back
from solocron.stores.contract import Named, Result, Verdict

__all__ = ["End", "Finisher"]

_AGAIN = (Verdict.CONTENDED, Verdict.UNKNOWN, Verdict.BLOCKED)

BATCH = 500
GATHER = 0.05
"""Seconds that an outcome waits for others while more is due. Outcomes that a crash loses count as lost runs."""

End = Outcome | HandBack | HandOver | NotPublished
"""The end of a claim: of its body, or without one."""


@dataclass(slots=True)
class _Item:
    running: Running
    outcome: End
    tries: int = 0


class Finisher:
    """A mailbox of ended runs, recorded in batches."""

    def __init__(self, context: NodeContext, attempts: Attempts, permits: Permits, memory: Memory) -> None:
        self._context = context
        self._attempts = attempts
        self._permits = permits
        self._memory = memory
        self._mutex = context.runtime.mutex()
        self._items: list[_Item] = []
        self._most = BATCH
        """Batch size: smaller after a batch that made the store raise, so that one outcome does not block others."""
        self._since = 0.0
        """Boot time at which the first of them came."""

    def add(self, running: Running, outcome: End) -> None:
        """Add the end of an attempt; called from the body's thread."""
        if isinstance(outcome, Outcome):
            self._memory.ended(running.key, outcome)
        else:
            self._memory.handed_back(running.key)
        with self._mutex:
            if not self._items:
                self._since = self._context.runtime.clock.boot()
            self._items.append(_Item(running, outcome))
            count = len(self._items)
        self._context.signals.claim.place_free()
        if count == 1 or count >= BATCH or not self._context.signals.claim.backlog:
            self._context.signals.finish.wake()

    def waiting(self) -> int:
        with self._mutex:
            return len(self._items)

    def is_idle(self) -> bool:
        """Return whether nothing runs here and every outcome is in the store."""
        return not self._attempts.running() and not self.waiting()

    def begin_wait(self) -> bool:
        """Return whether nothing runs here; a change from now on ends the next `wait_for_an_end`."""
        self._attempts.ended.clear()
        return self.is_idle()

    def wait_for_an_end(self, timeout: float | None) -> None:
        """Wait until a body ends or a claim goes away, unless nothing runs."""
        if not self.is_idle():
            self._attempts.ended.wait(timeout)

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs here and every outcome is in the store; False if that takes longer."""
        clock = self._context.runtime.clock
        until = None if timeout is None else clock.boot() + timeout
        while not self.begin_wait():
            left = None if until is None else until - clock.boot()
            if left is not None and left <= 0:
                return False
            self._attempts.ended.wait(left)
        return True

    def step(self, now: float) -> float:
        """Write one batch; return now if there is more, far away if there is nothing to do."""
        if self._context.signals.claim.backlog and 0 < self.waiting() < BATCH and now < self._since + GATHER:
            return self._since + GATHER
        batch = self._next_batch()
        if not batch:
            return now + self._context.settings.poll
        by_job: dict[str, list[_Item]] = {}
        for item in batch:
            by_job.setdefault(item.running.job, []).append(item)
        self._context.runtime.failpoint("finishing")
        for item in batch:
            item.tries += 1
        try:
            applied = self._context.store.update(
                Named(Kind.JOB, tuple(sorted(by_job))), lambda doc, at: self._end(doc, at, by_job)
            )
        except StoreError:
            raise
        except Exception:
            self._behind_the_others(batch)
            raise
        self._most = min(2 * self._most, BATCH)
        self._context.runtime.failpoint("finished")
        replied = self._context.runtime.clock.boot()
        self._attempts.lease.observe(applied.now, asked=now, replied=replied)
        again: list[_Item] = []
        known: list[Result] = []
        for result in applied.results:
            if result.verdict in _AGAIN:
                again.extend(by_job[result.name])
            else:
                known.append(result)
        self._over([item for result in known for item in by_job[result.name]])
        for result in known:
            self._report(result, by_job[result.name], replied)
        # The claimer rests while too many outcomes wait, and perhaps no body is left whose end would wake it.
        self._context.signals.claim.place_free()
        moments = [r.doc.due_at for r in known if isinstance(r.doc, Job) and r.doc.due_at is not None]
        if moments:
            self._context.signals.claim.due(self._attempts.lease.boot_of(min(moments)))
        self._permits.flush()
        if again:
            return now + min(0.01 * 2.0 ** min(again[0].tries, 7), 1.0)
        return now if self.waiting() else now + self._context.settings.poll

    def _next_batch(self) -> list[_Item]:
        """Return what to write next, without the outcomes of a lost session."""
        with self._mutex:
            batch = self._items[: self._most]
        session = self._attempts.lease.session
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
        """Remove outcomes that are in the store, or will never be."""
        self._attempts.done(item.running for item in items)
        for item in items:
            self._permits.run_over(item.running.hold)
        gone = set(map(id, items))
        # last: an outcome that comes here once more because this was not reached is declined by the store
        with self._mutex:
            self._items = [item for item in self._items if id(item) not in gone]

    def _end(self, doc: Job | Absent, now: int, by_job: dict[str, list[_Item]]) -> Change | None:
        """End every attempt of one job that ended here; stale ones change nothing."""
        if isinstance(doc, Absent):
            return None
        job: Job | None = doc
        records: list[Record] = []
        answers: dict[tuple[str, int], str] = {}
        for item in by_job[doc.name]:
            change = None if job is None else self._ended(job, now, item)
            if change is not None:
                assert change.doc is None or isinstance(change.doc, Job)
                job = change.doc
                records.extend(change.records)
                answers[item.running.key] = change.answer
        return Change(job, tuple(records), answers) if answers else None

    def _ended(self, job: Job, now: int, item: _Item) -> Change | None:
        hold, outcome = item.running.hold, item.outcome
        if isinstance(outcome, HandOver):
            return hand_over(
                job, run=hold.run, fence=hold.fence, pickup=outcome.pickup, note=outcome.note, now=now,
                resolve=self._context.resolve,
            )  # fmt: skip
        if isinstance(outcome, NotPublished):
            return put_back(
                job, run=hold.run, fence=hold.fence, wait=outcome.wait, note=outcome.note, now=now,
                resolve=self._context.resolve,
            )  # fmt: skip
        if isinstance(outcome, HandBack):
            return hand_back(
                job, run=hold.run, fence=hold.fence, now=now, reason=outcome.reason, resolve=self._context.resolve
            )
        return finish(job, run=hold.run, fence=hold.fence, outcome=outcome, now=now, resolve=self._context.resolve)

    def _report(self, result: Result, items: list[_Item], now: float) -> None:
        answers = result.answer if result.verdict is Verdict.APPLIED else {}
        tell_recorded_twice(self._context.events, result)
        for item in items:
            if item.running.key not in answers:
                known = "another node has taken over"
                self._refused(item, known if item.tries == 1 else f"it is on record by an earlier try, or {known}")
                continue
            hold, outcome = item.running.hold, item.outcome
            if not isinstance(outcome, Outcome):
                self._report_without_body(item, answers[item.running.key])
                continue
            begun, definition = item.running.begun_at, item.running.definition
            self._context.events.emit(
                "finished", job=item.running.job, handler=definition.handler, run=hold.run, slot=hold.slot,
                attempt=hold.attempt, fence=hold.fence,
                origin=str(hold.origin), carrier=None if definition.hand_over is None else definition.run_in,
                node=self._context.settings.node, outcome=outcome.status, reason=outcome.reason, error=outcome.error,
                final=not (isinstance(result.doc, Job) and result.doc.continues(hold.run)),
                duration_s=None if begun is None else now - begun,
                exception=item.running.raised if outcome.error is not None else None,
            )  # fmt: skip
        if isinstance(result.doc, Job) and result.doc.paused is not None and PAUSED in answers.values():
            self._context.events.emit("paused", job=result.name, reason=result.doc.paused.note)

    def _report_without_body(self, item: _Item, answer: str) -> None:
        hold, job, outcome, events = item.running.hold, item.running.job, item.outcome, self._context.events
        if isinstance(outcome, HandBack):
            events.emit("handed back", job=job, run=hold.run, reason=outcome.reason)
        elif isinstance(outcome, NotPublished):
            events.emit(
                "hand-over failed", job=job, run=hold.run, attempt=hold.attempt, carrier=outcome.carrier,
                reason=outcome.note, again_in_s=outcome.wait / 1_000_000,
            )  # fmt: skip
        elif isinstance(outcome, HandOver):
            events.emit(
                "handed over", job=job, run=hold.run, attempt=hold.attempt, carrier=outcome.carrier,
                message_id=outcome.message, overtaken=answer == Handed.OVERTAKEN,
            )  # fmt: skip

    def _refused(self, item: _Item, reason: str) -> None:
        status = str(item.outcome.status) if isinstance(item.outcome, Outcome) else "handed back"
        self._attempts.lease.refused(item.running.hold.run, item.running.hold.fence, status)
        self._context.events.emit(
            "refused", job=item.running.job, run=item.running.hold.run, fence=item.running.hold.fence, outcome=status,
            reason=reason,
        )  # fmt: skip
