"""Save a calendar as a revision, and put its jobs under it."""

from __future__ import annotations

from solocron.calendars.revisions import Calendars
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents.calendar import announce, document_of, keep
from solocron.schedules import Calendar
from solocron.stores.contract import Named, Result, Verdict
from solocron.stores.until_known import OPEN_OUTCOMES, TRIES, update_until_known

__all__ = ["save"]


def save(
    calendars: Calendars, wanted: Calendar, *, late_for: int, known: Calendar | None
) -> tuple[Calendar, list[str]]:
    """Write the content as a revision, unless it is the latest already, and put its jobs under it.

    The revision is written before it is announced, and announced before jobs name it: a process that meets its number
    finds it.
    """
    if known is None or known.content() != wanted.content():
        known = _written(calendars, wanted, 0 if known is None else known.revision)
    calendars.fetch([(known.name, known.revision)])
    return known, calendars.follow(late_for)


def _written(calendars: Calendars, wanted: Calendar, latest: int) -> Calendar:
    for revision in range(latest + 1, latest + 1 + TRIES):
        made = Calendar.make(wanted.name, revision, wanted.weekend, wanted.holidays)
        which = Named(Kind.CALENDAR, (document_of(wanted.name, revision),))
        kept = update_until_known(calendars.store, which, lambda doc, now, made=made: keep(doc, body=made.to_json()))  # type: ignore[misc]
        if kept.results[0].verdict is Verdict.DECLINED:
            continue  # another content has this number: a process changes the calendar just now, or died while at it
        _check(kept.results[0], wanted.name)
        _announce(calendars, wanted.name, revision)
        return made
    raise _busy(wanted.name)


def _announce(calendars: Calendars, name: str, revision: int) -> None:
    """Announce a revision. Declined: a later one was announced, which is as if it had come right after this one."""
    announced = update_until_known(
        calendars.store, Named(Kind.CALENDAR, (name,)), lambda doc, now: announce(doc, revision=revision)
    )
    _check(announced.results[0], name)


def _check(result: Result, name: str) -> None:
    if result.verdict in (*OPEN_OUTCOMES, Verdict.BLOCKED):
        raise _busy(name)


def _busy(name: str) -> StoreError:
    return StoreError(f"calendar {name} could not be saved: others keep changing it; try again.")
