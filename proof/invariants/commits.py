"""Invariants of every commit that the store accepts: a function per promise, named for its invariant."""

from __future__ import annotations

from collections.abc import Callable

from proof.invariants import limits, shards
from proof.invariants.checker import Checker, Violation, first_waiting, new_holds
from proof.invariants.pauses import intervals_over
from proof.invariants.shards import cut_to_publish, opens, slot_of
from proof.oracles.slots import fate_through
from proof.oracles.workdays import Workdays, is_left_out
from solocron.clock import SECOND, iso
from solocron.model.change import Absent, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.documents.session import Life, Session
from solocron.testing.simulation.database import Commit

__all__ = ["JOBS", "PRUNES", "SESSIONS"]

Test = Callable[..., None]


# --- claims ----------------------------------------------------------------------------------------------------------


def i1_single_live_claim(checker: Checker, commit: Commit) -> None:
    """At most one live claim of a run; a claim is granted only to a live session."""
    granted = new_holds(commit)
    if not granted or not isinstance(commit.after, Job):
        return
    runs = [hold.run for hold in commit.after.active]
    if len(runs) != len(set(runs)):
        raise Violation("I1", f"{commit.name} holds one run twice: {runs}")
    for hold in granted:
        held = checker.world.database.docs.get((Kind.SESSION, hold.session))
        if held is None or not isinstance(held[0], Session) or held[0].state is not Life.LIVE:
            raise Violation("I1", f"{hold.run} was granted to session {hold.session}, which is not live")


def i2_slot_at_most_once(checker: Checker, commit: Commit) -> None:
    """One claim per attempt, attempts one after the other, none after the last word, none beyond the budget."""
    for hold in new_holds(commit):
        last = checker.attempts.get(hold.run, 0)
        if hold.attempt != last + 1:
            raise Violation("I2", f"{hold.run} attempt {hold.attempt} was claimed after attempt {last}")
        ended = checker.ended.get((hold.run, last))
        if ended is Status.SUCCEEDED or (hold.run, 0) in checker.ended:
            raise Violation("I2", f"{hold.run} was claimed again after its last word")


def i2_nothing_started_is_handed_back(checker: Checker, commit: Commit) -> None:
    """A run that has begun waits again only on the budget of its retries."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job):
        return
    for record in commit.records:
        if not record.attempt or (record.run, record.fence) not in checker.started:
            continue
        hold = _held(before, record)
        waiting_run = next((o for o in after.waiting_runs if o.run == record.run), None)
        if hold is not None and waiting_run is not None and waiting_run.tries <= hold.tries:
            raise Violation("I2", f"{hold.run} had started and was handed back as if it had not")


def i3_fence_grows(checker: Checker, commit: Commit) -> None:
    """Fences of a job grow with every claim, over everything."""
    for hold in new_holds(commit):
        seen = checker.fences.get(commit.name, 0)
        if hold.fence <= seen:
            raise Violation("I3", f"{hold.run} was granted fence {hold.fence}, {seen} was granted before")


def i9_overlap(_: Checker, commit: Commit) -> None:
    """Never more live claims than the job allows."""
    if isinstance(commit.after, Job) and new_holds(commit):
        most = commit.after.definition.overlap.most
        slots = {slot_of(hold.run) for hold in commit.after.active}  # shards of one slot run side by side
        if len(slots) > most:
            raise Violation("I9", f"{commit.name} has live claims of {len(slots)} slots, {most} allowed")


# --- ends ------------------------------------------------------------------------------------------------------------


def i4_no_stale_write(_: Checker, commit: Commit) -> None:
    """The record of an attempt shows the very fence that stands in the document."""
    for record in commit.records:
        if record.attempt == 0:
            continue
        if not isinstance(commit.before, Job) or _held(commit.before, record) is None:
            raise Violation("I4", f"{record.run} fence {record.fence} was accepted, but is not held")


def i4_only_the_holder_ends_its_run(checker: Checker, commit: Commit) -> None:
    """As long as a session lives, only its own node ends what it holds."""
    for hold in _gone(commit):
        held = checker.world.database.docs.get((Kind.SESSION, hold.session))
        live = held is not None and isinstance(held[0], Session) and held[0].state is Life.LIVE
        if live and commit.client != hold.node:
            raise Violation("I4", f"{commit.client} ended {hold.run}, which {hold.node} holds with a live session")


def i6_one_terminal_record(checker: Checker, commit: Commit) -> None:
    """Each attempt ends once."""
    for record in commit.records:
        key = (record.run, record.attempt)
        if key in checker.ended:
            raise Violation("I6", f"{key[0]} attempt {key[1]} ended twice")


def i12_history_tells_every_transition(_: Checker, commit: Commit) -> None:
    """Every hold that goes is on record, in the same commit, and no record of an attempt is without its hold."""
    ended = sorted((record.run, record.fence) for record in commit.records if record.attempt)
    went = sorted((hold.run, hold.fence) for hold in _gone(commit))
    if ended != went:
        raise Violation("I12", f"{commit.name}: holds went {went}, on record are {ended}")
    if any(record.status is Status.RUNNING for record in commit.records):
        raise Violation("I12", f"{commit.name}: what runs is on record already")


def i14_retries_wait_no_longer_than_their_cap(_: Checker, commit: Commit) -> None:
    """A failed run is due again within the cap of its backoff."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or after.waiting_runs is before.waiting_runs:
        return
    known = {waiting_run.run for waiting_run in before.waiting_runs}
    for waiting_run in after.waiting_runs:
        if waiting_run.tries and waiting_run.run not in known:
            latest = max(max(commit.now, commit.decided) + before.definition.backoff.cap, waiting_run.slot)
            if waiting_run.ready_at > latest:
                raise Violation(
                    "I14", f"{waiting_run.run} waits until {iso(waiting_run.ready_at)}, longer than its backoff's cap"
                )


