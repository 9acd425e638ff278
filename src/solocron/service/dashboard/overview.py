"""`/`: is everything all right, what needs a person, which node does what now. `/accounting`: what does not add up."""

from __future__ import annotations

from datetime import datetime, timedelta

from solocron.client.run_listing import WantedRuns
from solocron.clock import from_us, to_us
from solocron.errors import EmptyStore, InvalidError
from solocron.schedules import instants, load
from solocron.service.api.slots import all_accounting
from solocron.service.call import ApiCall, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.pages.fleet import SlotToCome, window_of
from solocron.service.pages.looks import looks_of
from solocron.service.pages.overview import SPANS, EmptyPage, Sums, arguments_of, overview_page, span_of
from solocron.service.pages.why import unaccounted_page
from solocron.service.shown import shown_job, shown_run
from solocron.views import JobView

__all__ = ["overview", "unaccounted"]

_ATTEMPTS = 2_000
_SLOTS = 200
_OF_A_JOB = 40


def overview(call: ApiCall) -> ShownPage:
    """Show the accounting, what needs a look, what runs, and the fleet."""
    look = Look.at(call)
    try:
        glance = call.board.glance()
    except EmptyStore as error:
        return look.screen(EmptyPage(why=str(error), store=arguments_of(*call.writes.place)), topics="jobs")
    if not glance.jobs:
        return look.screen(EmptyPage(why="", store=arguments_of(*call.writes.place)))
    status, reading = glance.status, look.reading
    begun = min(one.created_at for one in glance.jobs)
    span, wall = call.given["span"] or span_of(reading.now - begun), call.given["tv"] is not None
    window = window_of(reading.now, SPANS[span])
    page = call.reads.runs(WantedRuns(since=window.start), limit=_ATTEMPTS, before=None)
    nodes = call.reads.nodes(ended=True, since=window.start)
    sums, jobs = _sums(call), tuple(map(shown_job, glance.jobs))
    closed = call.reads.closed_alarms()
    made = overview_page(
        sums=sums,
        nodes=nodes,
        runs=page.runs,
        running=tuple(map(shown_run, status.running)),
        to_come=slots_ahead(jobs, reading.now, window.end),
        looks=looks_of(
            jobs=jobs,
            nodes=status.nodes,
            alarms=status.alarms,
            unserved=status.unserved,
            reading=reading,
            links=look.links,
            operates=call.operates,
        ),
        reading=reading,
        links=look.links,
        cleared_at=closed[0].until if closed else None,
        lanes=call.given["lanes"],
        span_name=span,
        wall=wall,
        all_drawn=page.next is None,
    )
    return look.screen(made, sums, nodes, page.runs, status.running, status.alarms, jobs)


def unaccounted(call: ApiCall) -> ShownPage:
    """Show the slots that are decided and not on record, and the jobs that could not be compared."""
    look = Look.at(call)
    sums = _sums(call)
    return look.screen(unaccounted_page(sums, reading=look.reading, links=look.links), sums)


def _sums(call: ApiCall) -> Sums:
    """Return the accounting as the API tells it."""
    told = all_accounting(call)
    hours = {one.hour: one.counts for one in told.by_hour}
    open_hour = call.reads.now().replace(minute=0, second=0, microsecond=0)
    return Sums(
        hours=told.hours,
        due=told.due,
        counts=told.counts,
        taken_over=told.taken_over,
        done_twice=told.done_twice,
        unaccounted=told.unaccounted,
        missing=told.missing,
        checked_jobs=told.checked_jobs,
        of_jobs=told.of_jobs,
        left_out=told.left_out,
        by_hour=tuple(hours.get(open_hour - timedelta(hours=back), {}) for back in range(told.hours - 1, -1, -1)),
    )


def slots_ahead(jobs: tuple[JobView, ...], now: datetime, end: datetime) -> list[SlotToCome]:
    """Return the slots to come until an instant, bounded; of a schedule that only code knows the next one alone."""
    found: list[SlotToCome] = []
    soon = sorted((job for job in jobs if job.next is not None and job.next <= end), key=lambda job: job.next or now)
    for job in soon:
        if len(found) >= _SLOTS:
            break
        found += [SlotToCome(job=job.name, slot=slot) for slot in _of(job, now, end)]
    if not found:  # nothing within the window: the first ones after it
        later = sorted((job.next, job.name) for job in jobs if job.next is not None)
        found = [SlotToCome(job=name, slot=slot) for slot, name in later[:6]]
    return found


def _of(job: JobView, now: datetime, end: datetime) -> list[datetime]:
    assert job.next is not None
    try:
        schedule = None if job.spec is None else load(job.spec)
    except InvalidError:
        schedule = None
    found, at = [job.next], to_us(job.next)
    while schedule is not None and len(found) < _OF_A_JOB:
        following = instants.after(schedule, at)
        if following is None or from_us(following) > end:
            break
        found.append(from_us(following))
        at = following
    return [one for one in found if one > now - timedelta(seconds=1)]
