"""`solocron resume`: go on with a paused job, or lift a pause of many; or only say what that would do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.auditing import audited
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import OK
from solocron.cli.host import program
from solocron.cli.moments import utc
from solocron.cli.opening import opened
from solocron.cli.scopes import add_scope, circumstances, is_scoped, jobs_under, scope_of, scope_words
from solocron.errors import InvalidError, NotFoundError

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.views import ResumeView, ScopedPauseView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what it would do")
    add_author(parser, "resumes it")
    add_scope(parser)


def execute(args: Namespace) -> int:
    """Say what will happen, then do it."""
    scoped = is_scoped(args, "nothing was resumed")
    with opened(args) as client:
        if scoped:
            return _lift(client, args)
        if args.dry_run:
            plan = client.resume_preview(args.job)
            if args.json:
                return output.dump_views(plan)
            output.tell(_planned(plan))
            return OK
        if not args.json:
            with suppress(InvalidError):  # a schedule of the user's own class: only its code can tell
                output.note(_planned(client.resume_preview(args.job)))
        with audited(client, args, args.job):
            job = client.resume(args.job, by=author_of(args), note=args.note)
    if args.json:
        return output.dump_views(job)
    following = f"its next slot is {utc(job.next)} UTC" if job.next else "it has no slot ahead"
    if job.pauses:
        following = f"it goes on when {' and '.join(one.scope for one in job.pauses)} may run again"
    output.say(f"{args.job} is not paused{' by itself any more' if job.pauses else ''}; {following}")
    return OK


def _lift(client: Client, args: Namespace) -> int:
    """Lift the pause of a scope."""
    scope, standing = scope_of(args), client.pauses()
    stands = next((one for one in standing if (one.pool, one.match) == (scope.get("pool"), scope.get("match"))), None)
    under = set() if stands is None else set(jobs_under(client, stands))
    pause = stands
    if stands is not None and not args.dry_run:
        with audited(client, args, scope_words(scope)):
            pause = client.resume_all(**scope, by=author_of(args), note=args.note)
    if pause is None and standing:
        others = ", ".join(f"{one.scope} (`{program()} resume {one.option}`)" for one in standing)
        raise NotFoundError(f"no pause of that scope stands; nothing was changed. What stands: {others}.")
    if args.json:
        return output.dump_views(pause)
    if pause is None:
        output.say("no pause of many jobs stands: nothing was changed")
        return OK
    if args.dry_run:
        told = f"{len(under)} {'job' if len(under) == 1 else 'jobs'}"
        output.say(f"{pause.scope}: paused since {utc(pause.at)} UTC {circumstances(pause)}".rstrip())
        output.say(f"{told} would go on with their next slot; {_waiting(client, under)} would start")
        return OK
    output.say(f"{pause.scope} ({len(under)} now): not paused any more")
    for job in client.jobs():
        if job.name in under and (job.paused or job.pauses):
            output.note(f"{job.name} stays paused{_also(job.pauses)}")
    return OK


def _waiting(client: Client, names: set[str]) -> str:
    count = sum(job.waiting for job in client.jobs() if job.name in names)
    return "1 waiting run" if count == 1 else f"{count} waiting runs"


def _also(pauses: tuple[ScopedPauseView, ...]) -> str:
    return f" with {' and '.join(one.scope for one in pauses)}" if pauses else " by itself"


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
