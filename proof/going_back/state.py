"""The nouns of a small fleet whose store goes back: rules that may be left out, faults, documents, nodes, requests.

Plain tuples throughout: an exploration makes millions of them. Times are in beats, versions and fences are counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "BARRIER",
    "CHECKING",
    "CLOSED",
    "DONE",
    "ENDED",
    "HELD",
    "KEPT",
    "LEASE",
    "NAMES",
    "OPEN",
    "PASSED",
    "RUNNING",
    "STOPPED",
    "UNDECIDED",
    "WAITING",
    "Faults",
    "GoingBack",
    "Memory",
    "Namespace",
    "Node",
    "Request",
    "Rules",
    "Session",
    "Slot",
    "Start",
    "State",
    "Store",
]

NAMES = "ABCDE"
BARRIER = 2
"""Beats from the start of a check within which every node that runs has renewed: one that renewed just before the check
began renews again in the next beat."""
LEASE = 3

OPEN, CHECKING, CLOSED = "open", "checking", "closed"

UNDECIDED, PASSED, WAITING, HELD, DONE = range(5)
"""A slot: beyond the cursor; before it without hold, debt or record; waiting for an attempt; held; on record."""

RUNNING, STOPPED, ENDED, KEPT = range(4)
"""A node's memory of an attempt: its body runs; its body was stopped; it ended, which the store has not yet
answered; it ended, and the store has accepted or refused that."""


@dataclass(frozen=True)
class Rules:
    """The rules for a store that goes back, each of which may be left out to see what it is for."""

    claim_tests_server: bool = True
    """2: a claim commits only if the namespace document names the server that answers."""
    claim_tests_version: bool = True
    """2: a claim commits only if its session is not below the acknowledged version."""
    claim_tests_epoch: bool = True
    """2: a claim commits only under the epoch that its node has checked."""
    heal: bool = True
    """6: a node joins what it remembers into the documents before it marks its session."""
    open_on_marked: bool = True
    """7: the namespace opens when every live session is marked; without it, when every one has renewed."""
    barrier: bool = True
    """7: the namespace opens no sooner than the longest time between two renewals after the check began."""
    burial_waits: bool = True
    """7: no session is buried before a lease has passed since the check began."""
    burial_tests_server: bool = True
    """2: burials and takeovers test the server and the version of the sweeper's own session."""
    refused_ends_kept: bool = True
    """5: an end that the store refused stays in the memory."""
    late_answers_dropped: bool = True
    """9: a claim acknowledged after its node has checked another epoch starts nothing."""
    answers_dropped_from_join: bool = True
    """9: the same from the moment at which the node joined what it remembers: it would remember more than it joined."""
    lost_mark_is_seen: bool = True
    """6: a node that finds its session without the mark of the epoch that it has checked checks again."""
    join_again: bool = True
    """6: a node that meets a sign after it has joined, and before it has marked, joins again."""
    renewals_are_numbered: bool = True
    """4: a renewal writes the number that its node gave it as the version, not one more than it finds: a late one could
    else bring a version that went back up to the acknowledged one."""
    dead_session_is_sign: bool = True
    """4: the node's own session with a lower version is a sign also if it is dead."""
    epoch_is_sign: bool = True
    """4: an epoch below the known one is a sign."""
    doubt_kept: bool = True
    """4: a doubt that was still open stays when a new check begins."""
    doubt: bool = True
    """7, 8: burying a session without the mark sets doubt, and what was due then is written off."""
    passed_over_recorded: bool = True
    """8: opening writes a record for slots up to the cursor without hold, debt or record."""
    strict_adoption: bool = True
    """9: an unknown hold is adopted only if it was claimed after the last complete look."""
    newcomers_wait: bool = True
    """11: a process that begins claims nothing for the longest time between two renewals."""
    newcomers_bury_late: bool = True
    """11: nor does it bury a session (DESIGN: a session first seen expired is watched for a lease)."""
    takeover_waits: bool = True
    """7: holds are taken over only after the opening."""
    join_tests_session: bool = True
    """6: a run is joined as held only if its session is live in the same step; else it counts as taken over."""
    stop_beyond_memory: bool = True
    """10: nodes stop where the loss reaches back beyond their memory."""
    stop_also_when_joining: bool = True
    """10: so does a node that finds a check under way, which another node has begun that lost less."""


class Faults(NamedTuple):
    """Faults that may still happen: so many of each kind, and so many together."""

    failovers: int = 0
    """Another server answers, without the last commits."""
    restores: int = 0
    """The same server answers, without the last commits."""
    switches: int = 0
    """Another server answers, with everything."""
    kills: int = 0
    freezes: int = 0
    lost: int = 0
    """Answers that never come."""
    late: int = 0
    """Requests that are applied, or answers that come, at any time later."""
    outages: int = 0
    together: int = 9


