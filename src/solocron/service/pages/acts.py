"""Acts before they are done: sentences made from the preview, the fields, and one button that names the act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from solocron.effects.locks.listing import LockView
from solocron.service.pages.forms import ActPage
from solocron.service.pages.links import Links
from solocron.service.pages.parts import FormField
from solocron.service.pages.words import Reading, plural, span
from solocron.stores.contract import Check
from solocron.views import BackfillView, JobView, ResumeView, RunView

__all__ = [
    *("BackfillAsked", "backfill_act", "backfill_span", "bulk_act", "cancel_act", "cancel_backfill_act", "filled"),
    *("pause_act", "release_act", "repair_act", "rerun_act", "rerun_failed_act", "resume_act", "trigger_act"),
    "unblock_act",
]

_NOTE = FormField(name="note", label="Why", hint="kept in the audit, for everyone who looks")


_KINDS = (("missed", "only those that did not run"), ("not_well", "those that did not succeed"), ("all", "all"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillAsked:
    """The fields of a backfill, as its form shows them."""

    start: str = ""
    end: str = ""
    only: str = "missed"
    rate: str = ""
    limit: int | None = None


def filled(fields: Sequence[FormField], given: Mapping[str, object]) -> tuple[FormField, ...]:
    """Return the fields with what the reader had typed; hidden ones stay as they are made now."""
    return tuple(
        replace(one, value=typed) if one.kind != "hidden" and isinstance(typed := given.get(one.name), str) else one
        for one in fields
    )


def _hidden(**values: object) -> tuple[FormField, ...]:
    return tuple(
        FormField(name=name, label="", kind="hidden", value=str(value)) for name, value in values.items() if value != ""
    )


def pause_act(job: JobView, *, zone: str, links: Links) -> ActPage:
    """Make the page that pauses a job."""
    going = [f"{run.node} goes on with the run that it has begun." for run in job.running if run.node]
    return ActPage(
        title=f"Pause {job.name}",
        sentences=(
            "Nothing more of it starts by schedule.",
            *going,
            "Slots until it is resumed are put on record as skipped, with your note.",
        ),
        fields=(_NOTE, _until(zone), *_hidden(zone=zone)),
        action=links.job(job.name, "pause"),
        back=links.job(job.name),
    )


def _until(zone: str) -> FormField:
    return FormField(name="until", label="Until", kind="datetime", hint=f"in {zone}; empty: until it is resumed")


def resume_act(preview: ResumeView, *, reading: Reading, links: Links) -> ActPage:
    """Make the page that resumes a job; a pause that is another one by then is not lifted."""
    said = [] if preview.paused else ["It has no pause of its own."]
    if preview.skipped:
        said.append(f"{plural(preview.skipped, 'slot')} {_are(preview.skipped)} put on record as skipped.")
    if preview.missed:
        said.append(
            f"{plural(preview.missed, 'slot')} since the pause ended {_are(preview.missed)} put on record as missed."
        )
    if preview.waiting:
        verb = "starts" if preview.waiting == 1 else "start"
        said.append(f"{plural(preview.waiting, 'run')} that waited {verb} at once.")
    said.append(f"The next slot is {reading.stamp(preview.next)}." if preview.next else "It has no further slot.")
    seen = "" if preview.paused is None else preview.paused.at.isoformat()
    return ActPage(
        title=f"Resume {preview.job}",
        sentences=tuple(said),
        fields=(_NOTE, *_hidden(seen=seen)),
        action=links.job(preview.job, "resume"),
        back=links.job(preview.job),
    )


def trigger_act(job: JobView, *, payload: str, key: str, links: Links) -> ActPage:
    """Make the page that runs a job now; `key` makes a double click one run."""
    said = ["One run is added, beside those of the schedule."]
    if job.orphaned:
        said.append(f"It waits: no live node of pool {job.pool} has the handler {job.handler}.")
    elif job.running and job.overlap.kind != "allow":
        said.append(
            f"A run is under way on {job.running[0].node}: the overlap {job.overlap} decides about the new one."
        )
    return ActPage(
        title=f"Run {job.name} now",
        sentences=tuple(said),
        fields=(
            FormField(name="payload", label="Payload, as JSON", kind="area", value=payload),
            _NOTE,
            *_hidden(key=key),
        ),
        action=links.job(job.name, "trigger"),
        back=links.job(job.name),
    )


def rerun_act(job: str, slot: datetime, *, key: str, reading: Reading, links: Links) -> ActPage:
    """Make the page that runs a slot again."""
    return ActPage(
        title=f"Run {job} again",
        sentences=(
            f"The slot of {reading.day(slot)}, {reading.time(slot)} runs once more, with the same slot and a new key.",
            "What it did before stays on record.",
        ),
        fields=(_NOTE, *_hidden(slot=slot.isoformat(), key=key)),
        action=links.job(job, "rerun"),
        back=links.job(job, slot=slot.isoformat()),
    )


def rerun_failed_act(job: str, *, key: str, zone: str, links: Links) -> ActPage:
    """Make the page that runs every slot again that failed since an instant."""
    return ActPage(
        title=f"Run what failed of {job} again",
        sentences=("Every slot that failed since then runs once more.", "What they did before stays on record."),
        fields=(
            FormField(name="failed_since", label="Since", kind="datetime", required=True, hint=f"in {zone}"),
            _NOTE,
            *_hidden(key=key, zone=zone),
        ),
        action=links.job(job, "rerun"),
        back=links.job(job),
    )


def backfill_span(job: str, asked: BackfillAsked, *, zone: str, links: Links) -> ActPage:
    """Make the page that asks for the span of a backfill; nothing starts before the next one."""
    return ActPage(
        title=f"Backfill {job}",
        sentences=("Choose a span: the next page says how many slots it has, and nothing starts before.",),
        fields=(
            FormField(name="start", label="From", kind="datetime", required=True, value=asked.start, hint=f"in {zone}"),
            FormField(name="end", label="To", kind="datetime", required=True, value=asked.end, hint="itself left out"),
            FormField(name="only", label="Which slots", kind="select", value=asked.only, choices=_KINDS),
            FormField(name="rate", label="Rate", value=asked.rate, hint="for example 10/m"),
            *_hidden(zone=zone),
        ),
        action=links.job(job, "backfill"),
        back=links.job(job),
        method="get",
        button="Show what it would do",
    )


def backfill_act(
    preview: BackfillView, asked: BackfillAsked, *, ran: int, key: str, zone: str, reading: Reading, links: Links
) -> ActPage:
    """Make the page of a backfill, which says what would happen."""
    job = preview.job
    pace = "" if preview.rate is None else f" At that rate it takes {span(preview.rate * preview.total)}."
    which = dict(_KINDS)[asked.only]
    already = f"; {ran} of them ran already" if asked.only != "missed" else ""
    said = (
        f"{plural(preview.total, 'slot')} from {reading.stamp(preview.first)} to {reading.stamp(preview.last)}, "
        f"{which}{already}.{pace}",
        "Live slots go first.",
    )
    limit = "" if asked.limit is None else asked.limit
    return ActPage(
        title=f"Backfill {job}",
        sentences=said,
        fields=(
            _NOTE,
            *_hidden(
                start=asked.start, end=asked.end, only=asked.only, rate=asked.rate, limit=limit, zone=zone, key=key
            ),
        ),
        action=links.job(job, "backfill"),
        back=links.job(job, "backfill", start=asked.start, end=asked.end, only=asked.only, rate=asked.rate, zone=zone),
    )


def cancel_act(run: RunView, *, beat_s: float, reading: Reading, links: Links) -> ActPage:
    """Make the page that cancels a run."""
    said = f"{run.node} is asked to stop it with its next beat, within {span(beat_s)}."
    if run.status == "waiting":
        said = "It has not begun; it is taken from the runs that wait."
    elif run.status != "running":
        said = f"It is over already: {run.status.replace('_', ' ')}."
    return ActPage(
        title=f"Cancel {run.job} of {reading.stamp(run.slot)}",
        sentences=(said, "It is put on record as cancelled, with your reason."),
        fields=(FormField(name="reason", label="Why"),),
        action=links.run(run.run, "cancel"),
        back=links.run(run.run),
    )


def cancel_backfill_act(backfill: BackfillView, *, reading: Reading, links: Links) -> ActPage:
    """Make the page that cancels what is left of a backfill."""
    assert backfill.id is not None
    waiting, running = plural(backfill.waiting, "slot"), plural(backfill.running, "run")
    said = [
        f"{waiting} from {reading.stamp(backfill.first)} to {reading.stamp(backfill.last)} {_are(backfill.waiting)} "
        "not run, and put on record as cancelled, with your reason."
    ]
    if backfill.running:
        said.append(f"{running} of it under way {_are(backfill.running)} asked to stop.")
    said.append("What has ended stays as it is.")
    return ActPage(
        title=f"Cancel the backfill of {backfill.job}",
        sentences=tuple(said),
        fields=(FormField(name="reason", label="Why"),),
        action=links.run(backfill.id, "cancel"),
        back=links.job(backfill.job),
    )


def release_act(lock: LockView, *, reading: Reading, links: Links) -> ActPage:
    """Make the page that takes a lock from its holder."""
    who = lock.owner or "its holder"
    said = [f"{who} loses the lock, and finds out at its next write or check.", "The next one gets a higher fence."]
    if lock.state not in ("held", "orphaned"):
        said = [f"No owner holds it at present: it is {lock.state}."]
    if lock.waiting:
        said.append(f"{plural(lock.waiting, 'caller')} {'waits' if lock.waiting == 1 else 'wait'} for it.")
    return ActPage(
        title=f"Release {lock.name}",
        sentences=tuple(said),
        fields=(
            FormField(name="reason", label="Why", required=True, hint="stays on record"),
            FormField(name="typed", label="The name of the lock", required=True, hint=f"type {lock.name}"),
            *_hidden(fence=lock.fence),
        ),
        action=links.lock(lock.name, "release"),
        back=links.to("/locks"),
    )


def unblock_act(kind: str, document: str, *, links: Links) -> ActPage:
    """Make the page that lets a document take part again."""
    return ActPage(
        title=f"Try {document} again",
        sentences=(f"The {kind} {document} was set aside because it could not be read; it is tried again at once.",),
        fields=(),
        action=links.set_aside(kind, document),
        back=links.to("/doctor"),
    )


def repair_act(checks: Sequence[Check], *, links: Links) -> ActPage:
    """Make the page that repairs what a sweeper would repair by itself."""
    bad = [check.name for check in checks if check.level != "OK"]
    return ActPage(
        title="Repair the namespace",
        sentences=(
            f"Not well at present: {', '.join(bad)}." if bad else "Every check is well at present.",
            "Documents that were set aside are tried again. The runs of nodes that are dead are taken over.",
            "A node that is silent is watched for a whole lease first, and ended only if it did not renew it: this may "
            "take half a minute.",
            "No record is changed, and no live node is touched.",
        ),
        fields=(),
        action=links.to("/doctor/repair"),
        back=links.to("/doctor"),
    )


def bulk_act(action: str, names: tuple[str, ...], *, zone: str, links: Links) -> ActPage:
    """Make the page that pauses or resumes many jobs, each for itself."""
    listed = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    said = (
        ("Nothing more of them starts by schedule.", "Their slots until then are put on record as skipped.")
        if action == "pause"
        else ("Slots of their pauses are put on record as skipped; runs that waited start.",)
    )
    until = (_until(zone),) if action == "pause" else ()
    return ActPage(
        title=f"{action.capitalize()} {plural(len(names), 'job')}",
        sentences=(f"{listed}.", *said),
        fields=(_NOTE, *until, *_hidden(action=action, jobs=" ".join(names), zone=zone)),
        action=links.to("/bulk"),
        back=links.jobs(),
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
