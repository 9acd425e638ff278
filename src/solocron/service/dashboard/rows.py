"""The rows of the table that browsers ask for: pages, forms, files. `routes` puts them beside those of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solocron.author import NOTE_LIMIT
from solocron.service.api.runs import ORIGINS, STATUSES
from solocron.service.bodies import BodyField
from solocron.service.call import ApiCall
from solocron.service.dashboard import acts, jobs, nodes, overview, plain, runs, shared
from solocron.service.dashboard.looking import COMMON
from solocron.service.pages.lists import JOB_STATES
from solocron.service.pages.overview import SPANS
from solocron.service.pages.spans import SPAN_NAMES
from solocron.service.parameters import Parameter, choice, choices, instant, local_instant, name, text, whole
from solocron.service.roles import RouteAccess
from solocron.service.route import Route

__all__ = ["ROWS"]

_CURSOR = text("cursor", "where the page begins", most=512)
_NOTE = BodyField.text("note", "why, for the record", most=NOTE_LIMIT)
_KEY = BodyField.text("key", "the same key is the same act", most=256, required=True)
_ZONE = BodyField.text("zone", "the zone of times without an offset", most=64)
_ONLY = ("missed", "not_well", "all")


def _page(path: str, handler: Callable[[ApiCall], Any], *parameters: Parameter) -> Route:
    return Route(
        method="GET",
        path=path,
        access=RouteAccess.READ,
        handler=handler,
        parameters=(*parameters, *COMMON),
        page=True,
        shared=True,
    )


def _act(
    path: str,
    ask: Callable[[ApiCall], Any],
    act: Callable[[ApiCall], Any],
    *fields: BodyField,
    asked: tuple[Parameter, ...] = (),
    creates_runs: bool = False,
    lasts: bool = False,
) -> tuple[Route, Route]:
    """Return the form of an act, and the act."""
    keyed = (_KEY,) if creates_runs else ()
    return (
        Route(
            method="GET",
            path=path,
            access=RouteAccess.OPERATE,
            handler=ask,
            parameters=(*asked, *COMMON),
            page=True,
        ),
        Route(
            method="POST",
            path=path,
            access=RouteAccess.OPERATE,
            handler=act,
            parameters=COMMON,
            fields=(*fields, *keyed),
            creates_runs=creates_runs,
            lasts=lasts,
            form=True,
            page=True,
            statuses=(303,),
        ),
    )


def _public(path: str, handler: Callable[[ApiCall], Any], *parameters: Parameter) -> Route:
    return Route(
        method="GET",
        path=path,
        access=RouteAccess.PUBLIC,
        handler=handler,
        parameters=parameters,
        page=True,
        asks_store=False,
    )


ROWS: tuple[Route, ...] = (
    _page(
        "/",
        overview.overview,
        choice("lanes", "a lane for each", ("node", "job"), default="node"),
        choice(
            "span", "how far back the fleet is drawn (default: an hour, or less if all of it is younger)", tuple(SPANS)
        ),
        choice("tv", "accounting and fleet alone, large", ("1",)),
    ),
    _page("/accounting", overview.unaccounted),
    _page(
        "/jobs",
        jobs.jobs,
        text("q", "part of the name"),
        choice("state", "only those in this state", JOB_STATES),
        name("pool", "only those of this pool"),
        text("tag", "only those with this tag", most=64),
        choice("sort", "order", ("attention", "name", "next"), default="attention"),
        name("after", "those after this job"),
    ),
    _page(
        "/jobs/{job}",
        jobs.job,
        instant("slot", "the slot whose story is told"),
        choice("span", "how far back slots are drawn", SPAN_NAMES),
        choice("status", "which runs are listed", ("not_well", "running")),
        _CURSOR,
    ),
    _page("/jobs/{job}/why", jobs.why, local_instant("at", "the slot, or an instant after it")),
    _page(
        "/runs",
        runs.runs,
        name("job", "only those of this job"),
        choices("status", "only these", STATUSES),
        choice("origin", "only these", ORIGINS),
        name("node", "only those of this node"),
        local_instant("since", "only those that ended at or after it"),
        local_instant("until", "only those that ended before it"),
        _CURSOR,
    ),
    _page("/runs/{run}", runs.run, choice("show", "show values, if the role may see them", ("values",))),
    _page("/nodes", nodes.nodes, choice("state", "with those that have ended", ("ended",))),
    _page("/nodes/{session}", nodes.node),
    _page("/alarms", shared.alarms, choice("state", "open or closed", ("open", "closed"))),
    _page("/limits", shared.limits),
    _page("/locks", shared.locks),
    _page("/calendars", shared.calendars),
    _page("/calendars/{calendar}", shared.calendar),
    _page("/audit", shared.audit, text("who", "only acts of this caller"), text("subject", "only acts on it"), _CURSOR),
    _page("/doctor", shared.doctor),
    _page(
        "/explain",
        plain.explain,
        text("expression", "a cron expression", most=200),
        text("zone", "its zone", most=64),
        choice("gap", "a time that the clocks skip", ("run-after", "skip")),
        choice("fold", "a time that comes twice", ("first", "last", "both")),
    ),
    _page("/find", plain.find, text("q", "a name, or part of one", most=200)),
    *_act(
        "/jobs/{job}/trigger",
        acts.ask_trigger,
        acts.trigger,
        BodyField.text("payload", "JSON; the job's own by default", most=32_768),
        _NOTE,
        creates_runs=True,
    ),
    *_act(
        "/jobs/{job}/pause",
        acts.ask_pause,
        acts.pause,
        _NOTE,
        BodyField.local("until", "when it ends by itself"),
        _ZONE,
    ),
    *_act("/jobs/{job}/resume", acts.ask_resume, acts.resume, _NOTE, BodyField.instant("seen", "the pause as shown")),
    *_act(
        "/jobs/{job}/rerun",
        acts.ask_rerun,
        acts.rerun,
        BodyField.instant("slot", "the slot to run again"),
        BodyField.local("failed_since", "or every slot that failed since then"),
        _NOTE,
        _ZONE,
        asked=(instant("slot", "the slot to run again"),),
        creates_runs=True,
    ),
    *_act(
        "/jobs/{job}/backfill",
        acts.ask_backfill,
        acts.backfill,
        BodyField.local("start", "the first instant of the range", required=True),
        BodyField.local("end", "the end of the range, itself left out", required=True),
        BodyField.digits("limit", "how many slots at most", most=100_000),
        BodyField.text("rate", "how fast, such as 10/m", most=32),
        BodyField.choice("only", "which slots", _ONLY),
        _NOTE,
        _ZONE,
        asked=(
            local_instant("start", "the first instant of the range"),
            local_instant("end", "the end of the range, itself left out"),
            whole("limit", "how many slots at most", least=1, most=100_000),
            text("rate", "how fast, such as 10/m", most=32),
            choice("only", "which slots", _ONLY),
            text("zone", "the zone of times without an offset", most=64),
        ),
        creates_runs=True,
    ),
    *_act("/runs/{run}/cancel", acts.ask_cancel, acts.cancel, BodyField.text("reason", "why", most=NOTE_LIMIT)),
    *_act(
        "/bulk",
        acts.ask_bulk,
        acts.bulk,
        BodyField.choice("action", "what to do", ("pause", "resume"), required=True),
        BodyField.listed_names("jobs", "which jobs", most=200),
        _NOTE,
        BodyField.local("until", "when the pause ends by itself"),
        _ZONE,
        asked=(
            choice("action", "what to do", ("pause", "resume"), default="pause"),
            text("job", "which jobs", listed=True),
        ),
    ),
    *_act(
        "/locks/{lock}/release",
        acts.ask_release,
        acts.release,
        BodyField.text("reason", "why; stays on record", most=NOTE_LIMIT, required=True),
        BodyField.digits("fence", "the fence as it was shown", most=2**63 - 1, required=True),
        BodyField.text("typed", "the name of the lock", most=200, required=True),
    ),
    *_act("/doctor/repair", acts.ask_repair, acts.repair, lasts=True),
    *_act("/set-aside/{kind}/{document}/unblock", acts.ask_unblock, acts.unblock),
    _public(
        "/login",
        plain.login,
        text("wanted", "the page to go to", most=512),
        choice("failed", "after a failure", ("1",)),
    ),
    _public("/static/{digest}/{file}", plain.file),
    _public("/static/{digest}/vendor/{file}", plain.file),
)
