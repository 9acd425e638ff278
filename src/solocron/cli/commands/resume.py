"""`solocron resume`: resume a paused job, or only say what that would do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_job
from solocron.cli.exits import OK
from solocron.cli.moments import utc
from solocron.cli.opening import opened
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.views import ResumeView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what it would do")
    add_job(parser)


def execute(args: Namespace) -> int:
    """Say what will happen, then do it."""
    with opened(args) as client:
        if args.dry_run:
            plan = client.resume_preview(args.job)
            if args.json:
                return output.dump_views(plan)
            output.say(_planned(plan))
            return OK
        if not args.json:
            with suppress(InvalidError):  # a schedule of the user's own class: only its code can tell
                output.note(_planned(client.resume_preview(args.job)))
        job = client.resume(args.job)
    if args.json:
        return output.dump_views(job)
    following = f"its next slot is {utc(job.next)} UTC" if job.next else "it has no slot ahead"
    output.say(f"{args.job} is not paused; {following}")
    return OK


def _planned(plan: ResumeView) -> str:
    """Return one sentence: the slots that are left out, the runs that start, the next slot."""
    if plan.paused is None:
        return f"{plan.job} is not paused: nothing would change"
    parts = []
    if plan.skipped or plan.missed:
        count = plan.skipped + plan.missed
        span = utc(plan.last) if count == 1 else f"{utc(plan.first)} to {utc(plan.last)}"
        what = f"{plan.skipped} skipped" + (f", {plan.missed} missed" if plan.missed else "")
        parts.append(f"{count} {'slot does' if count == 1 else 'slots do'} not run ({what}: {span} UTC)")
    else:
        parts.append("no slot fell into the pause")
    parts.append(f"{plan.waiting} waiting {'run starts' if plan.waiting == 1 else 'runs start'}")
    parts.append(f"the next slot is {utc(plan.next)} UTC" if plan.next else "there is no slot ahead")
    return f"{plan.job}: " + "; ".join(parts)
