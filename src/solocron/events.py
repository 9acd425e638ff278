"""Events of a scheduler, for logs, metrics and the user's own subscribers.

A subscriber that raises is logged, and the others are called all the same. Counts per event are kept.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from solocron.clock import from_us
from solocron.errors import RunStopped

__all__ = ["INSTANTS", "NAMES", "Event", "Events", "Subscriber"]

log = logging.getLogger("solocron")

NAMES: Mapping[str, str] = {
    "registered": "a job was found and wired",
    "node started": "a node runs",
    "node stopped": "a node has drained",
    "session begun": "a node holds a new lease",
    "session renewed": "a lease was extended",
    "renewal failed": "a lease could not be extended; the node starts nothing new until it can",
    "session lost": "a node can no longer prove its lease and stops everything",
    "session buried": "a node's lease ended, and its session was closed for it",
    "taken over": "the runs of a node whose lease ended were taken over",
    "claimed": "a run was claimed",
    "held elsewhere": "a due job was claimed by another node first",
    "slot passed": "slots were decided without a run, and why",
    "adopted": "a claim whose reply was lost was found and started",
    "handed over": "a message of a run is in the queue of its carrier, where a worker picks it up",
    "hand-over failed": "a carrier did not accept a message, or that is in doubt; it is published again",
    "not picked up": "no worker has picked a message up in time; it is published again",
    "picked up": "a worker has got the run of a message",
    "message dropped": "a message starts nothing: it is a copy, too late, or not for now",
    "no handler": "a message came to a process that has not the function of its job; another one gets the next",
    "retry asked": "a job's on_retry decided whether a run is repeated after a crash",
    "started": "a body started",
    "finished": "an attempt is over, and how is in the store",
    "refused": "a stale fence was refused",
    "recorded twice": "an attempt ended that is on record already: the first record stays, and should not be there",
    "cancelling": "a body was asked to stop",
    "request accepted": "a trigger that a transaction of yours committed became a run, or its record says why not",
    "request dropped": "a trigger that a transaction of yours committed was for a job that is gone",
    "stuck": "a body does not end although it was asked to",
    "event loop blocked": "a body that does not await keeps the event loop from every other coroutine",
    "paused": "a job was paused because it had failed as often in a row as its pause_after allows",
    "pause begun": "a pause of many jobs stands that concerns this node: nothing more of them starts by schedule",
    "pause ended": "a pause of many jobs was lifted, or its end has come",
    "handed back": "a claim that never started was given back",
    "alarm": "something should have run and did not, or cannot; one message for all of a kind, in the fleet",
    "alarm cleared": "the causes of an alarm are gone",
    "not delivered": "a webhook, a ping or a notification did not reach its target",
    "job blocked": "a document fails on its own and was set aside",
    "another application": "another application declares a job of this name, and this node leaves it to that one",
    "application changed": "a job's own application is gone, and the one of this node has taken it on",
    "definition kept": "the stored definition is kept while nodes that declare it live; ours is not used yet",
    "never due": "the only instant of a job had passed when it was declared: it is on record as missed and never runs",
    "rolled back": "the stored definition has a higher revision and is kept; ours is not used: see `solocron adopt`",
    "store went back": "the store is older than what it has granted, or another server answers: nothing is claimed "
    "until the nodes have checked what they remember",
    "newcomer": "others seem to live: they notice first if the store went back, and this node claims a moment later",
    "put back": "a claim or an outcome that the store had lost was written again from this node's memory",
    "ended anew": "a claim of an earlier time came back with the store and was ended again",
    "namespace open": "the check is over: claims are granted again",
    "namespace closed": "the store lost more than the nodes remember: nothing is claimed until `solocron restored`",
    "store error": "the store did not answer; the node tries again",
    "store back": "the store answers again",
    "pruned": "old history was removed",
    "loop error": "a loop of the node raised and goes on",
}


INSTANTS = ("slot", "due_at", "since", "until")
"""Facts that are instants: aware datetimes in an `Event`, ISO-8601 in a log line."""


@dataclass(frozen=True, slots=True)
class Event:
    """The name of an event and its facts, which are attributes too; instants are aware datetimes."""

    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.facts[name]
        except KeyError:
            raise AttributeError(f"event {self.name!r} has no fact {name!r}; it has {sorted(self.facts)}") from None


Subscriber = Callable[[Event], object]
Wants = Callable[[str], bool]
_Listener = tuple[Subscriber, Wants | None]


class Events:
    """Subscribers by event name; `"*"` gets every event."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._subscribers: dict[str, list[_Listener]] = {}
        self._listening: dict[str, tuple[_Listener, ...]] = {}
        """By event, once it was emitted: a run emits several, and subscribers rarely change."""

    def on(self, name: str, subscriber: Subscriber, *, wants: Wants | None = None) -> None:
        """Add a subscriber; `wants` is called with the name first, so that unwanted events are never made."""
        self._subscribers.setdefault(name, []).append((subscriber, wants))
        self._listening = {}

    def off(self, name: str, subscriber: Subscriber) -> None:
        """Remove a subscriber."""
        listeners = self._subscribers[name]
        del listeners[[one for one, _ in listeners].index(subscriber)]
        self._listening = {}

    def emit(self, name: str, /, **facts: Any) -> None:
        """Count an event and call its subscribers; the facts in `INSTANTS` are microseconds, as the engine has them."""
        self.counts[name] += 1
        known = self._listening
        listeners = known.get(name)
        if listeners is None:
            listeners = known[name] = (*self._subscribers.get(name, ()), *self._subscribers.get("*", ()))
        event = None
        for listener, wants in listeners:
            try:
                if wants is None or wants(name):
                    event = event or Event(name, _for_people(facts))
                    listener(event)
            except (Exception, SystemExit, RunStopped):
                log.exception("an event subscriber raised", extra={"event": name})


def _for_people(facts: dict[str, Any]) -> dict[str, Any]:
    for name in INSTANTS:
        if facts.get(name) is not None:
            facts[name] = from_us(facts[name])
    return facts