# --- slots -----------------------------------------------------------------------------------------------------------


def i5_no_slot_vanishes(checker: Checker, commit: Commit) -> None:
    """Every slot that the cursor passes waits, held, or on record."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or after.incarnation != before.incarnation:
        return
    slots = checker.slots_of(before.definition.schedule)
    if slots is None or before.removed:
        return
    passed = slots.count(before.cursor, after.cursor)
    if isinstance(slots, Workdays):  # what a calendar leaves out is on record, too
        passed += len(slots.left_out(before.cursor, after.cursor))
    told = [record for record in commit.records if record.attempt == 0 and record.origin is Origin.SCHEDULE]
    recorded = sum(record.count for record in told if "#" not in record.run)
    started = sum(1 for h in new_holds(commit) if not h.tries and h.origin is Origin.SCHEDULE and opens(before, h))
    started += sum(one.origin is Origin.SCHEDULE for one in cut_to_publish(commit))
    unbegun = {
        waiting_run.run for waiting_run in after.waiting_runs if not waiting_run.tries and "#" not in waiting_run.run
    }
    returned = sum(1 for h in _gone(commit) if h.origin is Origin.SCHEDULE and h.run in unbegun)
    if first_waiting(before) + passed + returned != first_waiting(after) + recorded + started:
        raise Violation(
            "I5",
            f"{commit.name}: {passed} slots passed, {first_waiting(before)} waiting and {returned} handed back; then "
            f"there are {first_waiting(after)} waiting, {recorded} recorded and {started} started",
        )


def i5_retries_wait(checker: Checker, commit: Commit) -> None:
    """A run that ended badly with retries left waits again; one that its caller ran itself is never repeated."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or before.removed:
        return
    for record in commit.records:
        hold = _held(before, record) if record.attempt else None
        if hold is not None and hold.final:
            if any(waiting_run.run == hold.run for waiting_run in after.waiting_runs):
                raise Violation("I5", f"{hold.run} was run by its caller, ended {record.status} and waits again")
            continue
        if hold is None or hold.cancel is not None or hold.tries >= before.definition.retries:
            continue
        if checker.answered.get((hold.run, hold.fence)) == "give up":
            continue
        status = record.status
        due = status in (Status.FAILED, Status.TIMED_OUT) or (
            status is Status.LOST and before.definition.on_crash == "retry"
        )
        if due and not any(
            waiting_run.run == hold.run and waiting_run.attempt == hold.attempt + 1
            for waiting_run in after.waiting_runs
        ):
            raise Violation("I5", f"{hold.run} ended {status} with retries left, but its next attempt is not waiting")


