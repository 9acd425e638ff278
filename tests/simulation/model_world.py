"""What must hold of any history of the pure machine, each invariant of the reliability rules as one checker.

A checker yields a sentence for everything that is wrong, and nothing for a sound history. The checkers know the rules,
not the machine: they walk slots one by one and keep their own books.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from solocron.clock import MILLISECOND
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin, Status
from solocron.model.documents.session import Life, Session
from solocron.model.refusals import Refusal
from solocron.model.routing import ELSEWHERE
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, Needs, claim
from tests.simulation.model_history import (
    LATE_FOR,
    QUEUE,
    Commit,
    Tale,
    Which,
    World,
    books,
    covered,
    resolve,
    small_queues,
    waiting,
)
from tests.simulation.model_oracle import expected

__all__ = ["CHECKERS", "Broken", "check"]


class Broken(AssertionError):
    """An invariant does not hold; `name` is which, such as "i4"."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


def i1_single_live_claim(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """At no moment do two claims on one slot stand."""
    for which, tale in tales.items():
        if tale.most_held > 1:
            yield f"{which} was held {tale.most_held} times at once"
    for commit in world.commits:
        if isinstance(commit.after, Job):
            slots = [(hold.origin, hold.slot, hold.request, hold.shard) for hold in commit.after.active]
            if len(slots) != len(set(slots)):
                yield f"{commit.name} holds one slot twice"


def i2_slot_at_most_once(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """Attempts count 1, 2, 3; nothing is claimed again once its last word is on record."""
    for which, tale in tales.items():
        attempts = [attempt for attempt, _ in tale.opened]
        if attempts != list(range(1, len(attempts) + 1)):
            yield f"{which} was attempted as {attempts}"
        if tale.claimed_when_over:
            yield f"{which} was claimed after it had ended"


def i3_fence_monotone(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """Fences of a job grow with every claim and takeover; being at least the store's milliseconds, they also grow over
    a removal, unless the clock is behind."""
    highest: dict[tuple[str, int], int] = defaultdict(int)
    for commit in world.commits:
        if commit.jobs is None:
            continue
        before, after = commit.jobs
        scope = (commit.name, after.incarnation)
        for claimed in commit.claims:
            fence = claimed.fence
            if fence <= highest[scope] or fence < commit.at // MILLISECOND:
                yield f"{commit.name} granted fence {fence} at {commit.at}, after {highest[scope]}"
            highest[scope] = max(fence, highest[scope])
        if after.fence < before.fence:
            yield f"the fence of {commit.name} went back"
        if commit.verb == "take over" and after.fence <= highest[scope]:
            yield f"{commit.name}: a takeover left fence {after.fence}, which was handed out before"


def i4_no_stale_write(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """A finish or hand-back counts exactly if its hold stands just before; a renewal only if not buried."""
    for commit in world.commits:
        if commit.verb in ("finish", "hand back"):
            run, fence = commit.asked["run"], commit.asked["fence"]
            holds = commit.before.active if isinstance(commit.before, Job) else ()
            stands = any(hold.run == run and hold.fence == fence for hold in holds)
            effect = commit.after is not commit.before or bool(commit.records)
            if stands != effect:
                yield f"{commit.verb} of ({run}, {fence}): its hold stood is {stands}, it had an effect is {effect}"
        buried = isinstance(commit.before, Session) and commit.before.state is not Life.LIVE
        if commit.verb in ("begin", "renew") and commit.accepted and buried:
            yield f"session {commit.name} was revived"


def i5_nothing_lost(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """After the heal every slot and shard has its last word, nothing is held, and what was due is decided."""
    cut = {(name, incarnation, what.partition("#")[0]) for name, incarnation, what in tales if "#" in what}
    for which, tale in tales.items():
        if tale.waits or not (tale.passed or tale.closed) or tale.held:
            yield f"{which} has no last word"
    for commit in world.commits:
        for slot in _passed(commit):
            assert isinstance(commit.before, Job)
            which = (commit.name, commit.before.incarnation, f"slot {slot}")
            if which not in tales and which not in cut:
                yield f"slot {slot} of {commit.name} is not in the log"
        hold = commit.answer
        if isinstance(hold, Hold) and hold.shards is not None and hold.origin is Origin.SCHEDULE:
            assert isinstance(commit.before, Job)
            for label in range(hold.shards if isinstance(hold.shards, int) else len(hold.shards)):
                if (commit.name, commit.before.incarnation, f"slot {hold.slot}#{label}") not in tales:
                    yield f"shard {label} of slot {hold.slot} of {commit.name} is not in the log"
    for job in world.jobs.values():
        if job.active or job.waiting:
            yield f"{job.name} still has {len(job.active)} held and {job.waiting} waiting"
        following = resolve(job.definition.schedule).after(job.cursor)
        if job.paused is None and job.definition.enabled and following is not None and following <= world.now:
            yield f"{job.name} has not decided {following}"


def i6_one_terminal_record(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """No attempt ends twice, and what is over has exactly one last word (being handed back is none)."""
    for which, tale in tales.items():
        ended = [attempt for attempt, _ in tale.closed]
        if len(ended) != len(set(ended)):
            yield f"{which}: an attempt ended twice, {ended}"
        # One that was handed back after its end was asked for is not waiting again: that is its last word.
        words = len(tale.passed) + any(
            commit.verb != "hand back" or not (isinstance(commit.after, Job) and waiting(commit.after, which))
            for _, commit in tale.closed
        )
        if not tale.waits and words != 1:
            yield f"{which} has {words} last words: {[record.status for record in tale.passed]} {ended}"


def i9_overlap(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """A claim finds fewer runs than may run at once; nothing else ever adds one."""
    for commit in world.commits:
        if commit.jobs is None:
            continue
        before, after = commit.jobs
        running, known = _slots(after), _slots(before)
        if running - known and len(known) >= before.definition.overlap.most:
            yield f"{commit.name}: {len(after.active)} run at once, {before.definition.overlap} allows fewer"
        if len(after.active) > len(before.active) + (commit.verb == "claim"):
            yield f"{commit.name}: {commit.verb} added a hold"


def _slots(job: Job) -> set[str]:
    """The slots and requests of which something runs: shards count as one."""
    return {hold.run.partition("#")[0] for hold in job.active}


def i10_catch_up_complete(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """Each slot that a commit decides ends as a naive walk over the slots says by the job's policies."""
    for commit in world.commits:
        before, after = commit.before, commit.after
        if not isinstance(before, Job) or before.removed or not (isinstance(after, Job) or commit.verb == "remove"):
            continue
        asleep = before.paused is not None or not before.definition.enabled
        upto = after.cursor if isinstance(after, Job) else before.cursor if asleep else commit.at
        should = expected(before, resolve, verb=commit.verb, now=commit.at, late_for=LATE_FOR, upto=upto, queue=QUEUE)
        did = _decided(commit, should) if should else {}
        if did != should:
            wrong = {slot: (did.get(slot), should[slot]) for slot in should if did.get(slot) != should[slot]}
            yield f"{commit.name} at {commit.at} ({commit.verb}, {before.definition}): slot -> (is, should be) {wrong}"


def _decided(commit: Commit, slots: Collection[int]) -> dict[int, str]:
    """What a commit made of these slots: "waiting" or the status under which it recorded them."""
    before, after = commit.before, commit.after
    assert isinstance(before, Job)
    found: dict[int, str] = {}
    slots = set(slots)
    for record in commit.records:
        if record.attempt == 0 and record.origin is Origin.SCHEDULE:
            for _, _, what in covered(before, record, before):
                if "#" not in what and int(what[5:]) in slots:
                    found[int(what[5:])] = str(record.status)
    if isinstance(after, Job):
        for slot in slots:
            if slot not in found and waiting(after, (after.name, after.incarnation, f"slot {slot}")):
                found[slot] = "waiting"
    return found


def i11_cursor(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """The cursor never goes back, and each move leaves every slot passed on record, waiting or held in one step."""
    for commit in world.commits:
        if commit.jobs is None:
            continue
        before, after = commit.jobs
        if after.cursor < before.cursor:
            yield f"the cursor of {commit.name} went back by {before.cursor - after.cursor}"
        passed = _passed(commit)
        decided = _decided(commit, passed) if passed else {}
        missing = [slot for slot in passed if slot not in decided]
        if missing:
            yield f"{commit.name} ({commit.verb}) passed {len(missing)} slots without a word, the first {missing[0]}"


def _passed(commit: Commit) -> list[int]:
    """The slots that the cursor passes in a commit; a removed job has none."""
    found: list[int] = []
    if commit.jobs is None or commit.jobs[0].removed:
        return found
    before, after = commit.jobs
    slots, slot = resolve(before.definition.schedule), before.cursor
    while after.cursor > before.cursor and (slot := slots.after(slot) or after.cursor + 1) <= after.cursor:
        found.append(slot)
    return found


def i12_history(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """The log is append-only: one record of each attempt, of the claim that it ends, stamped with its commit."""
    log: set[tuple[str, int]] = set()
    for commit in world.commits:
        held = {hold.fence: hold for hold in commit.before.active} if isinstance(commit.before, Job) else {}
        for record in commit.records:
            where = (record.run, record.attempt)
            if where in log:
                yield f"{where} is recorded twice"
            log.add(where)
            hold = held.get(record.fence)
            if record.attempt and (hold is None or (hold.run, hold.attempt, hold.slot) != (*where, record.slot)):
                yield f"{where} ended, which was not held"
            if record.recorded_at != commit.at and record.attempt:
                yield f"{where} is stamped {record.recorded_at} in a commit of {commit.at}"
            if record.status is Status.RUNNING:
                yield f"{where} is recorded as running"


def i13_request_idempotence(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """The same request is the same run and has no second effect; so has a finish that was accepted before."""
    answers: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    finished: set[tuple[str, int, int]] = set()
    for commit in world.commits:
        if not isinstance(commit.before, Job):
            continue
        scope = (commit.name, commit.before.incarnation)
        if commit.verb == "trigger" and commit.answer is not None and not isinstance(commit.answer, Refusal):
            known = answers[scope]
            request = commit.asked["request"]
            if request in list(known)[-32:]:
                if commit.answer != known[request] or commit.after is not commit.before:
                    yield f"{commit.name}: request {request} answered {commit.answer}, was {known[request]}"
            else:
                known.pop(request, None)
                known[request] = commit.answer
        if commit.verb == "finish" and commit.accepted:
            effect = (*scope, commit.asked["fence"])
            if effect in finished and (commit.after is not commit.before or commit.records):
                yield f"{commit.name}: the finish of fence {commit.asked['fence']} had a second effect"
            finished.add(effect)


def i15_not_early(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """By the store's clock nothing is claimed before its slot, not even after the clock stepped back."""
    for commit in world.commits:
        for claimed in commit.claims:
            if claimed.slot > commit.at:
                yield f"{commit.name} claimed {claimed.slot} at {commit.at}"


def i16_key_stability(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """One key for all attempts of a run, another for every other run of the job."""
    owners: dict[str, Which] = {}
    for which, tale in tales.items():
        if len(tale.keys) > 1:
            yield f"{which} has the keys {sorted(tale.keys)}"
        for key in tale.keys:
            other = owners.setdefault(key, which)
            if (other[0], other[2]) != (which[0], which[2]):
                yield f"{which} and {other} share the key {key}"


def i18_schedule_determinism(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """Another node makes the same of the same document at the same time."""
    other = Claimant(session="other", node="other", late_for=LATE_FOR)
    for commit in world.commits:
        if commit.verb != "claim" or not isinstance(commit.before, Job):
            continue
        by = commit.asked["by"]
        theirs_by = replace(other, sessions=by.sessions, permit=by.permit)
        made = claim(commit.before, now=commit.at, by=theirs_by, resolve=resolve)
        theirs = _anonymous(commit.before if made is None else made.doc)
        placed = commit.before.definition.nodes or commit.before.definition.prefer
        bound = any(waiting_run.only for waiting_run in commit.before.waiting_runs)
        if not by.alone or placed or bound:  # whose turn it is depends on who asks, what becomes of the slots does not
            one, two = (doc if isinstance(doc, Job) else commit.before for doc in (theirs, commit.after))
            if (one.cursor, one.nominal, one.paused) != (two.cursor, two.nominal, two.paused):
                yield f"{commit.name} at {commit.at}: two nodes decide differently"
            continue
        if theirs != _anonymous(commit.after) or (made is not None and len(made.records) != len(commit.records)):
            yield f"{commit.name} at {commit.at}: two nodes decide differently"


def _anonymous(doc: object) -> object:
    """A job without the names of who holds it."""
    if not isinstance(doc, Job):
        return doc
    return replace(doc, active=tuple(replace(hold, session="", node="") for hold in doc.active))


def i20_no_storm(world: World, tales: Mapping[Which, Tale]) -> Iterator[str]:
    """Bodies start at most 1 + retries times a run; a claim is made only when due, and what gave nothing is not due."""
    retries: dict[str, int] = defaultdict(int)
    for commit in world.commits:
        if isinstance(commit.after, Job):
            retries[commit.name] = max(retries[commit.name], commit.after.definition.retries)
        if commit.verb != "claim" or commit.jobs is None:
            continue
        before, after = commit.jobs
        due = before.due_at is not None and before.due_at <= commit.at
        if isinstance(commit.answer, Later):
            if not commit.at < commit.answer.until <= commit.at + ELSEWHERE:
                yield f"{commit.name} at {commit.at} is to be looked at again at {commit.answer.until}"
            continue
        if isinstance(commit.answer, Needs):
            continue
        if (commit.answer is not None or before.cursor != after.cursor) and not due:
            yield f"{commit.name} at {commit.at} had something to decide, but was due only at {before.due_at}"
        if commit.answer is None and after.due_at is not None and after.due_at <= commit.at:
            yield f"{commit.name} at {commit.at} gave nothing and is still due at {after.due_at}"
    for which, tale in tales.items():
        if tale.started > 1 + retries[which[0]]:
            yield f"{which} was started {tale.started} times with {retries[which[0]]} retries"


Checker = Callable[[World, Mapping[Which, Tale]], Iterator[str]]

CHECKERS: dict[str, Checker] = {
    checker.__name__.partition("_")[0]: checker
    for checker in (
        i1_single_live_claim, i2_slot_at_most_once, i3_fence_monotone, i4_no_stale_write, i5_nothing_lost,
        i6_one_terminal_record, i9_overlap, i10_catch_up_complete, i11_cursor, i12_history, i13_request_idempotence,
        i15_not_early, i16_key_stability, i18_schedule_determinism, i20_no_storm,
    )
}  # fmt: skip


def check(world: World, *names: str) -> None:
    """Raise `Broken` for the first thing that is wrong by these invariants, or by any."""
    tales = books(world)
    with small_queues():
        for name in names or CHECKERS:
            for what in CHECKERS[name](world, tales):
                raise Broken(name, what)
