"""Pure time: rules in, instants out. No clock, no store; the same definition gives the same slots on every node."""

from solocron.schedules import instants
from solocron.schedules.at import At
from solocron.schedules.bounded import Bound, Bounded, rule_of
from solocron.schedules.calendar import RULES, WEEKDAYS, Calendar, Calendared
from solocron.schedules.contract import Schedule
from solocron.schedules.cron import Cron
from solocron.schedules.every import Every
from solocron.schedules.explain import dst_notes, lint
from solocron.schedules.spec import dump, load
from solocron.schedules.spread import Spread, spread
from solocron.schedules.zone import load_zone, zone_data_version

__all__ = [
    "RULES",
    "WEEKDAYS",
    "At",
    "Bound",
    "Bounded",
    "Calendar",
    "Calendared",
    "Cron",
    "Every",
    "Schedule",
    "Spread",
    "dst_notes",
    "dump",
    "instants",
    "lint",
    "load",
    "load_zone",
    "rule_of",
    "spread",
    "zone_data_version",
]