@dataclass(frozen=True)
class GoingBack:
    """A fleet to explore."""

    nodes: int = 2
    slots: int = 1
    retries: int = 0
    faults: Faults = field(default_factory=Faults)
    rules: Rules = field(default_factory=Rules)
    prompt: bool = True
    """Whether a node that runs does what the rules ask of it within a beat; claims and bodies may take any time."""
    memory: int | None = None
    """Beats that a node remembers, before the store's last answer; None: more than any history here has."""
    given: tuple[str, ...] = ()
    """The beginning of the history, in the words of its steps; all that can follow is explored."""


class Session(NamedTuple):
    """A session's document."""

    node: int
    serial: int
    version: int
    left: int
    """Beats until it expires."""
    live: bool
    marked: bool
    """Whether it bears the mark of the epoch that the namespace document has."""
    renewed: bool
    """Whether it was renewed since the check began."""


class Namespace(NamedTuple):
    """The namespace document."""

    epoch: tuple[int, int] = (1, 0)
    """A count, and a token that no other epoch has."""
    state: str = OPEN
    age: int = LEASE
    """Beats since the check began, no more than a lease."""
    due: int = 0
    """Number of slots that were due when the check began."""
    doubt: bool = False
    named: bool = True
    """Whether it names the server that answers."""


class Slot(NamedTuple):
    """The store's record of a slot."""

    phase: int = UNDECIDED
    attempt: int = 0
    holder: tuple[int, int] | None = None
    """The session that holds it."""
    fence: int = 0


class Store(NamedTuple):
    """Everything that a store can lose."""

    space: Namespace
    sessions: tuple[Session, ...]
    slots: tuple[Slot, ...]


class Memory(NamedTuple):
    """A process's memory of a slot."""

    attempt: int
    phase: int
    fence: int
    age: int = 0
    """Beats since it was acknowledged, while the store answered and was not being checked."""


class Node(NamedTuple):
    """A process, and what it knows."""

    mode: str = "up"
    serial: int = 0
    """Its latest session; the first of a process is never that of an earlier one."""
    first: int = 0
    """The first session of this process."""
    has: bool = False
    """Whether it still trusts that session."""
    acked: int = 0
    """The version of that session that the store has acknowledged."""
    sent: int = 0
    """The number of the last renewal that it sent for that session."""
    age: int = 0
    """Beats since it sent the renewal that was acknowledged last, no more than a lease."""
    renewed: bool = False
    """Whether it has renewed in this beat."""
    known: tuple[int, int] = (1, 0)
    """The epoch that it saw last."""
    checked: tuple[int, int] | None = None
    """The epoch for which it has marked a session."""
    joined: bool = False
    """Whether what it remembers is joined into the documents of the known epoch."""
    looked: int = 0
    """The fence of the newest claim at its last complete look."""
    waits: int = 0
    """Beats until it may claim, having begun."""
    wary: bool = False
    """Whether it does not know what became of its last claim: the next one waits for a renewal."""
    call: tuple[int, int, int, tuple[int, int], int] | None = None
    """An answer to a claim that is on its way: slot, attempt, fence, epoch, session."""
    memory: tuple[Memory | None, ...] = ()
    thawed: bool = False
    """Whether it has not reached the store since it was frozen."""
    newcomer: bool = False
    """Whether the process began after the store last went back."""


class Request(NamedTuple):
    """Something sent to the store by a node."""

    op: str
    node: int
    serial: int
    acked: int
    epoch: tuple[int, int] | None = None
    checked: tuple[int, int] | None = None
    about: Any = None


class Start(NamedTuple):
    """That the body of an attempt has started, and what the promise says of a second start."""

    node: int
    serial: int
    alive: bool
    """Whether the process that started it still exists."""
    promise: int


class State(NamedTuple):
    """The whole fleet at one moment."""

    due: int
    """Number of slots that are due: the first at once, one more with each beat."""
    store: Store
    behind: Store | None
    """The copy that a replica or a backup has: the store as it was at some moment."""
    nodes: tuple[Node, ...]
    floating: tuple[Request, ...]
    starts: tuple[tuple[Start | None, ...], ...]
    """Per slot and attempt."""
    left: Faults
    away: bool = False
    """Whether the store is away."""
    lapse: int = 0
    """The facts about the last restore that the promise asks for."""
    fence: int = 0
    token: int = 0
