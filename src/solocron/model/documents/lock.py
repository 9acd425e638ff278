"""A lock's document: a lease taken by hand. Every change of it is one of the pure functions below.

A lock is taken until an instant of the store's clock (`until`), or for as long as a session lives. The document stays
when it is released, because its fence must grow for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.transitions.claimant import next_fence

__all__ = [
    "QUEUE",
    "TICKET",
    "Ask",
    "Busy",
    "Granted",
    "LockState",
    "acquire",
    "extend",
    "force",
    "leave",
    "orphan",
    "raise_fence",
    "release",
    "state_of",
]

TICKET = 5 * SECOND
"""How long a place in the queue is kept for a waiter that does not come back."""
QUEUE = 64
"""How many wait in order; who comes after them takes a place when one is free."""
FORCED_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    """How a lock stands."""

    fence: int = 0
    token: str | None = None
    """Drawn anew for each acquisition: who shows it is the holder."""
    owner: str | None = None
    session: str | None = None
    since: int | None = None
    until: int | None = None
    least: int | None = None
    released: str | None = None
    """The token of the last release: a repeated one is answered as accepted."""
    waiting: tuple[tuple[str, int], ...] = ()
    """Tickets in order, and until when each place is kept."""
    forced: tuple[Mapping[str, Any], ...] = ()
    """The last releases by force: who, why, when, and whom it hit."""

    def taken(self, *, now: int, dead: frozenset[str] = frozenset()) -> bool:
        """Whether nobody else may have it: held, or still inside its `at_least`."""
        if self.session is not None:
            return self.session not in dead
        return self.until is not None and self.until > now


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What somebody wants: times in microseconds; `session` ties the lock to it instead of a time."""

    token: str
    owner: str
    at_most: int
    at_least: int = 0
    session: str | None = None
    queue: bool = False
    """Whether it waits, and wants a place in the queue."""
    seen: int = 0
    """The highest fence of this lock that the asker knows of: a store below it was restored from a backup."""


@dataclass(frozen=True, slots=True)
class Granted:
    fence: int
    since: int


@dataclass(frozen=True, slots=True)
class Busy:
    """Who has it, and from when on it is worth asking again (None: nobody knows)."""

    owner: str | None
    session: str | None
    since: int | None
    until: int | None
    ahead: int


def state_of(doc: SmallDocument | Absent) -> LockState:
    """The lock that a document tells of; a free one where there is none."""
    if isinstance(doc, Absent):
        return LockState()
    body = dict(doc.body)
    waiting = tuple((str(ticket), int(until)) for ticket, until in body.pop("waiting", ()))
    known = {name: body[name] for name in ("fence", "token", "owner", "since", "least", "released") if name in body}
    return LockState(
        **known, session=doc.session, until=doc.expires_at, waiting=waiting, forced=tuple(body.get("forced", ()))
    )


def _note(name: str, state: LockState) -> SmallDocument:
    facts = {
        "fence": state.fence,
        "token": state.token,
        "owner": state.owner,
        "since": state.since,
        "least": state.least,
        "released": state.released,
        "waiting": [list(ticket) for ticket in state.waiting],
        "forced": [dict(one) for one in state.forced],
    }
    body = {name: value for name, value in facts.items() if value not in (None, [])}
    return SmallDocument(kind=Kind.LOCK, name=name, body=body, session=state.session, expires_at=state.until)


def acquire(doc: SmallDocument | Absent, ask: Ask, *, now: int, dead: frozenset[str] = frozenset()) -> Change | None:
    """Take the lock if nobody has it; answers `Granted` or `Busy`. None: the store is older than the asker remembers.

    `dead` are sessions that the asker knows to be buried or gone: what they hold may be taken.
    """
    state = state_of(doc)
    if ask.seen > state.fence:
        return None
    if isinstance(doc, SmallDocument) and state.token == ask.token:  # our own request, its answer lost on the way
        return Change(doc, answer=Granted(state.fence, state.since or now))
    places = [(ticket, until) for ticket, until in state.waiting if until > now or ticket == ask.token]
    first = not places or places[0][0] == ask.token
    if not state.taken(now=now, dead=dead) and first:
        granted = replace(
            state,
            fence=next_fence(state.fence, now),
            token=ask.token,
            owner=ask.owner,
            session=ask.session,
            since=now,
            until=None if ask.session is not None else now + ask.at_most,
            least=now + ask.at_least if ask.at_least else None,
            waiting=tuple(place for place in places if place[0] != ask.token),
        )
        return Change(_note(doc.name, granted), answer=Granted(granted.fence, now))
    assert isinstance(doc, SmallDocument)
    if ask.queue:
        places = _queued(places, ask.token, now=now)
    ahead = next((at for at, place in enumerate(places) if place[0] == ask.token), len(places))
    busy = Busy(state.owner, state.session, state.since, state.until, ahead)
    if ask.queue and tuple(places) != state.waiting:
        return Change(_note(doc.name, replace(state, waiting=tuple(places))), answer=busy)
    return Change(doc, answer=busy)


