"""Runs: one row per attempt, slot and start as two times; a slot that did not run has its reason in the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from solocron.service.pages.fleet import RefusedResult
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Choices, Column, FormField, TableCell, TablePart, TableRow, badge_of
from solocron.service.pages.words import Reading, short_fence, span
from solocron.views import RunView

__all__ = ["RunsPage", "plural_status", "runs_table", "why_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage:
    """The runs of all jobs, or of those that the filters leave."""

    template: ClassVar[str] = "runs.html"
    section: ClassVar[str] = "runs"
    filters: tuple[FormField, ...]
    presets: Choices
    table: TablePart
    older: str | None
    newer: str | None
    looked: str = ""
    """How far was looked, if the page is short."""

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Runs"


def runs_table(
    runs: Sequence[RunView],
    *,
    reading: Reading,
    links: Links,
    with_job: bool,
    chosen: datetime | None = None,
    refused: Sequence[RefusedResult] = (),
    empty: str,
) -> TablePart:
    """Make the table of attempts, newest first; attempts of one run are joined.

    The status stands near the slot, so that a phone shows both. An attempt whose result was `refused` says so.
    """
    late = {(one.run, one.fence): one for one in refused}
    columns = (
        Column(title="slot"),
        *((Column(title="job"),) if with_job else ()),
        Column(title="status"),
        Column(title="started", narrow=not with_job),
        Column(title="took", right=True, narrow=not with_job),
        Column(title="attempt", right=True, narrow=False),
        Column(title="node", narrow=False),
        Column(title="fence", narrow=False),
        Column(title="why"),
    )
    rows = []
    before: RunView | None = None
    for run in runs:
        follows = before is not None and before.run == run.run and run.attempt > 0
        row = _row(run, follows=follows, reading=reading, links=links, with_job=with_job, chosen=chosen)
        came = late.get((run.run, run.fence or 0))
        rows.append(row if came is None else _marked(row, came, reading))
        before = run
    return TablePart(label="Runs", columns=columns, rows=tuple(rows), empty=empty, stacked=True)


def _row(
    run: RunView, *, follows: bool, reading: Reading, links: Links, with_job: bool, chosen: datetime | None
) -> TableRow:
    many = f", {run.count} ×" if run.count > 1 else ""
    slot = TableCell(text=reading.stamp(run.first) + many, href=links.run(run.run) if run.attempt else None)
    job = (TableCell(text=run.job, href=links.job(run.job), strong=True),) if with_job else ()
    status = TableCell(badge=badge_of(run.status, plural_status(run)))
    picked = chosen is not None and run.first <= chosen <= run.slot
    if run.claimed_at is None:
        words = run.reason or "no reason is on record"
        reason = TableCell(text=words, span=5, title=words)
        return TableRow(cells=(slot, *job, status, reason, TableCell()), chosen=picked)
    started = run.started_at or run.claimed_at
    end = run.finished_at or reading.now
    why = why_of(run)
    return TableRow(
        cells=(
            slot,
            *job,
            status,
            TableCell(text=reading.time(started, seconds=True), after=f"+{span(started - run.slot)}"),
            TableCell(text=span(end - started)),
            TableCell(text=str(run.attempt), tone="lost" if run.attempt > 1 else ""),
            TableCell(text=run.node or "–"),
            TableCell(text=short_fence(run.fence), title=str(run.fence), mono=True),
            TableCell(text=why, title=why or None, wide=True),
        ),
        chosen=picked,
        follows=follows,
    )


def _marked(row: TableRow, came: RefusedResult, reading: Reading) -> TableRow:
    """Return the row of an attempt with what its node wrote after the takeover."""
    *cells, why = row.cells
    words = f"⊗ refused at {reading.time(came.at, seconds=True)}: {came.outcome.replace('_', ' ')}"
    said = " · ".join(filter(None, (words, why.text)))
    return replace(row, cells=(*cells, replace(why, text=said, title=said)))


def plural_status(run: RunView) -> str:
    """Return the status with the number of slots that it stands for."""
    word = run.status.replace("_", " ")
    return f"{run.count:,} {word}" if run.count > 1 else word


def why_of(run: RunView) -> str:
    """Return the reason of an attempt's end: as recorded, else the last line of its error."""
    parts = [run.reason or "", (run.error or "").strip().rpartition("\n")[2]]
    if run.asked_by:
        parts.append(f"{run.origin} by {run.asked_by}" + (f": {run.note}" if run.note else ""))
    elif run.origin != "schedule":
        parts.append(run.origin)
    return " · ".join(part for part in parts if part)
