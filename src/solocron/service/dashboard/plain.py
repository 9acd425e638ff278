"""Pages without the store: login, explain, find; and the files that every page needs."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from solocron.client.job_listing import WantedJobs
from solocron.clock import SystemClock, from_us
from solocron.errors import EmptyStore, InvalidError, NotFoundError
from solocron.schedules import load_zone
from solocron.service.api.explain import explain as explained
from solocron.service.api.explain import schedule_of
from solocron.service.call import ApiCall, File, Redirect, ShownPage
from solocron.service.dashboard.looking import Look, alone
from solocron.service.pages.assets import static_files, static_hash
from solocron.service.pages.explain import ExplainRules, YearDay, days_of_a_year, explain_page
from solocron.service.pages.find import find_page
from solocron.service.pages.forms import LoginPage
from solocron.service.parameters import PATH_PATTERNS
from solocron.service.problems import ProblemError
from solocron.views import JobView

__all__ = ["explain", "file", "find", "login"]

_FOUND = 20
_SLOTS = 10
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def login(call: ApiCall) -> ShownPage:
    """Show the form of a login."""
    failed = call.given["failed"] is not None
    page = LoginPage(action=f"{call.head.base}/login", wanted=call.given["wanted"] or "", failed=failed)
    return ShownPage(page=page, frame=alone(call.head), seen=repr(page))


def file(call: ApiCall) -> File:
    """Send a file of the dashboard."""
    name = call.names["file"]
    if "/vendor/" in call.path:
        name = f"vendor/{name}"
    found = static_files().get(name)
    if found is None or call.names["digest"] != static_hash():
        raise ProblemError(404, "There is no such file in this release. Load the page again.")
    return File(content=found.content, kind=found.media_type)


def explain(call: ApiCall) -> ShownPage:
    """Show what an expression means."""
    look, given = Look.at(call), call.given
    rules = ExplainRules(
        expression=given["expression"] or "", zone=given["zone"] or "UTC", gap=given["gap"] or "",
        fold=given["fold"] or "",
    )  # fmt: skip
    words, problem = "", ""
    slots, days, notes = list[datetime](), tuple[YearDay, ...](), tuple[str, ...]()
    if rules.expression:
        asked = replace(call, given={**given, "tz": rules.zone, "name": None, "n": _SLOTS})
        try:
            told, schedule = explained(asked), schedule_of(asked)
            words, notes = told.description, told.notes
            slots = [slot.astimezone(load_zone(told.zone).info) for slot in told.next]
            days = days_of_a_year(schedule, from_us(SystemClock().wall()))
        except InvalidError as error:
            problem = str(error)
    page = explain_page(
        rules=rules, words=words, slots=slots, days=days, notes=notes, problem=problem, reading=look.reading,
        links=look.links,
    )  # fmt: skip
    return look.screen(page, page.words, slots, topics="")


def find(call: ApiCall) -> ShownPage | Redirect:
    """Go to what a name means if it means one thing; else list what it may mean."""
    look, q = Look.at(call), (call.given["q"] or "").strip()
    if re.fullmatch(PATH_PATTERNS["run"], q):
        return Redirect(look.links.run(q))
    try:
        glance = call.board.glance_if_counted()
    except EmptyStore:
        return Redirect(look.links.jobs(q=q))
    words = q.lower().split()
    clock = _TIME.fullmatch(words[-1]) if len(words) > 1 else None
    if clock is not None:
        words.pop()
    jobs = call.reads.jobs(WantedJobs(words=tuple(words)), limit=_FOUND).jobs if words else ()
    listed = call.reads.nodes(ended=False) if glance is None else glance.status.nodes
    nodes = [one for one in listed if words and q.lower() in one.node.lower()]
    exact = [one for one in jobs if one.name == q] or _named(call, q)
    if clock is not None and len(jobs) == 1:
        at = _last_time(int(clock[1]), int(clock[2]), jobs[0].zone, look.reading.now)
        return Redirect(look.links.job(jobs[0].name, "why", at=at.isoformat()))
    if exact or (len(jobs) == 1 and not nodes):
        return Redirect(look.links.job((exact or list(jobs))[0].name))
    if len(nodes) == 1 and not jobs:
        return Redirect(look.links.node(nodes[0].session))
    page = find_page(q, jobs=jobs, nodes=nodes[:_FOUND], reading=look.reading, links=look.links)
    return look.screen(page, q, [one.name for one in jobs], topics="")


def _named(call: ApiCall, name: str) -> list[JobView]:
    """Return the job of this very name, which may not be among the first that have it in theirs."""
    if not re.fullmatch(PATH_PATTERNS["job"], name):
        return []
    try:
        return [call.reads.job(name)]
    except NotFoundError:
        return []


def _last_time(hour: int, minute: int, zone: str, now: datetime) -> datetime:
    """Return the last time that the clocks of a zone showed this."""
    local = now.astimezone(load_zone(zone).info)
    found = local.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return found if found <= local else found - timedelta(days=1)
