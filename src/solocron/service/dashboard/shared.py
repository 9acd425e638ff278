"""Alarms, what jobs share, the audit and the doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from solocron.errors import EmptyStore, NotFoundError
from solocron.service.audit_list import AuditLines, list_audit
from solocron.service.call import ApiCall, ShownPage
from solocron.service.dashboard.looking import Look
from solocron.service.pages.alarms import alarms_page
from solocron.service.pages.audit import audit_page
from solocron.service.pages.listing import doctor_page
from solocron.service.pages.looks import aside_entry
from solocron.service.pages.shared import calendar_page, calendars_page, limits_page, locks_page
from solocron.service.paging import make_cursor, read_cursor
from solocron.views import AlarmsView

__all__ = ["alarms", "audit", "calendar", "calendars", "doctor", "limits", "locks"]

T = TypeVar("T")

_ROWS = 200
_PAGE = 50


def alarms(call: ApiCall) -> ShownPage:
    """Show the open alarms, or those whose causes are gone."""
    look = Look.at(call)
    try:
        view = call.reads.alarms()
        closed = call.reads.closed_alarms()[:_ROWS] if call.given["state"] == "closed" else None
    except EmptyStore:
        view, closed = AlarmsView(alarms=(), messages=(), silences=()), None
    page = alarms_page(view, closed=closed, reading=look.reading, links=look.links, operates=call.operates)
    return look.screen(page, view, closed, topics="alarms")


def limits(call: ApiCall) -> ShownPage:
    """Show the limits across jobs."""
    look = Look.at(call)
    found = _of(call.reads.limits)[:_ROWS]
    return look.screen(limits_page(found, reading=look.reading, links=look.links), found)


def locks(call: ApiCall) -> ShownPage:
    """Show the locks."""
    look = Look.at(call)
    found = _of(call.reads.locks)[:_ROWS]
    page = locks_page(found, reading=look.reading, links=look.links, operates=call.operates)
    return look.screen(page, found)


def calendars(call: ApiCall) -> ShownPage:
    """Show the business calendars."""
    look = Look.at(call)
    found = _of(call.reads.calendars)[:_ROWS]
    return look.screen(calendars_page(found, reading=look.reading, links=look.links), found)


def calendar(call: ApiCall) -> ShownPage:
    """Show one business calendar."""
    look, name = Look.at(call), call.names["calendar"]
    found = next((one for one in call.reads.calendars() if one.name == name), None)
    if found is None:
        raise NotFoundError(f"there is no calendar {name!r}. Nothing was changed.")
    return look.screen(calendar_page(found, reading=look.reading, links=look.links), found)


def audit(call: ApiCall) -> ShownPage:
    """Show who asked for what, and what nodes did by themselves."""
    look, given = Look.at(call), call.given
    filters = {key: value for key, value in given.items() if key not in ("tz", "done")}
    try:
        page = list_audit(call, limit=_PAGE, after=read_cursor(call.path, filters))
    except EmptyStore:
        page = AuditLines(entries=(), next=None, looked_back_to=None)
    made = audit_page(
        page.entries,
        reading=look.reading,
        links=look.links,
        who=given["who"] or "",
        subject=given["subject"] or "",
        older=None if page.next is None else look.here(cursor=make_cursor(page.next, call.path, filters)),
        newer=look.here(cursor=None) if given["cursor"] else None,
    )
    return look.screen(made, page.entries)


def doctor(call: ApiCall) -> ShownPage:
    """Show what the doctor finds."""
    look = Look.at(call)
    checks, aside = call.examination.look().checks, _of(call.reads.set_aside)
    entries = tuple(aside_entry(one, look.reading, look.links, call.operates) for one in aside)
    return look.screen(doctor_page(checks, links=look.links, operates=call.operates, aside=entries), checks, aside)


def _of(read: Callable[[], list[T]]) -> list[T]:
    """Return what a read finds; nothing where nothing is yet."""
    try:
        return read()
    except EmptyStore:
        return []
