"""Resources that jobs share: `/limits`, `/locks`, `/calendars` and `/backfills`."""

from __future__ import annotations

from dataclasses import replace

from solocron.calendars.views import CalendarView
from solocron.effects.locks.listing import LockView
from solocron.errors import NotFoundError
from solocron.service.call import ApiCall
from solocron.service.paging import Listing, page_by_name
from solocron.service.shown import scrubbed
from solocron.views import BackfillView, LimitView

__all__ = ["backfills", "calendar", "calendars", "limits", "locks"]


def limits(call: ApiCall) -> Listing[LimitView]:
    """Return the limits across jobs, and who has their permits."""
    found, now = call.reads.limits(), call.reads.now()
    return page_by_name(found, lambda view: view.name, path=call.path, given=call.given, as_of=now)


def locks(call: ApiCall) -> Listing[LockView]:
    """Return the locks, their holders and their fences."""
    found, now = call.reads.locks(), call.reads.now()
    return page_by_name(found, lambda view: view.name, path=call.path, given=call.given, as_of=now)


def calendars(call: ApiCall) -> Listing[CalendarView]:
    """Return the business calendars at their latest revisions."""
    found, now = call.reads.calendars(), call.reads.now()
    return page_by_name(found, lambda view: view.name, path=call.path, given=call.given, as_of=now)


def calendar(call: ApiCall) -> CalendarView:
    """Return one business calendar."""
    for view in call.reads.calendars():
        if view.name == call.names["calendar"]:
            return view
    raise NotFoundError(f"there is no calendar {call.names['calendar']!r}. Nothing was changed.")


def backfills(call: ApiCall) -> Listing[BackfillView]:
    """Return the backfills that still have slots to start."""
    found = [_shown(view) for view in call.reads.backfills()]
    return page_by_name(
        found, lambda view: f"{view.job}/{view.id}", path=call.path, given=call.given, as_of=call.reads.now()
    )


def _shown(view: BackfillView) -> BackfillView:
    return view if view.note is None else replace(view, note=scrubbed(view.note))