def i5_no_trigger_vanishes(_: Checker, commit: Commit) -> None:
    """A request waits until it is held or on record."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job):
        return
    kept = (
        {waiting_run.run for waiting_run in after.waiting_runs} | {h.run for h in after.active}
        if isinstance(after, Job)
        else set()
    )
    told = {record.run for record in commit.records}
    known = kept | told | {slot_of(run) for run in kept}  # cut into shards it is another name
    for waiting_run in before.waiting_runs:
        if waiting_run.origin is Origin.TRIGGER and not waiting_run.tries and waiting_run.run not in known:
            raise Violation("I5", f"{waiting_run.run}, which was asked for, is neither waiting nor held nor on record")


def i10_policies_are_kept(checker: Checker, commit: Commit) -> None:
    """Each slot that is decided fares as the job's policies promise, worked out independently."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or before.definition is not after.definition:
        return
    if after.cursor == before.cursor or after.incarnation != before.incarnation or commit.client == "client":
        return  # what people ask for decides slots too, but by rules of its own
    slots = checker.slots_of(before.definition.schedule)
    if slots is None:
        return
    pauses = [(at, until) for at, until, _ in intervals_over(checker, before)]
    fates = fate_through(before, slots, pauses, now=commit.decided, late_for=checker.world.late_for)
    waiting = {
        waiting_run.slot
        for waiting_run in after.waiting_runs
        if waiting_run.attempt == 1 and waiting_run.origin is Origin.SCHEDULE
    }
    held = {hold.slot for hold in new_holds(commit) if hold.origin is Origin.SCHEDULE}
    records = [record for record in commit.records if not record.attempt]
    for record in records:
        if not record.reason:
            raise Violation("I10", f"{record.run} is {record.status} without a reason")
    # One record may tell of many days off, with workdays between them; `over_calendars` looks at those.
    records = [r for r in records if r.origin is Origin.SCHEDULE and not is_left_out(r)]
    for slot, promised in fates.items():
        waiting_run = slot in waiting or slot in held or any(s.first <= slot <= s.last for s in after.waiting_ranges)
        told = [str(r.status) for r in records if (r.first or r.slot) <= slot <= r.slot]
        seen = "waiting" if waiting_run else told[0] if told else "forgotten"
        if seen != promised or (waiting_run and told):
            raise Violation("I10", f"{commit.name} slot {iso(slot)}: {promised} by its policies, but {seen} {told}")


