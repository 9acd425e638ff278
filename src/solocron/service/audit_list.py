"""The audit as it is listed: acts of callers, and beside them what nodes did by themselves; newest first.

Acts are documents of the audit, takeovers are in the log, burials in the sessions, pauses after failures in the jobs.
Each is read in order and bounded, and they are merged by time. A cursor is the place of the last line, so that every
line is on one page.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from solocron.clock import from_us, to_us
from solocron.model.documents.audit import name_before
from solocron.model.documents.run import job_of
from solocron.service.call import ApiCall
from solocron.service.paging import bad_cursor
from solocron.service.reads import NODES, Deeds, LostPage
from solocron.service.shown import redacted, scrubbed
from solocron.views import AuditView, RunView, TakeoverView
from solocron.views.timeline import takeovers_of

__all__ = ["AuditLines", "list_audit", "shown_act"]

_BURIALS_FOR = timedelta(days=7)
"""How far back burials are listed: no index finds them among the sessions that ended well."""
_ACT, _TAKEOVER, _LASTING = range(3)
_MOST_RUNS = 200
_MOST_TIED = 1_000
_FAR = 10**17
"""Microseconds beyond any instant of the record."""


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """Place of a line: its instant, what it is, and which of its kind.

    An act is told apart from others of its microsecond by a count, a takeover by attempt and run, the rest by name.
    Where a search for acts was broken off, the name of the last one that was looked at follows the count.
    """

    at: int
    rank: int
    which: str

    def __str__(self) -> str:
        return f"{self.at}/{self.rank}/{self.which}"

    @classmethod
    def parse(cls, text: str) -> AuditPlace:
        """Read what `str` wrote; raise a 400 for anything else."""
        try:
            at, rank, which = text.split("/", 2)
            place = cls(int(at), int(rank), which)
            number = 0 if place.rank == _LASTING else int(which.partition("/")[0])
        except ValueError:
            raise bad_cursor("it was not made here") from None
        if place.rank not in (_ACT, _TAKEOVER, _LASTING) or not 0 <= place.at < _FAR or not 0 <= number < _MOST_TIED:
            raise bad_cursor("it was not made here")
        return place


@dataclass(frozen=True, slots=True)
class _AuditLine:
    place: AuditPlace
    view: AuditView | None
    """None where a read was broken off: what follows is on the next page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLines:
    """A page of the list."""

    entries: tuple[AuditView, ...]
    next: str | None
    """Where the next page begins; None if there is nothing more."""
    looked_back_to: datetime | None
    """If the search was broken off before the page was full: how far back it came."""


def list_audit(call: ApiCall, *, limit: int, after: str | None) -> AuditLines:
    """Return a page of the audit with what nodes did, as the request filters it by `who` and `subject`."""
    place = None if after is None else AuditPlace.parse(after)
    lost = _lost(call, limit, place)
    deeds = call.reads.deeds(_maybe_paused(call), (run for _, run in lost.runs))
    sources = [_acts(call, limit, place), _takeovers(call, lost, deeds), _lasting(call, deeds, place)]
    entries: list[AuditView] = []
    last: AuditPlace | None = None
    for line in heapq.merge(*sources, key=lambda one: (-one.place.at, one.place.rank)):
        if line.view is None:
            reached = None if len(entries) == limit else from_us(line.place.at)
            return AuditLines(entries=tuple(entries), next=str(line.place), looked_back_to=reached)
        if len(entries) == limit:
            return AuditLines(entries=tuple(entries), next=str(last), looked_back_to=None)
        entries.append(line.view)
        last = line.place
    return AuditLines(entries=tuple(entries), next=None, looked_back_to=None)


def _acts(call: ApiCall, limit: int, place: AuditPlace | None) -> list[_AuditLine]:
    """Return what callers asked for, one more than fits."""
    known, after, seen = 0, None, Counter[int]()
    if place is not None and place.rank == _ACT:
        count, _, after = place.which.partition("/")
        if after:
            seen[place.at] = int(count)
        else:
            known, after = int(count), name_before(place.at + 1)
    elif place is not None:
        after = name_before(place.at)
    wanted = min(limit + known + 1, 1_000)
    page = call.reads.audit(who=call.given["who"], subject=call.given["subject"], limit=wanted, after=after)
    lines = list[_AuditLine]()
    for act in page.entries:
        at = to_us(act.at)
        seen[at] += 1
        if place is None or at < place.at or seen[at] > known:
            lines.append(_AuditLine(AuditPlace(at, _ACT, str(seen[at])), shown_act(act)))
    if page.next is not None:
        at = to_us(page.looked_back_to or page.entries[-1].at)
        lines.append(_AuditLine(AuditPlace(at, _ACT, f"{seen[at]}/{page.next}"), None))
    return lines


