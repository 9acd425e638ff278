"""`solocron diff`: show before a deployment what it would change. Starts nothing and writes nothing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from solocron.cli import output
from solocron.cli.arguments import add_listing, add_target, names
from solocron.cli.exits import DIFFERENT, FAILED, OK
from solocron.cli.moments import local

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.preview.deployment import Deployed, JobDifference, Stored
    from solocron.scheduler import Scheduler

__all__ = ["add_arguments", "execute"]

_MARKS = {"added": "+", "changed": "~", "removed": "-", "orphaned": "-", "same": "!"}
"""A job that is the same is shown only for its problems."""
_LONGEST = 120


def add_arguments(parser: ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument("--pools", metavar="A,B", type=names, help="the pools that it will run (default: its own)")
    add_listing(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.overrides import Overrides
    from solocron.cli.target import scheduler_of
    from solocron.preview.deployment import compare
    from solocron.scheduler.hooks import core_of

    overrides = Overrides(store=args.store, namespace=args.namespace, pools=args.pools)
    scheduler = scheduler_of(args.target, overrides)
    core = core_of(scheduler)
    try:
        stored = _read(core.client, scheduler)
        found = compare(_program(scheduler), stored)
    finally:
        core.store.close()
    changed = [one for one in found if one.difference != "same" or one.problems]
    if args.json:
        output.dump(_as_json(core.client, found, changed))
    else:
        _print(changed, len(found))
    if any(one.problems for one in found):
        return FAILED
    return DIFFERENT if changed else OK


def _program(scheduler: Scheduler) -> Deployed:
    from solocron.preview.deployment import Deployed
    from solocron.scheduler.hooks import core_of

    settings = core_of(scheduler).settings
    return Deployed(
        registry=scheduler.registry, pools=settings.pools, revision=settings.revision, late_for=settings.late_for
    )


def _read(client: Client, scheduler: Scheduler) -> Stored:
    """Read the namespace; before the first deployment there is nothing, and that is said."""
    from solocron.calendars.revisions import Calendars
    from solocron.cli.opening import refuse_empty
    from solocron.clock import SystemClock
    from solocron.errors import EmptyStore
    from solocron.preview.deployment import Stored
    from solocron.stores.paging import iter_jobs, read_sessions

    store = client.store
    try:
        store.open(read_only=True)
        refuse_empty(store)
    except EmptyStore:
        output.note(f"namespace {store.namespace!r} of {store.url} is empty: this would be the first deployment there")
        return Stored(now=SystemClock().wall())
    calendars = Calendars(store, scheduler.registry)
    jobs, latest = list(iter_jobs(store)), calendars.latest()
    calendars.learn(jobs)
    calendars.fetch(latest.items())
    return Stored(now=store.clock(), jobs=jobs, sessions=read_sessions(store), calendars=latest)


def _print(changed: Sequence[JobDifference], total: int) -> None:
    for one in changed:
        output.say(f"{_MARKS[one.difference]} {one.job}  ({one.difference})")
        lines = [f"{field.field}: {_clipped(field.before)} -> {_clipped(field.after)}" for field in one.fields]
        if not one.fields:
            lines.append(one.schedule)
        if one.before:
            lines.append(f"next before: {_slots(one.before)}")
        if one.after:
            lines.append(f"next{' after' if one.before else ''}: {_slots(one.after)}")
        lines += [one.note] if one.note else []
        lines += [f"! {problem.kind}: {problem.text}" for problem in one.problems]
        slots = [local(slot) for slot in (*one.before, *one.after)]
        for line in lines:
            output.tell_below(line, 4, whole=slots)
    if not changed:
        output.say(f"no difference, {total} {'job' if total == 1 else 'jobs'}")
        return
    same, differ = total - len(changed), sum(one.difference != "same" for one in changed)
    counts = [f"{same} {'job is' if same == 1 else 'jobs are'} the same"]
    if differ:
        counts.append("1 differs" if differ == 1 else f"{differ} differ")
    if differ < len(changed):
        counts.append(f"{len(changed) - differ} would not run as declared")
    output.say(", ".join(counts))


def _clipped(value: str) -> str:
    """Shorten a payload; `--json` has all of it."""
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."


def _slots(slots: Sequence[datetime]) -> str:
    return ", ".join(local(slot) for slot in slots)


def _as_json(client: Client, found: Sequence[JobDifference], changed: Sequence[JobDifference]) -> dict[str, Any]:
    from solocron.views import to_json

    return {
        "store": client.store.url,
        "namespace": client.store.namespace,
        "same": len(found) - len(changed),
        "problems": sum(len(one.problems) for one in found),
        "jobs": to_json(list(changed)),
    }