def i11_cursor(_: Checker, commit: Commit) -> None:
    """The cursor never goes back."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or after.incarnation != before.incarnation:
        return
    if after.cursor < before.cursor:
        raise Violation("I11", f"{commit.name}: the cursor went back to {iso(after.cursor)}")


def i13_a_request_has_one_effect(checker: Checker, commit: Commit) -> None:
    """A request is one run, however often it was repeated; and no run waits without a request."""
    before, after = commit.before, commit.after
    if not isinstance(after, Job) or (isinstance(before, Job) and after.waiting_runs is before.waiting_runs):
        return
    for waiting_run in after.waiting_runs:
        if waiting_run.origin is not Origin.TRIGGER:
            continue
        run = slot_of(waiting_run.run)
        known = checker.triggered.setdefault((commit.name, after.incarnation, waiting_run.request), run)
        checker.asked[(commit.name, waiting_run.request)] = None
        if known != run:
            raise Violation("I13", f"the request {waiting_run.request} became {known} and then {run}")
    if len(checker.asked) > checker.world.clients.requests:
        raise Violation(
            "I13", f"the store has {len(checker.asked)} requests, {checker.world.clients.requests} were made"
        )


# --- sessions --------------------------------------------------------------------------------------------------------


def i4_burial_is_final(_: Checker, commit: Commit) -> None:
    """Nothing renews a session that is not live, and no renewal makes one."""
    before, after = commit.before, commit.after
    if isinstance(after, Session) and after.state is Life.LIVE:
        if isinstance(before, Session) and before.state is not Life.LIVE:
            raise Violation("I4", f"session {after.name} was renewed after its burial")
        if isinstance(before, Absent) and after.beats:
            raise Violation("I4", f"session {after.name} was made by a renewal")


def i4_only_the_owner_renews(_: Checker, commit: Commit) -> None:
    """A session is renewed by its own node and by no other."""
    before, after = commit.before, commit.after
    if not isinstance(before, Session) or not isinstance(after, Session) or after.beats == before.beats:
        return
    if commit.client != before.node:
        raise Violation("I4", f"{commit.client} renewed the session of {before.node}")


def i1_no_live_session_is_buried(checker: Checker, commit: Commit) -> None:
    """Another node buries a session only after its lease has truly passed, whatever the clocks say."""
    before, after = commit.before, commit.after
    if not isinstance(before, Session) or not isinstance(after, Session) or after.state is before.state:
        return
    # A lone pass has no node to watch for it: there the store's clock decides, as documented.
    if after.state is not Life.DEAD or commit.client == before.node or commit.client.startswith("tick"):
        return
    passed = commit.at - checker.renewed[commit.name]
    lease = before.lease / SECOND
    # Estimates of the store's clock may be off by a small step of it, and clocks run at rates of their own.
    if passed < (lease * 0.9 - 1.0) / (1 + checker.world.options.clock_rate):
        raise Violation("I1", f"{commit.client} buried {before.node} {passed:.3f} s after its last renewal")


def i5_swept_means_swept(checker: Checker, commit: Commit) -> None:
    """A session is marked as swept only when nothing names it any more."""
    after = commit.after
    if isinstance(after, Session) and after.state is Life.SWEPT:
        left = checker.world.database.held(after.name)
        if left:
            raise Violation("I5", f"session {after.name} was marked as swept, but still holds runs of {left}")


def i12_only_old_history_is_pruned(checker: Checker, record: Record, before: int) -> None:
    """Retention removes only what ended long ago."""
    world = checker.world
    young = world.database.clock() - round(world.options.keep * SECOND) + 60 * SECOND
    if record.recorded_at > young:
        raise Violation("I12", f"{record.run} attempt {record.attempt} ({record.status}) was pruned too soon")


def _gone(commit: Commit) -> list[Hold]:
    """Return the holds that are gone after a commit."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not before.active:
        return []
    if not isinstance(after, Job):
        return list(before.active)
    if after.active is before.active:
        return []
    left = {(h.run, h.fence) for h in after.active}
    return [hold for hold in before.active if (hold.run, hold.fence) not in left]


def _held(job: Job, record: Record) -> Hold | None:
    """The very hold that a record speaks of; looked up here, because the checker asks the machine nothing."""
    return next((hold for hold in job.active if (hold.run, hold.fence) == (record.run, record.fence)), None)


def _table(*tests: Test) -> dict[str, Test]:
    return {test.__name__: test for test in tests}


JOBS = _table(
    i3_fence_grows,
    i2_slot_at_most_once,
    i2_nothing_started_is_handed_back,
    i1_single_live_claim,
    i9_overlap,
    i4_no_stale_write,
    i4_only_the_holder_ends_its_run,
    i6_one_terminal_record,
    i12_history_tells_every_transition,
    i14_retries_wait_no_longer_than_their_cap,
    i11_cursor,
    i5_no_slot_vanishes,
    i5_retries_wait,
    i5_no_trigger_vanishes,
    i10_policies_are_kept,
    i13_a_request_has_one_effect,
    shards.i2_a_slot_is_cut_once,
    shards.i5_no_shard_vanishes,
    limits.i1_a_part_runs_on_its_node,
)
SESSIONS = _table(i4_burial_is_final, i4_only_the_owner_renews, i1_no_live_session_is_buried, i5_swept_means_swept)
PRUNES = _table(i12_only_old_history_is_pruned)
