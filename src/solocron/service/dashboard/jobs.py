"""`/jobs`: which are not well, what is next; `/jobs/{job}`: what became of each slot; `/jobs/{job}/why`: why."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise

from solocron.client.job_listing import JobPage, WantedJobs
from solocron.client.read_job import ReadJob
from solocron.client.run_listing import WantedRuns
from solocron.clock import to_us
from solocron.errors import EmptyStore, InvalidError, NotFoundError
from solocron.model.change import Kind
from solocron.schedules import dst_notes, lint
from solocron.service.api.runs import read_run_cursor
from solocron.service.board.glance import LATE
from solocron.service.call import ApiCall, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.dashboard.refusals import losers_of, refused_of
from solocron.service.pages.backfills import backfill_entries
from solocron.service.pages.details import job_page
from solocron.service.pages.fates import fates_of_slots
from solocron.service.pages.lists import JobsAsked, jobs_page
from solocron.service.pages.spans import SlotsSpan
from solocron.service.pages.why import why_page
from solocron.service.paging import make_cursor
from solocron.service.reads import MOST_NOT_WELL
from solocron.service.shown import shown_job, shown_run
from solocron.stores.contract import Blocked
from solocron.views import JobView, RunView, SlotView, WhyView

__all__ = ["job", "jobs", "why"]

_PAGE = 100
_ROWS = 30
_DOTS = 120
_AHEAD = 6
_NOT_WELL = frozenset(["failed", "timed_out", "lost", "missed", "dropped", "skipped", "cancelled"])
_FILTERS = {"": frozenset[str](), "not_well": _NOT_WELL, "running": frozenset(["running"])}


def jobs(call: ApiCall) -> ShownPage:
    """Show the jobs, those first that need a look."""
    look, given = Look.at(call), call.given
    asked = JobsAsked(
        q=given["q"] or "", state=given["state"] or "", pool=given["pool"] or "", tag=given["tag"] or "",
        sort=given["sort"],
    )  # fmt: skip
    wanted = WantedJobs(
        words=(asked.q,) if asked.q else (),
        pools=frozenset([asked.pool] if asked.pool else []),
        states=frozenset([asked.state] if asked.state else []),
        tags=frozenset([asked.tag] if asked.tag else []),
        late_after=LATE,
    )
    try:
        glance = call.board.glance_if_counted()
        numbers = (None, None) if glance is None else (glance.status.jobs, glance.not_well)
        found = _listed(call, wanted)
    except EmptyStore:
        numbers, found = (0, 0), JobPage(())
    shown = tuple(map(shown_job, found.jobs))
    call.watcher.note_shown(shown)
    strips = call.board.strips(shown)
    page = jobs_page(
        shown,
        strips=strips,
        asked=asked,
        total=numbers[0],
        not_well=numbers[1],
        counted_to=MOST_NOT_WELL,
        reading=look.reading,
        links=look.links,
        operates=call.operates,
        older=None if found.next is None else look.here(after=found.next),
        newer=look.here(after=None) if given["after"] else None,
    )
    return look.screen(page, shown, sorted(strips), topics="runs,jobs,audit")


def _listed(call: ApiCall, wanted: WantedJobs) -> JobPage:
    """Return the page after a job; the first one if that job is not listed any more."""
    order, after = call.given["sort"], call.given["after"] or ""
    try:
        return call.reads.jobs(wanted, limit=_PAGE, after=after, order=order)
    except NotFoundError:
        return call.reads.jobs(wanted, limit=_PAGE, order=order)


def job(call: ApiCall) -> ShownPage:
    """Show one job: every slot, the story of one of them, its runs, and what happens when."""
    given, name = call.given, call.names["job"]
    found = call.reads.read_job(name)
    view = shown_job(found.view())
    call.watcher.note_shown([view])
    look = Look.at(call, own=view.zone)
    reading, now = look.reading, look.reading.now
    upcoming = _upcoming(found, view)
    history = call.reads.runs(WantedRuns(job=name), limit=_DOTS, before=None)
    span = SlotsSpan.chosen(given["span"], _rhythm(view, upcoming, history.runs))
    slots = _slots(call, view, now - span.back, now + span.ahead)
    lost = {run.run for run in history.runs if run.status == "lost"}
    if any(one.attempts > 1 for one in slots):
        wanted = WantedRuns(job=name, statuses=frozenset(["lost"]), since=now - span.back)
        lost |= {run.run for run in call.reads.runs(wanted, limit=200, before=None).runs}
    fates = fates_of_slots(slots, lost=lost, zone=reading.zone)
    chosen = given["slot"] or _last(slots)
    told = None if chosen is None else _told(call, name, chosen)
    attempts = _attempts(call, next((one for one in slots if one.slot == chosen), None))
    filters = {"job": name, "status": given["status"], "cursor": given["cursor"]}
    before = read_run_cursor(call.path, filters)
    table = call.reads.runs(WantedRuns(job=name, statuses=_FILTERS[given["status"] or ""]), limit=_ROWS, before=before)
    older = None if table.next is None else look.here(cursor=make_cursor(str(table.next), call.path, filters))
    losers = losers_of(call, (*attempts, *table.runs))
    refused = refused_of(losers, (*attempts, *table.runs))
    audit, aside = call.reads.audit_of(name), _aside(call, name)
    page = job_page(
        view,
        fates=fates,
        runs=tuple(map(shown_run, table.runs)),
        history=history.runs,
        reading=reading,
        links=look.links,
        operates=call.operates,
        chosen=chosen if given["slot"] or chosen in {one.slot for one in slots} else None,
        attempts=tuple(map(shown_run, attempts)),
        refused=refused,
        losers=losers,
        why=told,
        span=span,
        zones=look.zone_ways(short=True),
        status=given["status"] or "",
        older=older,
        upcoming=[(slot, _note(slot, following)) for slot, following in _pairs(upcoming)],
        notes=_notes(found, now, upcoming),
        days_off=_days_off(call, view),
        skipped=sum(one.status == "skipped" and view.paused is not None and one.slot > view.paused.at for one in slots),
        lease_s=_lease_of(call),
        backfills=backfill_entries(found.backfills, reading, look.links, operates=call.operates),
        aside=aside,
        audit=audit,
        here=look.here,
    )
    return look.screen(page, view, slots, table.runs, attempts, refused, told, audit, aside, topics=f"job:{name}")


def why(call: ApiCall) -> ShownPage:
    """Show why a slot did or did not run: a verdict, and the facts in the order in which one looks."""
    name = call.names["job"]
    look = Look.at(call, own=call.reads.read_job(name).zone)
    told = call.reads.why(name, look.instant(call.given["at"]))
    page = why_page(told, reading=look.reading, links=look.links, at=look.field(call.given["at"] or told.slot))
    return look.screen(page, told, topics=f"job:{name}")


def _upcoming(found: ReadJob, view: JobView) -> list[datetime]:
    if view.spec is None:
        return []
    try:
        return found.upcoming(_AHEAD)
    except InvalidError:  # only code knows its schedule
        return []


def _rhythm(view: JobView, upcoming: list[datetime], runs: tuple[RunView, ...]) -> timedelta | None:
    """Return the distance of two slots: of those to come, else of those on record."""
    slots = upcoming if len(upcoming) > 1 else sorted({run.slot for run in runs if run.origin == "schedule"})
    apart = sorted(after - before for before, after in pairwise(slots))
    return apart[len(apart) // 2] if apart else None


def _slots(call: ApiCall, view: JobView, start: datetime, end: datetime) -> list[SlotView]:
    if view.spec is None:
        return []
    try:
        begun = max(start, view.created_at, view.defined_at or start)
        return [one for one in call.reads.slots(view.name, begun, end) if one.status != "not defined"]
    except InvalidError:  # only code knows its schedule, or it has too many slots there
        return []


def _last(slots: list[SlotView]) -> datetime | None:
    """Return the slot whose story is told unasked: the last one that was decided."""
    return next((one.slot for one in reversed(slots) if one.status not in ("to come", "due")), None)


def _told(call: ApiCall, name: str, slot: datetime) -> WhyView | None:
    try:
        return call.reads.why(name, slot)
    except InvalidError:
        return None


def _attempts(call: ApiCall, slot: SlotView | None) -> list[RunView]:
    if slot is None or slot.run is None:
        return []
    try:
        return call.reads.run(slot.run)[1]
    except NotFoundError:
        return []


def _lease_of(call: ApiCall) -> float | None:
    glance = call.board.glance_if_counted()
    return None if glance is None else next((node.lease.total_seconds() for node in glance.status.nodes), None)


def _aside(call: ApiCall, name: str) -> Blocked | None:
    """Return what is known of a job whose document is set aside."""
    glance = call.board.glance_if_counted()
    if glance is None or name not in glance.status.blocked:
        return None
    return next((one for one in call.reads.set_aside() if (one.kind, one.name) == (Kind.JOB, name)), None)


def _pairs(upcoming: list[datetime]) -> list[tuple[datetime, datetime | None]]:
    return list(zip(upcoming, [*upcoming[1:], None], strict=True))[:5]


def _note(slot: datetime, following: datetime | None) -> str:
    """Return what a clock change does between a slot and the next one."""
    if following is None or slot.utcoffset() == following.utcoffset():
        return ""
    return f"the clocks change before {following:%H:%M}"


def _notes(found: ReadJob, now: datetime, upcoming: list[datetime]) -> list[str]:
    try:
        schedule = found.schedule()
    except InvalidError:
        return []
    if schedule is None:
        return []
    far = min((upcoming[-1] - now if upcoming else timedelta()) + timedelta(days=1), timedelta(days=60))
    return [*lint(schedule, to_us(now)), *dst_notes(schedule, to_us(now), far)]


def _days_off(call: ApiCall, view: JobView) -> dict[date, str]:
    if view.calendar is None:
        return {}
    found = next((one for one in call.reads.calendars() if one.name == view.calendar), None)
    return {} if found is None else dict(found.holidays)
