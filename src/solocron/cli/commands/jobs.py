"""`solocron jobs`: list the jobs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing as add_arguments
from solocron.cli.exits import OK
from solocron.cli.moments import local, utc
from solocron.cli.opening import opened

if TYPE_CHECKING:
    from solocron.views import JobView

__all__ = ["add_arguments", "execute"]


def execute(args: Namespace) -> int:
    with opened(args) as client:
        found = client.jobs()
        if args.json:
            return output.dump_views(found)
        if not found:
            output.note(f"no jobs in namespace {client.store.namespace!r} of {client.store.url}")
            return OK
        output.table(["JOB", "STATE", "LAST", "NEXT", "SCHEDULE", "NOTE"], [_row(job) for job in found])
    return OK


def _row(job: JobView) -> Sequence[str]:
    state, note = _state(job)
    following = local(job.next) if job.next is not None else "-"
    return job.name, state, job.last_status or "-", following, job.schedule, note


def _state(job: JobView) -> tuple[str, str]:
    """Return what a person on call needs to know first about a job: its state in a word, and what belongs to it."""
    if not job.enabled:
        return "disabled", ""
    if job.paused is not None:
        by = f"by {job.paused.by}" if job.paused.by else ""
        until = f"until {utc(job.paused.until)}" if job.paused.until else ""
        return "paused", ": ".join(filter(None, [" ".join(filter(None, [by, until])), job.paused.note]))
    if job.running:
        return "running", f"on {', '.join(sorted({str(run.node) for run in job.running}))}"
    if job.orphaned:
        return "orphaned", ""
    return (f"{job.waiting} waiting" if job.waiting else "on"), ""
