"""`solocron calendars`: list the business calendars, or the days off of one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from solocron.cli import output
from solocron.cli.arguments import add_listing
from solocron.cli.exits import OK
from solocron.cli.opening import opened
from solocron.clock import from_us
from solocron.errors import NotFoundError

if TYPE_CHECKING:
    from solocron.calendars.views import CalendarView

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("calendar", metavar="NAME", nargs="?", help="the days off of this one")
    add_listing(parser)


def execute(args: Namespace) -> int:
    with opened(args) as client:
        found = client.calendars()
        today = from_us(client.store.clock()).date()
    if args.calendar is not None:
        found = [one for one in found if one.name == args.calendar]
        if not found:
            raise NotFoundError(f"there is no calendar {args.calendar!r}; `solocron calendars` lists them.")
    if args.json:
        return output.dump([_json(one) for one in found])
    if args.calendar is not None:
        for day, said in sorted(found[0].holidays.items()):
            if day >= today:
                output.say(f"{day:%a %Y-%m-%d}  {said}")
        return OK
    rows = []
    for one in found:
        ahead = sorted(day for day in one.holidays if day >= today)
        following = f"{ahead[0]} {one.holidays[ahead[0]]}" if ahead else "-"
        rows.append(
            [one.name, str(one.revision), " ".join(one.weekend), str(len(ahead)), following, " ".join(one.jobs)]
        )
    output.table(["calendar", " revision", "weekend", " days ahead", "next day off", "jobs"], rows)
    return OK


def _json(one: CalendarView) -> dict[str, Any]:
    return {
        "name": one.name,
        "revision": one.revision,
        "weekend": list(one.weekend),
        "holidays": {f"{day}": said for day, said in sorted(one.holidays.items())},
        "jobs": list(one.jobs),
    }
