"""Asks something of a job or a run: trigger, pause, resume, cancel, remove, adopt; and `restored`, of all of them."""

from __future__ import annotations

import getpass
import json
from argparse import Namespace
from contextlib import suppress
from typing import Any

from solocron.cli import output
from solocron.cli.commands.looking import describe_run
from solocron.cli.exits import FAILED, OK, TAKEN
from solocron.cli.moments import later, utc
from solocron.cli.opening import each_namespace, opened
from solocron.cli.parser import FOREVER
from solocron.client import Client
from solocron.errors import InvalidError, StoreError, WaitTimeout
from solocron.model.documents.run import Status
from solocron.views import JobView, ResumeView, RunView, to_json

__all__ = ["adopt", "cancel", "pause", "remove", "restored", "resume", "trigger"]


def trigger(args: Namespace) -> int:
    payload = _payload(args.payload)
    limit = _seconds(args.wait)
    with opened(args) as client:
        at = None if args.at is None else later(args.at, "--at", client.store.clock())
        args.run = client.trigger(args.job, payload, at=at, key=args.key, shard=args.shard)
        if client.get_job(args.job).orphaned:
            output.note(f"no live node can run {args.job}; the run waits for one")
        if args.wait is not None:
            return _wait(client, args, limit)
        if args.json:
            return output.dump({"run": args.run})
        output.say(args.run)
    return OK


def _payload(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidError(
            f"--payload is not JSON ({error}); nothing was triggered. Quote it: --payload '{{\"a\": 1}}'"
        ) from None


def _seconds(text: str | None) -> float | str | None:
    """How long to wait; None for as long as it takes."""
    if text is None or text == FOREVER:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _wait(client: Client, args: Namespace, limit: float | str | None) -> int:
    try:
        with output.waiting(f"waiting for {args.run}"):
            run = client.wait(args.run, limit)
    except WaitTimeout:
        _tell(client.get_run(args.run), args)
        raise
    _tell(run, args)
    return OK if run.status == Status.SUCCEEDED else FAILED


def _tell(run: RunView, args: Namespace) -> None:
    if args.json:
        output.dump(to_json(run))
    else:
        output.pairs(describe_run(run))


def pause(args: Namespace) -> int:
    with opened(args) as client:
        until = None if args.until is None else later(args.until, "--until", client.store.clock())
        job = client.pause(args.job, by=args.by or _user(), note=args.note, until=until)
    end = f"until {utc(until)} UTC" if until else f"until `solocron resume {args.job}`"
    return _told(args, job, f"{args.job} is paused {end}")


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return None


def resume(args: Namespace) -> int:
    """Says what it is going to do before it does it."""
    with opened(args) as client:
        if args.dry_run:
            plan = client.resume_preview(args.job)
            if args.json:
                return output.dump(to_json(plan))
            output.say(_planned(plan))
            return OK
        if not args.json:
            with suppress(InvalidError):  # a schedule of the user's own class: only its code can tell
                output.note(_planned(client.resume_preview(args.job)))
        job = client.resume(args.job)
    following = f"its next slot is {utc(job.next)} UTC" if job.next else "it has no slot ahead"
    return _told(args, job, f"{args.job} is not paused; {following}")


def _planned(plan: ResumeView) -> str:
    """One sentence: what is left out, what starts, what comes next."""
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


def _told(args: Namespace, job: JobView, text: str) -> int:
    if args.json:
        return output.dump(to_json(job))
    output.say(text)
    return OK


def cancel(args: Namespace) -> int:
    """Over already is a conflict, except if it was cancelled: asking twice is no mistake."""
    with opened(args) as client:
        answer = client.cancel(args.run)
    if args.json:
        output.dump({"run": args.run, "answer": answer})
    elif answer == "asked":
        output.say(f"{args.run} was asked to stop; its node does so with its next beat")
    elif answer == Status.CANCELLED:
        output.say(f"{args.run} is cancelled")
    else:
        output.note(f"{args.run} is over already: {answer}; nothing was changed. See: solocron show {args.run}")
    return OK if answer in ("asked", Status.CANCELLED) else TAKEN


def remove(args: Namespace) -> int:
    with opened(args) as client:
        client.remove(args.job)
    if args.json:
        return output.dump({"job": args.job, "removed": True})
    output.say(f"{args.job} is removed; its runs stay on record")
    return OK


def adopt(args: Namespace) -> int:
    if (args.job is None) is not args.all:
        raise InvalidError("adopt wants a JOB or --all, one of them; nothing was changed.")
    with opened(args) as client:
        names = client.adopt_all() if args.all else [args.job]
        if not args.all:
            client.adopt(args.job)
        waiting = [name for name in names if client.get_job(name).orphaned]
    if args.json:
        return output.dump({"jobs": names})
    for name in names:
        when = "with the next node that declares it" if name in waiting else "within seconds"
        output.say(f"{name} gives way: what the nodes declare is written {when}")
    if not names:
        output.note("no stored definition is of a higher revision than the live nodes; nothing was changed")
    return OK


def restored(args: Namespace) -> int:
    if args.all:
        return _restored_everywhere(args)
    with opened(args) as client:
        count = client.restored()
    if args.json:
        return output.dump({"jobs": count})
    output.say(f"{count} jobs moved to now; what the backup does not know of will not run again")
    return OK


def _restored_everywhere(args: Namespace) -> int:
    """One namespace after the other; a failure says which one it was, and those before it stay moved."""
    if args.namespace is not None:
        raise InvalidError(
            "--all is every namespace, so --namespace has no meaning; nothing was changed. Give one of them."
        )
    counts: dict[str, int] = {}
    for client in each_namespace(args):
        name = client.store.namespace
        try:
            counts[name] = client.restored()
        except StoreError as error:
            raise type(error)(f"namespace {name}: {error}") from None
        if not args.json:
            output.say(f"{name}: {counts[name]} jobs moved to now; what the backup does not know of will not run again")
    if args.json:
        return output.dump({"jobs": sum(counts.values()), "namespaces": counts})
    if not counts:
        output.note("the store holds no namespace; nothing was changed")
    return OK
