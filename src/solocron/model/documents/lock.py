"""A lock's document: a lease taken by hand. Every change of it is one of the pure functions below.

A lock is taken until an instant of the store's clock (`until`), or for as long as a session lives. The document stays
after a release, because its fence must grow forever.
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
"""How long the place of a waiter that does not come back is kept."""
QUEUE = 64
"""Maximum length of the queue. A later waiter takes a place when one is free."""
FORCED_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    """State of a lock."""

    fence: int = 0
    token: str | None = None
    """Drawn anew for each acquisition: the holder proves itself with it."""
    owner: str | None = None
    session: str | None = None
    since: int | None = None
    until: int | None = None
    least: int | None = None
    released: str | None = None
    """Token of the last release: a repeated release is accepted again."""
    waiting: tuple[tuple[str, int], ...] = ()
    """Tickets in order, each with the time until which its place is kept."""
    forced: tuple[Mapping[str, Any], ...] = ()
    """The last forced releases: author, reason, time, and the holder that lost the lock."""

    def taken(self, *, now: int, dead: frozenset[str] = frozenset()) -> bool:
        """Return whether the lock cannot be granted: held, or still inside its `at_least`."""
        if self.session is not None:
            return self.session not in dead
        return self.until is not None and self.until > now


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request for the lock; times in microseconds. `session` ties the lock to a session instead of a time."""

    token: str
    owner: str
    at_most: int
    at_least: int = 0
    session: str | None = None
    queue: bool = False
    """True if the caller waits and wants a place in the queue."""
    seen: int = 0
    """Highest fence of this lock that the caller knows: a store below it was restored from a backup."""


@dataclass(frozen=True, slots=True)
class Granted:
    fence: int
    since: int


@dataclass(frozen=True, slots=True)
class Busy:
    """The holder, and when it is worth trying again (None: unknown)."""

    owner: str | None
    session: str | None
    since: int | None
    until: int | None
    ahead: int


def state_of(doc: SmallDocument | Absent) -> LockState:
    """Return the lock that a document describes; a free one if there is no document."""
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
    """Take the lock if it is free. The answer is `Granted` or `Busy`.

    None: the store is older than the caller remembers. `dead`: sessions that the caller knows to be buried or gone;
    their locks may be taken.
    """
    state = state_of(doc)
    if ask.seen > state.fence:
        return None
    if isinstance(doc, SmallDocument) and state.token == ask.token:  # our own request, whose reply was lost
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
    """Return the queue with this ticket at its place.

    The place is prolonged only when half of its time has passed, which saves writes.
    """
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
    """Release the lock. The answer is True if a caller waits; None if the lock is no longer the holder's.

    Inside `at_least` the lock stays taken until then, without a holder.
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
    """Set the expiry, counted from now. It never adds to it and never revives an expired lock.

    A lock that is tied to a session has no expiry to set.
    """
    state = state_of(doc)
    if isinstance(doc, Absent) or state.token != token or not state.taken(now=now):
        return None
    until = None if state.session is not None else now + at_most
    least = now + at_least if at_least else state.least
    return Change(_note(doc.name, replace(state, until=until, least=least)))


def orphan(doc: SmallDocument | Absent, *, session: str, now: int) -> Change | None:
    """Free the lock of a buried session."""
    state = state_of(doc)
    if isinstance(doc, Absent) or state.session != session:
        return None
    return Change(_note(doc.name, replace(_freed(state, now=now), released=state.released)))


def force(doc: SmallDocument | Absent, *, by: str | None, why: str, now: int) -> Change | None:
    """Take the lock away from its holder and record it. The fence rises, so that the old holder is stale at once."""
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
    """Raise the fence after a backup was restored: a fence that was granted before must not be granted again."""
    state = state_of(doc)
    if isinstance(doc, Absent) or state.fence >= fence:
        return None
    return Change(_note(doc.name, replace(state, fence=fence)))