def shown_act(act: AuditView) -> AuditView:
    """Return an entry as it may be shown."""
    return replace(act, before=redacted(act.before), after=redacted(act.after), result=scrubbed(act.result))


def _lost(call: ApiCall, limit: int, place: AuditPlace | None) -> LostPage:
    """Return the attempts that were lost, from the place on."""
    subject = call.given["subject"]
    before = until = None
    if place is not None and place.rank == _TAKEOVER:
        attempt, _, run = place.which.partition("/")
        before = (place.at, run, int(attempt))
    elif place is not None:
        until = place.at + 1 if place.rank == _ACT else place.at
    job = None if subject is None else job_of(subject) or subject
    return call.reads.lost(job=job, before=before, until=until, limit=min(limit + 1, _MOST_RUNS))


def _takeovers(call: ApiCall, page: LostPage, deeds: Deeds) -> list[_AuditLine]:
    """Return the attempts that were lost, each with the node that took its run over, if one did."""
    lines = list[_AuditLine]()
    taken = {(one.run, one.attempt): one for one in takeovers_of(deeds.attempts)}
    for (at, id, attempt), run in page.runs:
        view = _of_takeover(from_us(at), run, taken.get((id, attempt)))
        if _wanted(call, view, (run.run, run.job)):
            lines.append(_AuditLine(AuditPlace(at, _TAKEOVER, f"{attempt}/{id}"), view))
    if page.next is not None:
        at, id, attempt = page.next
        lines.append(_AuditLine(AuditPlace(at, _TAKEOVER, f"{attempt}/{id}"), None))
    return lines


def _of_takeover(at: datetime, lost: RunView, taken: TakeoverView | None) -> AuditView:
    note = f"{lost.node} lost attempt {lost.attempt}: {lost.reason or 'its lease ran out'}"
    before = {"node": lost.node, "attempt": lost.attempt, "fence": lost.fence}
    if taken is None:
        return replace(_by_node(at, "loss", lost.run, who=None, note=note, before=before), result="not taken over")
    after = {"node": taken.taken_by, "attempt": lost.attempt + 1, "fence": taken.taken_fence}
    return _by_node(at, "takeover", lost.run, who=taken.taken_by, note=note, before=before, after=after)


def _lasting(call: ApiCall, deeds: Deeds, place: AuditPlace | None) -> list[_AuditLine]:
    """Return what is found by reading all of it: sessions that were buried lately, pauses that nodes gave and stand."""
    lines = [*_burials(call), *_pauses(call, deeds)]
    rest = [one for one in lines if place is None or _follows(one.place, place)]
    return sorted(rest, key=lambda one: (-one.place.at, one.place.which))


def _follows(one: AuditPlace, place: AuditPlace) -> bool:
    if one.at != place.at:
        return one.at < place.at
    return place.rank < _LASTING or one.which > place.which


def _burials(call: ApiCall) -> Iterator[_AuditLine]:
    """Yield the sessions that other nodes found dead in the last days."""
    for node in call.reads.nodes(ended=True, since=call.reads.now() - _BURIALS_FOR):
        if node.buried_by is None or node.ended_at is None:
            continue
        before = {"session": node.session, "last_renewal": node.last_renewal.isoformat()}
        view = _by_node(node.ended_at, "burial", node.node, who=node.buried_by, note=node.reason, before=before)
        if _wanted(call, view, (node.node, node.session)):
            yield _AuditLine(AuditPlace(to_us(node.ended_at), _LASTING, f"burial/{node.session}"), view)


def _maybe_paused(call: ApiCall) -> tuple[str, ...]:
    """Return the jobs among which a node may have paused some and that the filters let through."""
    who, subject = call.given["who"], call.given["subject"]
    if who not in (None, NODES):
        return ()
    return call.reads.paused() if subject is None else (subject,)


def _pauses(call: ApiCall, deeds: Deeds) -> Iterator[_AuditLine]:
    """Yield the pauses that `pause_after` gave and that stand."""
    for job, pause in deeds.pauses.items():
        view = _by_node(pause.at, "pause", job, who=pause.by, note=pause.note)
        if _wanted(call, view, (job,)):
            yield _AuditLine(AuditPlace(to_us(pause.at), _LASTING, f"pause/{job}"), view)


def _by_node(
    at: datetime, act: str, subject: str, *, who: str | None, note: str | None, before: Any = None, after: Any = None
) -> AuditView:
    return AuditView(
        at=at, who=who, role=None, address=None, via="node", act=act, subject=subject, note=note, request=None,
        before=before, after=after, result="done",
    )  # fmt: skip


def _wanted(call: ApiCall, view: AuditView, names: tuple[str, ...]) -> bool:
    who, subject = call.given["who"], call.given["subject"]
    return who in (None, view.who) and (subject is None or subject in names)
