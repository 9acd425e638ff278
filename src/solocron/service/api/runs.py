"""`/runs`: what ran, what did not and why, in pages; one run with its attempts and steps; its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from solocron.client.run_listing import RunCursor, WantedRuns
from solocron.effects.steps import StepView
from solocron.errors import NotFoundError
from solocron.model.documents.run import Origin, Status
from solocron.service.api.audit import shown_act
from solocron.service.call import ApiCall, Text
from solocron.service.paging import Listing, bad_cursor, make_cursor, read_cursor
from solocron.service.problems import ProblemError
from solocron.service.shown import redacted, scrubbed, shown_output, shown_run
from solocron.views import AuditView, FactView, NodeView, RunView

__all__ = ["ORIGINS", "STATUSES", "RunAnswer", "output", "read_run_cursor", "run", "runs"]

STATUSES = tuple(Status)
ORIGINS = tuple(Origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer(RunView):
    """The last attempt of a run, with every attempt and step, what happened in order, and who acted on it."""

    payload: Any
    """What its function gets, if it was asked for; null once the run has ended: the log does not keep it."""
    attempts: tuple[RunView, ...]
    steps: tuple[StepView, ...]
    story: tuple[FactView, ...]
    audit: tuple[AuditView, ...]
    """At most 8, the newest first, of those among the last thousand acts."""


def runs(call: ApiCall) -> Listing[RunView]:
    """Return runs, newest first, one item for each attempt; slots that did not run have their reason."""
    given, before = call.given, read_run_cursor(call.path, {**call.given, **call.names})
    wanted = WantedRuns(
        job=call.names.get("job") or given.get("job"),
        statuses=frozenset(given["status"]),
        origins=frozenset(given["origin"]),
        node=given["node"],
        since=given["since"],
        until=given["until"],
    )
    page = call.reads.runs(wanted, limit=given["limit"], before=before)
    following = None if page.next is None else make_cursor(str(page.next), call.path, {**given, **call.names})
    return Listing(
        items=tuple(map(shown_run, page.runs)),
        next=following,
        as_of=call.reads.now(),
        looked_back_to=page.looked_back_to,
    )


def run(call: ApiCall) -> RunAnswer:
    """Return one run: its last attempt, every attempt, every step."""
    values = call.sees_values and "result" in call.given["include"]
    last, attempts, steps = call.reads.run(call.names["run"])
    view = shown_run(last, values=values)
    copied: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(RunView)}
    lost = [one.claimed_at for one in attempts if one.status == "lost" and one.claimed_at is not None]
    nodes = call.reads.nodes(ended=True, since=min(lost)) if lost else []
    return RunAnswer(
        **copied,
        payload=_payload(call),
        attempts=tuple(shown_run(one, values=values) for one in attempts),
        story=tuple(_story(last, attempts, nodes)),
        audit=tuple(map(shown_act, call.reads.audit_of(last.run))),
        steps=tuple(replace(step, value=redacted(step.value) if values else None) for step in steps),
    )


def _payload(call: ApiCall) -> Any:
    """Return the payload of a run that has not ended, if the caller asks for it and may see it."""
    wanted = call.sees_values and "payload" in call.given["include"]
    found = call.reads.run_payload(call.names["run"]) if wanted else None
    return None if found is None else redacted(found.value)


def _story(last: RunView, attempts: Sequence[RunView], nodes: Sequence[NodeView]) -> list[FactView]:
    """Return what happened, the oldest first: due, claimed, lost, taken over, refused, ended."""
    told = [FactView(at=last.slot, what=f"due, by {last.origin}" + (f" of {last.asked_by}" if last.asked_by else ""))]
    before: RunView | None = None
    for one in attempts:
        if one.claimed_at is not None:
            verb = "taken over" if before is not None and before.status == "lost" else "claimed"
            what = f"attempt {one.attempt} {verb} by {one.node}, fence {one.fence}"
            told.append(FactView(at=one.claimed_at, what=what))
        if one.finished_at is not None:
            reason = f": {scrubbed(one.reason)}" if one.reason else ""
            told.append(
                FactView(at=one.finished_at, what=f"attempt {one.attempt} {one.status.replace('_', ' ')}{reason}")
            )
        before = one
    runs = {one.run for one in attempts}
    for node in nodes:
        told += (
            FactView(at=end.at, what=f"{node.node} came too late with fence {end.fence}: {end.outcome} was refused")
            for end in node.refused
            if end.run in runs
        )
    return sorted(told, key=lambda fact: fact.at or last.slot)


def output(call: ApiCall) -> Text:
    """Return what the process of a run printed."""
    if not call.sees_values:
        raise ProblemError(403, "Outputs are not shown to this role.")
    last, _, _ = call.reads.run(call.names["run"])
    if last.output is None:
        raise NotFoundError(f"{last.run} has no output; only jobs in a process of their own keep one.")
    return Text(shown_output(last))


def read_run_cursor(path: str, given: Mapping[str, Any]) -> RunCursor | None:
    """Return the place in the request's cursor; None on the first page. Raise a 400 for any other cursor."""
    position = read_cursor(path, given)
    try:
        return None if position is None else RunCursor.parse(position)
    except (ValueError, OverflowError):
        raise bad_cursor("it was not made here") from None
