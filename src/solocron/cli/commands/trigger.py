"""`solocron trigger`: run a job now or at an instant, and wait for its end if asked."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from solocron.cli import output
from solocron.cli.arguments import FOREVER, add_job
from solocron.cli.auditing import audited
from solocron.cli.author import add_author, author_of
from solocron.cli.exits import FAILED, OK
from solocron.cli.moments import later
from solocron.cli.opening import opened
from solocron.cli.rendering import describe_run
from solocron.cli.scopes import held_back
from solocron.clock import from_us
from solocron.errors import InvalidError, WaitTimeout
from solocron.model.documents.run import GOOD

if TYPE_CHECKING:
    from solocron.client import Client
    from solocron.views import RunView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--payload", metavar="JSON", help="what the run gets to see as its payload")
    parser.add_argument("--at", metavar="INSTANT", help="not now but then, or after a time such as 10m")
    parser.add_argument("--key", metavar="KEY", help="the same key twice is one run")
    parser.add_argument("--shard", metavar="SHARD", help="of a sharded job, only this shard")
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        nargs="?",
        const=FOREVER,
        help="wait for its end; exit 1 if it fails, 6 if too long",
    )
    add_author(parser, "asks for it")
    add_job(parser)


def execute(args: Namespace) -> int:
    payload = _payload(args.payload)
    limit = _seconds(args.wait)
    with opened(args) as client:
        at = None if args.at is None else later(args.at, "--at", client.store.clock())
        if at is not None and at < from_us(client.store.clock()):
            output.note(f"--at {args.at} is in the past: the run starts as soon as it can")
        with audited(client, args, args.job):
            args.run = client.trigger(
                args.job, payload, at=at, key=args.key, shard=args.shard, by=author_of(args), note=args.note
            )
        job = client.get_job(args.job)
        if job.orphaned:
            output.note(f"no live node can run {args.job}; the run waits for one")
        if kept := held_back(job):
            output.note(kept)
        if args.wait is not None:
            return _wait(client, args, limit)
        if args.json:
            return output.dump({"run": args.run})
        output.say(args.run)
    return OK


def _payload(given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise InvalidError(
            f"--payload is not JSON ({error}); nothing was triggered. Quote it: --payload '{{\"a\": 1}}'"
        ) from None


def _seconds(given: str | None) -> float | str | None:
    """Return how long to wait; None for as long as it takes."""
    if given is None or given == FOREVER:
        return None
    try:
        return float(given)
    except ValueError:
        return given


def _wait(client: Client, args: Namespace, limit: float | str | None) -> int:
    try:
        with output.waiting(f"waiting for {args.run}"):
            run = client.wait(args.run, limit)
    except WaitTimeout:
        _show(client.get_run(args.run), args)
        raise
    _show(run, args)
    return OK if run.status in GOOD else FAILED


def _show(run: RunView, args: Namespace) -> None:
    if args.json:
        output.dump_views(run)
    else:
        output.pairs(describe_run(run))
