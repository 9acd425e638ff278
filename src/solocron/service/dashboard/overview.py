"""`/`: is everything all right, what needs a person, which node does what now. `/accounting`: what does not add up."""

from __future__ import annotations

from datetime import datetime, timedelta

from solocron.client.run_listing import WantedRuns
from solocron.errors import EmptyStore
from solocron.service.api.slots import all_accounting
from solocron.service.board.counting import StillCounting
from solocron.service.call import ApiCall, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.pages.fleet import SlotToCome, window_of
from solocron.service.pages.looks import looks_of
from solocron.service.pages.overview import SPANS, CountingPage, EmptyPage, Sums, arguments_of, overview_page, span_of
from solocron.service.pages.why import unaccounted_page
from solocron.service.shown import shown_job, shown_run
from solocron.views import DenseView

__all__ = ["overview", "unaccounted"]

_ATTEMPTS = 600
"""Attempts that are drawn one by one, the newest; older ones of the span are counted in columns."""
_ROWS = 30
"""Running attempts that are listed; the page of runs has all of them."""


def overview(call: ApiCall) -> ShownPage:
    """Show the accounting, what needs a look, what runs, and the fleet."""
    look = Look.at(call)
    try:
        glance = call.board.glance()
    except StillCounting as counting:
        return look.screen(_counting(counting), counting.so_far)
    except EmptyStore as error:
        return look.screen(EmptyPage(why=str(error), store=arguments_of(*call.writes.place)), topics="jobs")
    if not glance.status.jobs:
        return look.screen(EmptyPage(why="", store=arguments_of(*call.writes.place)))
    status, reading = glance.status, look.reading
    age = reading.now - (glance.began_at or reading.now)
    span, wall = call.given["span"] or span_of(age), call.given["tv"] is not None
    window = window_of(reading.now, SPANS[span])
    # Readers by node and readers by job see the same attempts: they are read once for both.
    wanted = WantedRuns(since=window.start)
    page = call.board.kept(("runs", span), lambda: call.reads.runs(wanted, limit=_ATTEMPTS, before=None))
    nodes = call.board.kept(("nodes", span), lambda: call.reads.nodes(ended=True, since=window.start))
    sums, worst = _sums(call, reading.now), tuple(map(shown_job, glance.worst))
    coming = call.board.kept(("to come", span), lambda: call.reads.to_come(window.end))
    to_come = [SlotToCome(job=one.job, slot=one.slot) for one in coming]
    closed = call.board.kept("closed", call.reads.closed_alarms)
    aside = call.reads.set_aside() if status.blocked else []
    dense: tuple[DenseView, ...] = ()
    if page.next is not None:
        oldest = min(one.finished_at or window.now for one in page.runs)
        dense = call.board.kept(("dense", span), lambda: call.reads.dense(window.start, oldest))
    made = overview_page(
        sums=sums,
        nodes=nodes,
        runs=page.runs,
        running=tuple(map(shown_run, status.running[:_ROWS])),
        running_now=len(status.running) + status.more.get("running", 0),
        to_come=to_come,
        looks=looks_of(
            jobs=worst,
            nodes=status.nodes,
            alarms=status.alarms,
            unserved=status.unserved,
            reading=reading,
            links=look.links,
            operates=call.operates,
            aside=aside,
        ),
        reading=reading,
        links=look.links,
        cleared_at=closed[0].until if closed else None,
        lanes=call.given["lanes"],
        span_name=span,
        wall=wall,
        dense=dense,
    )
    drawn = [(run.run, run.attempt, run.status, run.finished_at) for run in page.runs]
    return look.screen(made, sums, nodes, drawn, status.running, status.alarms, worst, to_come, aside)


def unaccounted(call: ApiCall) -> ShownPage:
    """Show the slots that are decided and not on record, and the jobs that could not be compared."""
    look = Look.at(call)
    try:
        call.board.glance()
    except StillCounting as counting:
        return look.screen(_counting(counting), counting.so_far)
    sums = _sums(call, look.reading.now)
    return look.screen(unaccounted_page(sums, reading=look.reading, links=look.links), sums)


def _counting(error: StillCounting) -> CountingPage:
    return CountingPage(hours=error.so_far.hours, of=error.so_far.of)


def _sums(call: ApiCall, now: datetime) -> Sums:
    """Return the accounting as the API tells it."""
    told = call.board.kept("accounting", lambda: all_accounting(call))
    hours = {one.hour: one.counts for one in told.by_hour}
    open_hour = now.replace(minute=0, second=0, microsecond=0)
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
