"""The table: every route once, with its method, path, access, parameters and handler.

Router, guard, OpenAPI and tests are made from it. What is not here is 404, and only after the guard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any
from urllib.parse import unquote

from solocron.author import NOTE_LIMIT
from solocron.service import forms
from solocron.service.api import (
    audit,
    commands,
    definitions,
    doctor,
    events,
    explain,
    jobs,
    nodes,
    runs,
    shared,
    slots,
    status,
    tick,
    timeline,
)
from solocron.service.bodies import BodyField
from solocron.service.call import ApiCall, Text
from solocron.service.dashboard.rows import ROWS
from solocron.service.paging import PAGED
from solocron.service.parameters import PATH_PATTERNS, Parameter, choice, choices, instant, name, text, whole
from solocron.service.roles import RouteAccess
from solocron.service.route import Feature, Route
from solocron.service.schema import openapi
from solocron.telemetry.families import TEXT

__all__ = ["API", "ROUTES", "Match", "allowed_methods", "match"]

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Match:
    """A route and the names in the path."""

    route: Route
    names: Mapping[str, str]


def _live(call: ApiCall) -> Text:
    """Return that the process answers; nothing is touched."""
    return Text("ok\n")


def _ready(call: ApiCall) -> Text:
    """Return whether the store answers."""
    return Text("ok\n") if call.is_ready() else Text("not ready\n", status=503)


def _metrics(call: ApiCall) -> Text:
    """Return the metrics of the fleet, in the text format of Prometheus; of a store that is away, only that."""
    return Text(call.metrics(), kind=TEXT)


def _openapi(call: ApiCall) -> dict[str, Any]:
    """Return this description."""
    return _description()


@cache
def _description() -> dict[str, Any]:
    return openapi(ROUTES)


def _look(
    path: str,
    handler: Callable[[ApiCall], Any],
    *parameters: Parameter,
    asks_store: bool = True,
    streams: bool = False,
    watched: bool = False,
    needs: Feature | None = None,
) -> Route:
    return Route(
        method="GET",
        path=API + path,
        access=RouteAccess.READ,
        handler=handler,
        parameters=parameters,
        asks_store=asks_store,
        streams=streams,
        watched=watched,
        needs=needs,
    )


def _ask(
    path: str,
    handler: Callable[[ApiCall], Any],
    *fields: BodyField,
    creates_runs: bool = False,
    statuses: tuple[int, ...] = (200,),
) -> Route:
    return Route(
        method="POST",
        path=API + path,
        access=RouteAccess.OPERATE,
        handler=handler,
        fields=fields,
        creates_runs=creates_runs,
        statuses=statuses,
    )


_INCLUDE_RUN = choices("include", "values to show, if the role may see them", ("result", "payload"))
_INCLUDE_JOB = choices("include", "values to show, if the role may see them", ("payload",))
_RUNS = (
    choices("status", "only these", runs.STATUSES),
    choices("origin", "only these", runs.ORIGINS),
    name("node", "only those of this node"),
    instant("since", "only those that ended at or after it"),
    instant("until", "only those that ended before it"),
    *PAGED,
)
_BACKFILL = (
    instant("start", "the first instant of the range", required=True),
    instant("end", "the end of the range, itself left out", required=True),
    whole("limit", "how many slots at most", least=1, most=100_000),
    text("rate", "how fast, such as 10/m", most=32),
    choice("only", "which slots", ("all", "missed", "not_well"), default="all"),
)
_EXPLAIN = (
    text("expression", "a cron expression", most=200, required=True),
    text("tz", "a zone, such as Europe/Berlin", most=64),
    name("name", "the name of the job, for H"),
    choice("gap", "a time that the clocks skip", ("run-after", "skip")),
    choice("fold", "a time that comes twice", ("first", "last", "both")),
    whole("n", "how many slots", least=1, most=100, default=5),
)
_NOTE = BodyField.text("note", "why, for the record", most=NOTE_LIMIT)
_TRIGGER = (
    BodyField.json("payload", "what the function gets; the job's own by default"),
    BodyField.instant("at", "when; now by default"),
    BodyField.shard("shard", "only this shard"),
    _NOTE,
)
_RERUN = (
    BodyField.instant("slot", "the slot to run again"),
    BodyField.instant("failed_since", "or every slot that failed since then"),
    _NOTE,
)
_BACKFILL_BODY = (
    BodyField.instant("start", "the first instant of the range", required=True),
    BodyField.instant("end", "the end of the range, itself left out", required=True),
    BodyField.whole("limit", "how many slots at most", least=1, most=100_000),
    BodyField.text("rate", "how fast, such as 10/m", most=32),
    BodyField.choice("only", "which slots (default: all)", ("all", "missed", "not_well")),
    _NOTE,
)
_BULK = (
    BodyField.choice("action", "what to do", ("pause", "resume"), required=True),
    BodyField.names("jobs", "which jobs", most=200),
    _NOTE,
    BodyField.instant("until", "when the pause ends by itself"),
)

ROUTES: tuple[Route, ...] = (
    Route(method="GET", path="/health/live", access=RouteAccess.PUBLIC, handler=_live, asks_store=False, any_host=True),
    Route(method="GET", path="/health/ready", access=RouteAccess.PUBLIC, handler=_ready, any_host=True),
    Route(method="GET", path="/metrics", access=RouteAccess.METRICS, handler=_metrics),
    Route(
        method="POST",
        path="/login",
        access=RouteAccess.PUBLIC,
        handler=forms.log_in,
        fields=(
            BodyField.text("token", "the token", most=256, required=True),
            BodyField.text("wanted", "the page to go to", most=1024),
        ),
        form=True,
        statuses=(303,),
    ),
    Route(
        method="POST",
        path="/logout",
        access=RouteAccess.READ,
        handler=forms.log_out,
        form=True,
        asks_store=False,
        statuses=(303,),
    ),
    Route(
        method="GET",
        path="/open",
        access=RouteAccess.PUBLIC,
        handler=forms.open_by_code,
        parameters=(text("code", "the one-time code", most=64, required=True),),
        needs=Feature.CODE,
        form=True,
        statuses=(303,),
    ),
    _look("/openapi.json", _openapi),  # in a thread: it takes some milliseconds to write
    _look("/me", status.me, asks_store=False),
    _look("/status", status.status),
    _look("/accounting", slots.all_accounting, watched=True),
    _look("/alarms", status.alarms, choice("state", "open ones, or closed ones", ("open", "closed"), default="open")),
    _look("/doctor", doctor.doctor),
    _look(
        "/jobs",
        jobs.jobs,
        name("q", "part of the name"),
        choices("state", "one of these is enough", jobs.STATES),
        name("pool", "only those of this pool"),
        text("tag", "only those with this tag; may be given several times", most=64, listed=True),
        choice("sort", "by name, by the next slot, or what needs a look first", jobs.SORTS, default="name"),
        *PAGED,
    ),
    _look("/jobs/{job}", jobs.job, _INCLUDE_JOB),
    _look("/jobs/{job}/runs", runs.runs, *_RUNS),
    _look(
        "/jobs/{job}/next",
        jobs.following,
        whole("n", "how many", least=1, most=100, default=10),
        instant("from", "those after this instant (default: now)"),
        text("tz", "the zone of `local` (default: the job's)", most=64),
    ),
    _look(
        "/jobs/{job}/slots",
        slots.slots,
        instant("from", "the first instant of the span", required=True),
        instant("to", "the end of the span, itself left out", required=True),
        text("tz", "the zone of `local` (default: the job's)", most=64),
    ),
    _look("/jobs/{job}/why", slots.why, instant("at", "the slot, or an instant after it (default: now)")),
    _look(
        "/jobs/{job}/accounting",
        slots.accounting,
        whole("hours", "how far back", least=1, most=720, default=24),
    ),
    _look("/jobs/{job}/durations", jobs.durations, whole("n", "how many attempts", least=1, most=500, default=120)),
    _look("/jobs/{job}/resume", jobs.resume),
    _look("/jobs/{job}/backfill", jobs.backfill, *_BACKFILL),
    _look("/runs", runs.runs, name("job", "only those of this job"), *_RUNS),
    _look("/runs/{run}", runs.run, _INCLUDE_RUN),
    _look("/runs/{run}/output", runs.output),
    _look(
        "/timeline",
        timeline.timeline,
        instant("from", "the beginning of the span (default: an hour ago)"),
        instant("to", "its end, at most 7 days later (default: a little ahead of now)"),
        choice("lanes", "a lane for each", ("node", "job"), default="node"),
        whole("limit", "list the newest attempts, and count older ones", least=1, most=2_000, default=500),
    ),
    _look(
        "/nodes",
        nodes.nodes,
        choices("state", "only these (default: all but ended)", nodes.STATES),
        instant("since", "of the ended ones, those that ended at or after it"),
        *PAGED,
    ),
    _look("/nodes/{session}", nodes.node),
    _look("/limits", shared.limits, *PAGED),
    _look("/locks", shared.locks, *PAGED),
    _look("/calendars", shared.calendars, *PAGED),
    _look("/calendars/{calendar}", shared.calendar),
    _look("/backfills", shared.backfills, *PAGED),
    _look(
        "/audit",
        audit.audit,
        text("who", "only acts of this caller"),
        text("subject", "only acts on it", most=256),
        *PAGED,
    ),
    _look("/explain", explain.explain, *_EXPLAIN),
    _look("/events", events.events, events.TOPICS, streams=True, needs=Feature.LIVE),
    _ask("/jobs/{job}/trigger", commands.trigger, *_TRIGGER, creates_runs=True, statuses=(202,)),
    _ask("/jobs/{job}/pause", commands.pause, _NOTE, BodyField.instant("until", "when it ends by itself")),
    _ask(
        "/jobs/{job}/resume",
        commands.resume,
        _NOTE,
        BodyField.instant("seen", "`paused.at` as it was shown; another pause by now is a conflict"),
    ),
    _ask("/jobs/{job}/rerun", commands.rerun, *_RERUN, creates_runs=True, statuses=(202,)),
    _ask("/jobs/{job}/backfill", commands.backfill, *_BACKFILL_BODY, creates_runs=True, statuses=(202,)),
    _ask("/runs/{run}/cancel", commands.cancel, BodyField.text("reason", "why", most=NOTE_LIMIT), statuses=(200, 202)),
    _ask("/bulk", commands.bulk, *_BULK),
    _ask(
        "/locks/{lock}/release",
        commands.release,
        BodyField.text("reason", "why; stays on record", most=NOTE_LIMIT, required=True),
        BodyField.whole("fence", "the fence as it was shown", least=0, most=2**63 - 1, required=True),
    ),
    _ask("/set-aside/{kind}/{document}/unblock", commands.unblock),
    _ask(
        "/silences",
        commands.silence,
        BodyField.text("what", "a kind of alarm, a pattern of jobs, or kind:pattern", most=200, required=True),
        BodyField.instant("until", "when it ends by itself; at most 90 days ahead", required=True),
        _NOTE,
    ),
    _ask("/silences/lift", commands.lift, BodyField.text("what", "as it was silenced", most=200, required=True)),
    Route(
        method="POST",
        path=f"{API}/doctor/repair",
        access=RouteAccess.OPERATE,
        handler=doctor.repair,
        lasts=True,
    ),
    Route(
        method="PUT",
        path=f"{API}/jobs/{{job}}",
        access=RouteAccess.OPERATE,
        handler=definitions.put,
        fields=definitions.DEFINITION,
        edits=True,
    ),
    Route(
        method="DELETE",
        path=f"{API}/jobs/{{job}}",
        access=RouteAccess.OPERATE,
        handler=definitions.remove,
        parameters=(text("note", "why, for the record", most=500),),
        edits=True,
        ignores_body=True,
    ),
    Route(
        method="POST",
        path=f"{API}/tick",
        access=RouteAccess.TICK,
        handler=tick.tick,
        parameters=(choice("wait", "0: do not wait for the pass to end", ("0", "1"), default="1"),),
        needs=Feature.TICK,
        lasts=True,
        ignores_body=True,
        statuses=(200, 202),
    ),
    *ROWS,
)


def match(path: str, method: str, table: Sequence[Route] = ROUTES) -> Match | None:
    """Return the route of a percent-encoded path; HEAD is matched as GET. None if there is none of this method."""
    wanted = "GET" if method == "HEAD" else method
    for found in _matches(path, table):
        if found.route.method == wanted:
            return found
    return None


def allowed_methods(path: str, table: Sequence[Route] = ROUTES) -> tuple[str, ...]:
    """Return the methods that a path has; empty if no route has this path."""
    found = {one.route.method for one in _matches(path, table)}
    more = {"HEAD"} if "GET" in found else set()
    return tuple(sorted({*found, *more, "OPTIONS"})) if found else ()


def _matches(path: str, table: Sequence[Route]) -> list[Match]:
    parts = path.split("/")
    found: list[Match] = []
    for route in table:
        names = _fit(route.path, parts)
        if names is not None:
            found.append(Match(route, names))
    return found


def _fit(template: str, parts: list[str]) -> dict[str, str] | None:
    words = _words(template)
    if len(words) != len(parts):
        return None
    names: dict[str, str] = {}
    for word, part in zip(words, parts, strict=True):
        if not word.startswith("{"):
            if word != part:
                return None
            continue
        try:
            value = unquote(part, errors="strict")
        except UnicodeDecodeError:
            return None
        if not re.fullmatch(PATH_PATTERNS[word[1:-1]], value):
            return None
        names[word[1:-1]] = value
    return names


@lru_cache(maxsize=256)
def _words(template: str) -> tuple[str, ...]:
    return tuple(template.split("/"))