def _queued(places: list[tuple[str, int]], ticket: str, *, now: int) -> list[tuple[str, int]]:
    """With this ticket in it, at its place; kept longer only when half of its time is over, which spares writes."""
    if all(place[0] != ticket for place in places):
        return [*places, (ticket, now + TICKET)] if len(places) < QUEUE else places
    late = now + TICKET // 2
    return [(one, now + TICKET if one == ticket and until < late else until) for one, until in places]


def leave(doc: SmallDocument | Absent, *, token: str, now: int) -> Change | None:
    """Give up a place in the queue."""
    state = state_of(doc)
    rest = tuple(place for place in state.waiting if place[0] != token)
    return None if rest == state.waiting else Change(_note(doc.name, replace(state, waiting=rest)))


def release(doc: SmallDocument | Absent, *, token: str, now: int) -> Change | None:
    """Let go; answers whether somebody waits. None: it is not the holder's any more, and nothing changes.

    Inside `at_least` the lock stays taken until then, by nobody.
    """
    state = state_of(doc)
    if isinstance(doc, Absent) or state.token != token:
        repeated = isinstance(doc, SmallDocument) and state.released == token
        return Change(doc, answer=False) if isinstance(doc, SmallDocument) and repeated else None
    return Change(_note(doc.name, _freed(state, now=now)), answer=bool(state.waiting))


def _freed(state: LockState, *, now: int) -> LockState:
    until = state.least if state.least is not None and state.least > now else None
    return replace(state, token=None, session=None, until=until, least=None, released=state.token)


def extend(doc: SmallDocument | Absent, *, token: str, at_most: int, at_least: int, now: int) -> Change | None:
    """Set the expiry anew, counted from now; never adds to it, never revives a lock whose time is over.

    A lock that is tied to a session has no expiry to set.
    """
    state = state_of(doc)
    if isinstance(doc, Absent) or state.token != token or not state.taken(now=now):
        return None
    until = None if state.session is not None else now + at_most
    least = now + at_least if at_least else state.least
    return Change(_note(doc.name, replace(state, until=until, least=least)))


def orphan(doc: SmallDocument | Absent, *, session: str, now: int) -> Change | None:
    """What a buried session held is free."""
    state = state_of(doc)
    if isinstance(doc, Absent) or state.session != session:
        return None
    return Change(_note(doc.name, replace(_freed(state, now=now), released=state.released)))


def force(doc: SmallDocument | Absent, *, by: str | None, why: str, now: int) -> Change | None:
    """Take the lock from whoever has it: the fence rises, so that the old holder is stale at once; it is recorded."""
    state = state_of(doc)
    if isinstance(doc, Absent) or not state.taken(now=now):
        return None
    hit = {"at": now, "by": by, "why": why, "owner": state.owner, "fence": state.fence}
    freed = replace(
        state,
        fence=next_fence(state.fence, now),
        token=None,
        session=None,
        until=None,
        least=None,
        forced=(*state.forced, hit)[-FORCED_KEPT:],
    )
    return Change(_note(doc.name, freed), answer=bool(state.waiting))


def raise_fence(doc: SmallDocument | Absent, *, fence: int) -> Change | None:
    """After a backup was restored: no fence that was granted before may come again."""
    state = state_of(doc)
    if isinstance(doc, Absent) or state.fence >= fence:
        return None
    return Change(_note(doc.name, replace(state, fence=fence)))
