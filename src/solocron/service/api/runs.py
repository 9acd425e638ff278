"""`/runs`: what ran, what did not and why, in pages; one run with its attempts and steps; its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from solocron.client.run_listing import RunCursor, WantedRuns
from solocron.effects.steps import StepView
from solocron.errors import NotFoundError
from solocron.model.documents.run import Origin, Status
from solocron.service.call import ApiCall, Text
from solocron.service.paging import Listing, bad_cursor, make_cursor, read_cursor
from solocron.service.problems import ProblemError
from solocron.service.shown import redacted, shown_output, shown_run
from solocron.views import RunView

__all__ = ["ORIGINS", "STATUSES", "RunAnswer", "output", "read_run_cursor", "run", "runs"]

STATUSES = tuple(Status)
ORIGINS = tuple(Origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer(RunView):
    """The last attempt of a run, with every attempt and step."""

    attempts: tuple[RunView, ...]
    steps: tuple[StepView, ...]


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
    return RunAnswer(
        **copied,
        attempts=tuple(shown_run(one, values=values) for one in attempts),
        steps=tuple(replace(step, value=redacted(step.value) if values else None) for step in steps),
    )


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
