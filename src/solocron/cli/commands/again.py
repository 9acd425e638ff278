"""Runs the past again: `rerun` of one slot or of all that failed, `backfill` of a range; both can be watched."""

from __future__ import annotations

from argparse import Namespace

from solocron.cli import output
from solocron.cli.exits import FAILED, OK
from solocron.cli.moments import earlier, instant, utc
from solocron.cli.opening import opened
from solocron.client import Client
from solocron.errors import InvalidError
from solocron.model.documents.run import Status
from solocron.runtime import Threads
from solocron.views import BackfillView, to_json

__all__ = ["backfill", "rerun"]


def rerun(args: Namespace) -> int:
    if (args.slot is None) == (args.failed_since is None):
        raise InvalidError("rerun: give a SLOT, or --failed-since; nothing was asked for.")
    with opened(args) as client:
        if args.slot is not None:
            runs = [client.rerun(args.job, instant(args.slot, "SLOT"), key=args.key)]
        else:
            since = earlier(args.failed_since, "--failed-since", client.store.clock())
            runs = client.rerun(args.job, failed_since=since, key=args.key)
        bad = _watch_runs(client, args, runs) if args.watch else 0
    if args.json:
        output.dump({"runs": runs})
    else:
        for run in runs:
            output.say(run)
        if not runs:
            output.note(f"no slot of {args.job} has failed since then")
    return FAILED if bad else OK


def _watch_runs(client: Client, args: Namespace, runs: list[str]) -> int:
    """How many of them did not end well."""
    bad = 0
    with output.progress(f"rerun {args.job}", len(runs)) as done:
        for number, run in enumerate(runs, 1):
            bad += client.wait(run).status != Status.SUCCEEDED
            done(number)
    return bad


def backfill(args: Namespace) -> int:
    with opened(args) as client:
        now = client.store.clock()
        view = client.backfill(
            args.job,
            earlier(args.start, "START", now),
            earlier(args.end, "END", now),
            limit=args.limit,
            rate=args.rate,
            dry_run=args.dry_run,
        )
        if client.get_job(args.job).orphaned:
            output.note(f"no live node can run {args.job}; the runs wait for one")
        if args.watch and view.id is not None:
            _watch_backfill(client, view)
    if args.json:
        return output.dump(to_json(view))
    span = f"{utc(view.first)} to {utc(view.last)} UTC"
    if view.id is None:
        output.say(f"{args.job} has {view.total} slots there: {span}")
    else:
        output.say(view.id)
        output.note(f"{view.total} slots of {args.job}: {span}. Stop it with: solocron cancel {view.id}")
    return OK


def _watch_backfill(client: Client, view: BackfillView) -> None:
    """Until nothing of it waits or runs; live slots go first, so that it may take its time."""
    pause = Threads().event()
    with output.progress(f"backfill {view.job}", view.total) as done:
        while True:
            left = [one for one in client.backfills(view.job) if one.id == view.id]
            running = client.backfill_running(view)
            if not left and not running:
                done(view.total)
                return
            done(view.total - running - sum(one.waiting for one in left))
            pause.wait(0.2)
