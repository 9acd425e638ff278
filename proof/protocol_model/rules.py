"""Rules that no step of the protocol model may break: claims, attempts, fences, stale writes, cursor and log."""

from __future__ import annotations

from proof.explorer import Wrong
from proof.protocol_model.state import TICK, Log, Request
from solocron.model.change import Change
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status

__all__ = ["check", "written"]


def check(before: Job, request: Request, change: Change, what: str, *, slots: tuple[int, ...], retries: int) -> None:
    """Raise `Wrong` if a change of the job breaks a rule."""
    after = change.doc
    assert isinstance(after, Job)
    if len(after.active) > after.definition.overlap.most:
        raise Wrong("I1, I9: two live claims", what)
    old = {hold.fence for hold in before.active}
    if after.fence < before.fence or any(h.fence <= before.fence for h in after.active if h.fence not in old):
        raise Wrong("I3: the fence does not grow", what)
    if request.op == "finish":
        stands = any((hold.run, hold.fence) == (request.run, request.fence) for hold in before.active)
        if stands != (after is not before):
            raise Wrong("I4: a stale write had an effect, or a rightful one had none", what)
    if after.cursor < before.cursor:
        raise Wrong("I11: the cursor goes back", what)
    waiting = {one.slot for one in after.active} | {one.slot for one in after.waiting_runs}
    recorded = {record.slot for record in change.records}
    for slot in slots:
        spanned = any(waiting_range.first <= slot <= waiting_range.last for waiting_range in after.waiting_ranges)
        if before.cursor < slot <= after.cursor and slot not in waiting | recorded and not spanned:
            raise Wrong("I11: the cursor passes a slot without a word", what)
    for hold in after.active:
        if hold.attempt > 1 + retries:
            raise Wrong("I20: more attempts than were allowed", what)


def written(log: Log, before: Job, change: Change, what: str) -> Log:
    """Return the log with the records of a change; what is claimed or ends once more after its end is wrong."""
    assert isinstance(change.doc, Job)
    rows = list(log)
    for record in change.records:
        for slot in range((record.first or record.slot) // TICK - 1, record.slot // TICK):
            row = rows[slot]
            if row and row[-1] is not Status.LOST:
                raise Wrong("I6: an attempt ends twice, or a slot is recorded again after its end", what)
            if record.attempt not in (0, len(row) + 1):
                raise Wrong("I2: attempts do not count up by one", what)
            rows[slot] = (*row, record.status)
    old = {hold.fence for hold in before.active}
    for hold in change.doc.active:
        row = rows[hold.slot // TICK - 1]
        if hold.fence not in old and row and row[-1] is not Status.LOST:
            raise Wrong("I2: a slot is claimed again after its end", what)
        if hold.fence not in old and hold.attempt != len(row) + 1:
            raise Wrong("I2: attempts do not count up by one", what)
    return tuple(rows)
