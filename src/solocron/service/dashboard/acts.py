"""The forms of the acts: each shows what it will do before it does it, and posts to its own address.

The act itself is the function of the API, with the same audit. What is refused comes back as the same form with the
reason, so that the reader can decide anew.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from solocron.errors import InvalidError, NotFoundError, SolocronError
from solocron.model.documents.run import job_of
from solocron.schedules import load_zone
from solocron.service.api import commands, doctor
from solocron.service.call import ApiCall, Redirect, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.pages import acts
from solocron.service.pages.forms import ActPage
from solocron.service.problems import ProblemError, problem_of
from solocron.service.shown import redacted
from solocron.service.zones import checked_zone
from solocron.views import BackfillView, to_json

__all__ = [
    *("ask_backfill", "ask_bulk", "ask_cancel", "ask_pause", "ask_release", "ask_repair", "ask_rerun", "ask_resume"),
    *("ask_trigger", "ask_unblock", "backfill", "bulk", "cancel", "pause", "release", "repair", "rerun", "resume"),
    *("trigger", "unblock"),
]

Ask = Callable[[ApiCall], ShownPage]


def ask_trigger(call: ApiCall) -> ShownPage:
    """Show what a run now would do."""
    job = call.reads.job(call.names["job"])
    look = Look.at(call, own=job.zone)
    payload = json.dumps(redacted(to_json(job.payload)), ensure_ascii=False) if call.sees_values else ""
    page = acts.trigger_act(job, payload="" if job.payload is None else payload, key=_new_key(), links=look.links)
    return _asked(look, page)


def trigger(call: ApiCall) -> Redirect | ShownPage:
    """Run a job now."""

    def act(look: Look) -> str:
        body = {**call.body, "payload": _payload(call.body["payload"]), "at": None, "shard": None}
        made = commands.trigger(replace(call, body=body))
        return look.links.run(made.value.run, done="triggered")

    return _done(call, ask_trigger, act)


def ask_pause(call: ApiCall) -> ShownPage:
    """Show what a pause would do."""
    job = call.reads.job(call.names["job"])
    look = Look.at(call, own=job.zone)
    return _asked(look, acts.pause_act(job, zone=look.zone, links=look.links))


def pause(call: ApiCall) -> Redirect | ShownPage:
    """Pause a job."""

    def act(look: Look) -> str:
        commands.pause(replace(call, body={**call.body, "until": _instant(call, "until")}))
        return look.links.job(call.names["job"], done="paused")

    return _done(call, ask_pause, act)


def ask_resume(call: ApiCall) -> ShownPage:
    """Show what a resume would do."""
    job = call.reads.job(call.names["job"])
    look = Look.at(call, own=job.zone)
    return _asked(look, acts.resume_act(call.reads.resume_preview(job.name), reading=look.reading, links=look.links))


def resume(call: ApiCall) -> Redirect | ShownPage:
    """Resume a job."""

    def act(look: Look) -> str:
        commands.resume(call)
        return look.links.job(call.names["job"], done="resumed")

    return _done(call, ask_resume, act)


def ask_rerun(call: ApiCall) -> ShownPage:
    """Show what running a slot again would do."""
    name = call.names["job"]
    look = Look.at(call, own=call.reads.read_job(name).zone)
    slot = call.given.get("slot") or call.body.get("slot")
    if slot is None:
        return _asked(look, acts.rerun_failed_act(name, key=_new_key(), zone=look.zone, links=look.links))
    return _asked(look, acts.rerun_act(name, slot, key=_new_key(), reading=look.reading, links=look.links))


def rerun(call: ApiCall) -> Redirect | ShownPage:
    """Run a slot again, or all that failed since an instant."""

    def act(look: Look) -> str:
        made = commands.rerun(replace(call, body={**call.body, "failed_since": _instant(call, "failed_since")})).value
        if call.body["slot"] is not None and made.runs:
            return look.links.run(made.runs[0], done="rerun")
        return look.links.runs(job=call.names["job"], done="reruns")

    return _done(call, ask_rerun, act)


def ask_backfill(call: ApiCall) -> ShownPage:
    """Ask for the span of a backfill, then show what it would do."""
    name = call.names["job"]
    look = Look.at(call, own=call.reads.read_job(name).zone)
    given = call.body or call.given
    start, end = _instant(call, "start"), _instant(call, "end")
    asked = acts.BackfillAsked(
        start=look.field(start),
        end=look.field(end),
        only=given.get("only") or "missed",
        rate=given.get("rate") or "",
        limit=given.get("limit"),
    )
    if start is None or end is None:
        return _asked(look, acts.backfill_span(name, asked, zone=look.zone, links=look.links))
    wanted = {"start": start, "end": end, "limit": asked.limit, "rate": asked.rate or None, "only": asked.only}
    try:
        preview = call.reads.backfill_preview(name, wanted)
        ran = 0 if asked.only == "missed" else sum(one.run is not None for one in call.reads.slots(name, start, end))
    except InvalidError as error:
        page = acts.backfill_span(name, asked, zone=look.zone, links=look.links)
        return _asked(look, replace(page, problem=str(error)), status=400)
    page = acts.backfill_act(
        preview, asked, ran=ran, key=_new_key(), zone=look.zone, reading=look.reading, links=look.links
    )
    return _asked(look, page)


def backfill(call: ApiCall) -> Redirect | ShownPage:
    """Run every slot of a range of the past."""

    def act(look: Look) -> str:
        body = {**call.body, "start": _instant(call, "start"), "end": _instant(call, "end")}
        commands.backfill(replace(call, body=body))
        return look.links.job(call.names["job"], done="backfilled")

    return _done(call, ask_backfill, act)


def ask_cancel(call: ApiCall) -> ShownPage:
    """Show what the cancellation of a run, or of what is left of a backfill, would do."""
    id = call.names["run"]
    if (backfill := _backfill_of(call, id)) is not None:
        look = Look.at(call, own=call.reads.read_job(backfill.job).zone)
        return _asked(look, acts.cancel_backfill_act(backfill, reading=look.reading, links=look.links))
    run = call.reads.run(id)[0]
    try:
        own = call.reads.read_job(job_of(id)).zone
    except NotFoundError:
        own = "UTC"
    look = Look.at(call, own=own)
    beat = next((node.lease.total_seconds() / 3 for node in call.reads.nodes(ended=False)), 5.0)
    return _asked(look, acts.cancel_act(run, beat_s=beat, reading=look.reading, links=look.links))


def cancel(call: ApiCall) -> Redirect | ShownPage:
    """Stop a run, or a backfill."""
    backfill = _backfill_of(call, call.names["run"])

    def act(look: Look) -> str:
        answer = commands.cancel(call).value.answer
        if backfill is not None:
            return look.links.job(backfill.job, done=answer)
        return look.links.run(call.names["run"], done=answer)

    return _done(call, ask_cancel, act)


def _backfill_of(call: ApiCall, id: str) -> BackfillView | None:
    """Return the backfill of this id that still has slots to start; None if it is the id of a run."""
    try:
        found = call.reads.read_job(job_of(id)).backfills
    except NotFoundError:
        return None
    return next((one for one in found if one.id == id), None)


def ask_release(call: ApiCall) -> ShownPage:
    """Show what a forced release would do."""
    look = Look.at(call)
    lock = call.writes.lock(call.names["lock"])
    return _asked(look, acts.release_act(lock, reading=look.reading, links=look.links))


def release(call: ApiCall) -> Redirect | ShownPage:
    """Take a lock from its holder."""

    def act(look: Look) -> str:
        if call.body["typed"] != call.names["lock"]:
            raise InvalidError("The name that was typed is not the lock's. Nothing was released.")
        commands.release(call)
        return look.links.to("/locks", done="released")

    return _done(call, ask_release, act)


def ask_unblock(call: ApiCall) -> ShownPage:
    """Show what letting a document be tried again would do."""
    look = Look.at(call)
    return _asked(look, acts.unblock_act(call.names["kind"], call.names["document"], links=look.links))


def unblock(call: ApiCall) -> Redirect | ShownPage:
    """Let a document that was set aside be tried again."""

    def act(look: Look) -> str:
        commands.unblock(call)
        return look.links.to("/doctor", done="unblocked")

    return _done(call, ask_unblock, act)


def ask_repair(call: ApiCall) -> ShownPage:
    """Show what a repair would do."""
    look = Look.at(call)
    return _asked(look, acts.repair_act(call.examination.look().checks, links=look.links))


def repair(call: ApiCall) -> Redirect | ShownPage:
    """Repair what is safe to repair."""

    def act(look: Look) -> str:
        done = doctor.repair(call).repaired
        return look.links.to("/doctor", done="repaired" if done else "sound")

    return _done(call, ask_repair, act)


def ask_bulk(call: ApiCall) -> ShownPage:
    """Show what pausing or resuming many jobs would do."""
    look = Look.at(call)
    names = call.given.get("job") or call.body.get("jobs") or ()
    if not names:
        raise InvalidError("No job is selected. Nothing was done: go back and select some.")
    action = call.given.get("action") or call.body.get("action") or "pause"
    return _asked(look, acts.bulk_act(action, tuple(dict.fromkeys(names)), zone=look.zone, links=look.links))


def bulk(call: ApiCall) -> Redirect | ShownPage:
    """Pause or resume many jobs, each for itself."""

    def act(look: Look) -> str:
        until = _instant(call, "until") if call.body["action"] == "pause" else None
        found = commands.bulk(replace(call, body={**call.body, "until": until}))
        refused = [f"{one.job}: {one.problem}" for one in found.results if not one.ok]
        if refused:
            done = len(found.results) - len(refused)
            raise ProblemError(409, f"{done} done; {len(refused)} refused. {' '.join(refused[:5])}")
        return look.links.jobs(done="paused" if call.body["action"] == "pause" else "resumed")

    return _done(call, ask_bulk, act)


def _asked(look: Look, page: ActPage, *, status: int = 200) -> ShownPage:
    return look.screen(page, topics="", status=status, problem=True)


def _done(call: ApiCall, ask: Ask, act: Callable[[Look], str]) -> Redirect | ShownPage:
    """Carry out an act and go to what it changed; what is refused comes back as the form with the reason."""
    look = Look.at(call)
    try:
        return Redirect(act(look))
    except (ProblemError, SolocronError) as error:
        problem = error if isinstance(error, ProblemError) else problem_of(error)
        if problem.status not in (400, 409):
            raise
        screen = ask(call)
        assert isinstance(screen.page, ActPage)
        page = replace(screen.page, problem=problem.detail, fields=acts.filled(screen.page.fields, call.body))
        return replace(screen, page=page, status=problem.status)
    finally:
        call.board.forget()


def _instant(call: ApiCall, name: str) -> datetime | None:
    """Return an instant of a form or an address: without an offset it is a time in the zone that the form names."""
    found = call.body.get(name) or call.given.get(name)
    if found is None or found.utcoffset() is not None:
        return found
    zone = call.body.get("zone") or call.given.get("zone") or "UTC"
    return found.replace(tzinfo=load_zone(checked_zone(zone)).info)  # type: ignore[no-any-return]


def _payload(given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise InvalidError("The payload is not JSON. Nothing was asked for.") from None


def _new_key() -> str:
    """Return the idempotency key of a form: however often it is sent, it is one run."""
    return f"form-{secrets.token_urlsafe(12)}"
