"""Acts before they are done: sentences made from the preview, the fields, and one button that names the act."""

from __future__ import annotations

from datetime import datetime

from solocron.service.pages.forms import ActPage
from solocron.service.pages.links import Links
from solocron.service.pages.parts import FormField
from solocron.service.pages.words import Reading, plural, span
from solocron.views import BackfillView, JobView, ResumeView, RunView

__all__ = ["backfill_act", "cancel_act", "pause_act", "rerun_act", "resume_act", "trigger_act"]

_NOTE = FormField(name="note", label="Why", hint="kept in the audit, for everyone who looks")


def pause_act(job: JobView, *, links: Links) -> ActPage:
    """Make the page that pauses a job."""
    going = [f"{run.node} goes on with the run that it has begun." for run in job.running if run.node]
    return ActPage(
        title=f"Pause {job.name}",
        sentences=(
            "Nothing more of it starts by schedule.",
            *going,
            "Slots until it is resumed are put on record as skipped, with your note.",
        ),
        fields=(_NOTE, FormField(name="until", label="Until", kind="datetime", hint="empty: until it is resumed")),
        action=links.job(job.name, "pause"),
        back=links.job(job.name),
    )


def resume_act(preview: ResumeView, *, reading: Reading, links: Links) -> ActPage:
    """Make the page that resumes a job; a pause that is another one by then is not lifted."""
    said = []
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
        fields=(FormField(name="seen", label="", kind="hidden", value=seen),),
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
            FormField(name="key", label="", kind="hidden", value=key),
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
        fields=(
            _NOTE,
            FormField(name="slot", label="", kind="hidden", value=slot.isoformat()),
            FormField(name="key", label="", kind="hidden", value=key),
        ),
        action=links.job(job, "rerun"),
        back=links.job(job, slot=slot.isoformat()),
    )


def backfill_act(
    job: str, preview: BackfillView | None, *, ran: int, key: str, reading: Reading, links: Links, only: str = "missed"
) -> ActPage:
    """Make the page of a backfill; without a preview it asks for the span, with one it says what would happen."""
    said: tuple[str, ...] = ("Choose a span: the next page says how many slots it has, and nothing starts before.",)
    if preview is not None:
        span_words = f"from {reading.stamp(preview.first)} to {reading.stamp(preview.last)}"
        pace = "" if preview.rate is None else f" At that rate it takes {span(preview.rate * preview.total)}."
        said = (
            f"{plural(preview.total, 'slot')} {span_words}; {ran} of them ran already.{pace}",
            "Live slots go first.",
        )
    kinds = (("missed", "only those that did not run"), ("not_well", "those that did not succeed"), ("all", "all"))
    return ActPage(
        title=f"Backfill {job}",
        sentences=said,
        fields=(
            FormField(name="start", label="From", kind="datetime", required=True),
            FormField(name="end", label="To", kind="datetime", required=True),
            FormField(name="only", label="Which slots", kind="select", value=only, choices=kinds),
            FormField(name="rate", label="Rate", hint="for example 10/m"),
            _NOTE,
            FormField(name="key", label="", kind="hidden", value=key),
        ),
        action=links.job(job, "backfill"),
        back=links.job(job),
    )


def cancel_act(run: RunView, *, beat_s: float, reading: Reading, links: Links) -> ActPage:
    """Make the page that cancels a run."""
    said = f"{run.node} is asked to stop it with its next beat, within {span(beat_s)}."
    if run.status != "running":
        said = "It has not begun; it is taken from the runs that wait."
    return ActPage(
        title=f"Cancel {run.job} of {reading.stamp(run.slot)}",
        sentences=(said, "It is put on record as cancelled, with your reason."),
        fields=(FormField(name="reason", label="Why", required=True),),
        action=links.run(run.run, "cancel"),
        back=links.run(run.run),
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
