"""`/runs`: what happened between two and three; `/runs/{run}`: what exactly happened, attempt by attempt."""

from __future__ import annotations

import json

from solocron.client.run_listing import WantedRuns
from solocron.effects.steps import StepView
from solocron.errors import EmptyStore, NotFoundError
from solocron.model.documents.run import job_of
from solocron.service.api.runs import read_run_cursor
from solocron.service.call import ApiCall, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.dashboard.refusals import losers_of, refused_of
from solocron.service.pages.details import run_page
from solocron.service.pages.fleet import refused_by
from solocron.service.pages.lists import RunsAsked, runs_page
from solocron.service.pages.parts import Column, TableCell, TablePart, TableRow
from solocron.service.paging import make_cursor
from solocron.service.shown import redacted, shown_output, shown_run
from solocron.views import to_json

__all__ = ["run", "runs"]

_PAGE = 50


def runs(call: ApiCall) -> ShownPage:
    """Show runs, newest first."""
    look, given = Look.at(call), call.given
    asked = RunsAsked(
        job=given["job"] or "",
        status=given["status"],
        origin=given["origin"] or "",
        node=given["node"] or "",
        since=look.field(look.instant(given["since"])),
        until=look.field(look.instant(given["until"])),
    )
    filters = {key: value for key, value in given.items() if key not in ("tz", "done")}
    wanted = WantedRuns(
        job=given["job"],
        statuses=frozenset(given["status"]),
        origins=frozenset([given["origin"]] if given["origin"] else []),
        node=given["node"],
        since=look.instant(given["since"]),
        until=look.instant(given["until"]),
    )
    try:
        page = call.reads.runs(wanted, limit=_PAGE, before=read_run_cursor(call.path, filters))
    except EmptyStore:
        return look.screen(runs_page((), asked=asked, reading=look.reading, links=look.links), topics="")
    except NotFoundError as error:  # no job of that name
        return look.screen(runs_page((), asked=asked, reading=look.reading, links=look.links, looked=str(error)))
    shown, refused = tuple(map(shown_run, page.runs)), refused_of(losers_of(call, page.runs), page.runs)
    looked = "" if page.looked_back_to is None else f"looked back to {look.reading.stamp(page.looked_back_to)}"
    made = runs_page(
        shown,
        asked=asked,
        reading=look.reading,
        links=look.links,
        older=None if page.next is None else look.here(cursor=make_cursor(str(page.next), call.path, filters)),
        newer=look.here(cursor=None) if given["cursor"] else None,
        looked=looked,
        refused=refused,
    )
    return look.screen(made, shown, refused)


def run(call: ApiCall) -> ShownPage:
    """Show one run."""
    id = call.names["run"]
    last, attempts, steps = call.reads.run(id)
    look = Look.at(call, own=_zone_of(call, job_of(id)))
    values = call.sees_values and call.given["show"] is not None
    shown = tuple(shown_run(one, values=values) for one in attempts or [last])
    begun = min((one.claimed_at for one in shown if one.claimed_at), default=None)
    nodes = [] if begun is None else call.reads.nodes(ended=True, since=begun)
    took_part = {one.node for one in shown}
    output = shown_output(last) if last.output is not None and call.sees_values else None
    page = run_page(
        shown,
        nodes=[node for node in nodes if node.node in took_part],
        reading=look.reading,
        links=look.links,
        operates=call.operates,
        steps=_steps(steps, look, values=values),
        values=(("result", _json(shown[-1].result)), _payload(call, id)) if values else (),
        may_show_values=call.sees_values,
        output=output,
    )
    refused = refused_by(nodes, last.run)
    return look.screen(page, shown, refused, steps, output, topics=f"job:{last.job}")


def _zone_of(call: ApiCall, job: str) -> str:
    try:
        return call.reads.read_job(job).zone
    except NotFoundError:  # removed; its runs are still on record
        return "UTC"


def _steps(steps: list[StepView], look: Look, *, values: bool) -> TablePart | None:
    if not steps:
        return None
    more = (Column(title="value"),) if values else ()
    rows = []
    for step in steps:
        value = (TableCell(text=_json(redacted(step.value)), mono=True, long=True),) if values else ()
        at = look.reading.stamp(step.at, seconds=True)
        rows.append(TableRow(cells=(TableCell(text=step.name, strong=True), TableCell(text=at), *value)))
    columns = (Column(title="step"), Column(title="finished"), *more)
    return TablePart(label="Steps", columns=columns, rows=tuple(rows), empty="None.")


def _payload(call: ApiCall, id: str) -> tuple[str, str]:
    """Return the payload of a run, with where it comes from."""
    found = call.reads.run_payload(id)
    if found is None:
        return "payload", "It is on record while the run waits or runs; this one has ended."
    return "payload" if found.own else "payload, the job's own", _json(redacted(found.value))


def _json(value: object) -> str:
    return json.dumps(to_json(value), indent=2, ensure_ascii=False)[:65_536]
