"""`solocron show`: one run with all its attempts and steps, or one job."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.exits import OK
from solocron.cli.moments import utc
from solocron.cli.opening import opened
from solocron.cli.rendering import describe_job, describe_run, runs_table
from solocron.cli.scopes import held_back
from solocron.clock import from_us

if TYPE_CHECKING:
    from solocron.effects.steps import StepView
    from solocron.views import JobView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="RUN|JOB", help="the run's id, as `solocron runs` shows it, or a job's name")
    add_listing(parser)


def execute(args: Namespace) -> int:
    """Show a job, or a run: the id of a run has an @, which no name of a job has."""
    return _run(args, args.what) if "@" in args.what else _job(args)


def _job(args: Namespace) -> int:
    with opened(args) as client:
        job = client.get_job(args.what)
        if args.json:
            return output.dump_views(job)
        output.pairs(describe_job(job))
        if job.running:
            print()
            runs_table(job.running)
    return OK


def _run(args: Namespace, id: str) -> int:
    from solocron.effects.steps import steps_of
    from solocron.views import WAITING, to_json

    with opened(args) as client:
        run = client.get_run(id)
        attempts = client.attempts(id)
        steps = steps_of(client.store, id)
        if args.json:
            return output.dump(to_json(run) | {"attempts": to_json(attempts), "steps": to_json(steps)})
        job = client.get_job(run.job) if run.status == WAITING else None
        rows = describe_run(run, now=from_us(client.store.clock()))
        output.pairs(rows if job is None else [*rows, *_waits_for(job, id)])
        if job is not None and (kept := held_back(job)):
            output.note(kept)
        if len(attempts) > 1 or (attempts and attempts[-1].attempt != run.attempt):
            print()
            runs_table(attempts)
        if steps:
            print()
            output.table(["STEP", "FINISHED (UTC)", "RESULT"], [_step_row(step) for step in steps])
    return OK


def _waits_for(job: JobView, run: str) -> list[tuple[str, str]]:
    """Return what keeps a run that waits; nothing if it began meanwhile, or is far back in the queue."""
    return [("waits for", one.why) for one in job.waits if one.run == run]


def _step_row(step: StepView) -> Sequence[str]:
    value = json.dumps(step.value, ensure_ascii=False)
    return step.name, utc(step.at), value if len(value) <= 60 else value[:57] + "..."
