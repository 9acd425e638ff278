"""`Look`: one reader looking at one page: the zone in which it tells times, its addresses, and its frame."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from solocron.clock import SystemClock, from_us
from solocron.errors import EmptyStore
from solocron.schedules import load_zone
from solocron.service.board.glance import Glance
from solocron.service.call import ApiCall, ShownPage
from solocron.service.pages.assets import static_hash
from solocron.service.pages.frame import Frame
from solocron.service.pages.links import Links
from solocron.service.pages.parts import Choice, Choices
from solocron.service.pages.render import DashboardPage
from solocron.service.pages.words import Reading
from solocron.service.parameters import choice, text
from solocron.service.reads import StatusAnswer, Whereabouts
from solocron.service.request import RequestHead
from solocron.service.zones import checked_zone
from solocron.version import __version__

__all__ = ["COMMON", "DONE", "Look", "alone"]

DONE = {
    "paused": "Paused.",
    "resumed": "Resumed.",
    "triggered": "A run was added.",
    "rerun": "It runs once more.",
    "reruns": "They run once more.",
    "backfilled": "The backfill begins.",
    "cancelled": "Cancelled.",
    "asked": "Its node was asked to stop it.",
    "released": "Released.",
    "unblocked": "It is tried again.",
    "repaired": "Repaired what could be repaired.",
    "sound": "There was nothing to repair.",
}
"""What an act has done, in words of ours: the address of the page that follows names one of them."""
_UNDONE_BY = {"paused": "resume", "resumed": "pause"}
COMMON = (
    text("tz", "the zone in which times are told: `utc`, `job` or a name", most=64),
    choice("done", "what was just done", tuple(DONE)),
)
"""The parameters of every page."""
_PASSING = re.compile(r"lease_left_s=[^,)]*")
"""What differs between two looks at the same."""
_KINDS = {
    "sqlite": "SQLite",
    "postgresql": "PostgreSQL",
    "postgres": "PostgreSQL",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "redis": "Redis",
    "rediss": "Redis",
    "valkey": "Valkey",
    "valkeys": "Valkey",
    "memory": "memory",
}


def alone(head: RequestHead, *, csrf: str = "") -> Frame:
    """Return the frame of a page that stands alone: a login, a problem."""
    reading = Reading(now=from_us(SystemClock().wall()), zone=UTC, zone_name="UTC")
    return Frame(
        links=Links(head.base, static_hash()), reading=reading, namespace="", store="", tier="", place="",
        round_trip_ms=None, release=__version__, who="", role="", csrf=csrf,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """A request for a page."""

    call: ApiCall
    links: Links
    reading: Reading
    chosen: str
    """The choice of zone: empty, `utc`, `job` or a name."""
    own: str | None
    """The zone of the page's job."""

    @classmethod
    def at(cls, call: ApiCall, *, own: str | None = None) -> Look:
        """Begin to look; `own` is the zone of the job that the page shows, and its default."""
        chosen = call.given.get("tz") or ""
        if chosen == "utc" or (not chosen and own is None) or (chosen == "job" and own is None):
            name = "UTC"
        else:
            name = (own or "UTC") if chosen in ("", "job") else checked_zone(chosen)
        zone = load_zone(name)
        kept = chosen if chosen not in ("", "job") else ""
        try:
            now = call.reads.now()
        except EmptyStore:
            now = from_us(SystemClock().wall())
        reading = Reading(now=now, zone=zone.info, zone_name=name.rpartition("/")[2].replace("_", " "))
        return cls(call, Links(call.head.base, static_hash(), kept), reading, chosen, own)

    @property
    def zone(self) -> str:
        """The whole name of the zone, for the forms of the page."""
        return str(getattr(self.reading.zone, "key", "UTC"))

    def instant(self, given: datetime | None) -> datetime | None:
        """Return an instant that may be a time on the clocks of this zone."""
        return given if given is None or given.utcoffset() is not None else given.replace(tzinfo=self.reading.zone)

    def field(self, at: datetime | None) -> str:
        """Return an instant as a field of a form shows it, on the clocks of this zone."""
        return "" if at is None else f"{self.reading.local(at):%Y-%m-%dT%H:%M}"

    def screen(
        self,
        page: DashboardPage,
        *seen: object,
        topics: str = "runs,nodes,alarms,jobs,audit",
        status: int = 200,
        problem: bool = False,
    ) -> ShownPage:
        """Return the page in its frame; `seen` are the views from which it was made."""
        glance, where = None, None
        try:
            glance = self.call.board.glance_if_counted()
            where = self.call.reads.whereabouts() if glance is None else glance.status
        except EmptyStore:
            pass
        told = None if problem else _PASSING.sub("", repr((seen, self.chosen, self.call.given)))
        return ShownPage(page=page, frame=self._frame(glance, where, topics), seen=told, status=status)

    def here(self, **changes: str | None) -> str:
        """Return the address of this page with other parameters; None leaves one out."""
        given = [(key, value) for key, value in parse_qsl(self.call.head.query) if key not in changes]
        given += [(key, value) for key, value in changes.items() if value]
        asked = urlencode([pair for pair in given if pair[0] != "done"])
        return f"{self.call.head.base}{self.call.head.path}" + (f"?{asked}" if asked else "")

    def _frame(self, glance: Glance | None, where: Whereabouts | StatusAnswer | None, topics: str) -> Frame:
        call, status = self.call, None if glance is None else glance.status
        assert call.caller is not None
        scheme, _, place = ("" if where is None else where.store).partition("://")
        done = call.given.get("done")
        return Frame(
            links=self.links,
            reading=self.reading,
            namespace="" if where is None else where.namespace,
            namespaces=self._namespace_ways("" if where is None else where.namespace),
            store=_KINDS.get(scheme.partition("+")[0], scheme),
            tier="" if where is None else where.tier,
            place=place.removeprefix("/") if scheme == "sqlite" else place,  # what follows is the path as it is
            round_trip_ms=None if status is None else status.check["round_trip_ms"],
            release=__version__,
            who=call.who,
            role="operate" if call.operates else "read",
            csrf=call.caller.csrf or "",
            counts={} if status is None else _counts(glance, status),
            zones=self.zone_ways(),
            topics=topics,
            streams=call.live,
            done="" if done is None else DONE[done],
            undo=self._undo(done),
        )

    def _namespace_ways(self, here: str) -> Choices | None:
        """Return the namespaces between which this reader may choose; None if there is but one."""
        found = self.call.namespaces
        made = tuple(Choice(label=name, href=address, chosen=name == here) for name, address in found.items())
        return Choices(label="Namespace", choices=made) if len(made) > 1 else None

    def _undo(self, done: str | None) -> str:
        """Return the address of the act that takes back what was just done to the job of this page."""
        back, job = _UNDONE_BY.get(done or ""), self.call.names.get("job")
        return self.links.job(job, back) if back and job and self.call.operates else ""

    def zone_ways(self, *, short: bool = False) -> Choices:
        """Return the zones in which the page can tell its times; a script adds the reader's own."""
        ways = [("UTC", self.here(tz="utc" if self.own else None), self.zone == "UTC")]
        if self.own not in (None, "UTC"):
            ways.insert(0, (f"{self.own}, the job's", self.here(tz=None), self.zone == self.own))
        if self.zone not in ("UTC", self.own):
            ways.append((self.zone, self.here(), True))
        made = tuple(
            Choice(label=_short(label) if short else label, href=href, chosen=chosen) for label, href, chosen in ways
        )
        return Choices(label="Zone", choices=made)


def _short(zone: str) -> str:
    return zone.partition(",")[0].rpartition("/")[2].replace("_", " ")


def _counts(glance: Glance | None, status: Any) -> dict[str, int]:
    return {
        "jobs": status.jobs,
        "nodes": sum(node.state == "live" for node in status.nodes),
        "alarms": sum(alarm.counts for alarm in status.alarms),
    }
