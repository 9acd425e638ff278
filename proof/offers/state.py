"""The nouns of a small world with a broker: nodes that publish, workers that pick up, messages, and equal states."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, NamedTuple

from solocron.clock import SECOND
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Session

__all__ = [
    *("COPIES", "LEASE", "NODES", "PICKUP", "TICK", "WORKERS"),
    *("Faults", "Offers", "Process", "Request", "Rules", "State", "Ticket", "key_of", "spend", "with_process"),
]

TICK = SECOND
LEASE = 3 * TICK
PICKUP = TICK
COPIES = 2
"""Copies of one message that the broker keeps apart: a third would do nothing that the second cannot."""
FAR = 9
"""Ticks after which all that is to come is equally far away."""
NODES, WORKERS = "AB", "VW"

Ticket = tuple[int, int]
"""A message: the number of its run, and the attempt."""


class Faults(NamedTuple):
    """Faults that may still happen: so many of each kind, and so many together."""

    kills: int = 1
    freezes: int = 1
    lost_messages: int = 1
    doubled_messages: int = 1
    lost_answers: int = 1
    """Of the store or of the broker."""
    delays: int = 1
    """Ticks for which messages wait although a worker is free: long enough for an offer to lapse."""
    forged_messages: int = 0
    together: int = 6


@dataclass(frozen=True)
class Rules:
    """The rules of the hand-over that processes keep; those of the document are patched out by the tests."""

    pick_up_is_repeated: bool = True
    """A pick-up whose answer was lost is repeated by its session."""
    pick_up_needs_live_session: bool = True
    """A pick-up commits only if its session is live in the same step."""
    unknown_hold_is_given_back: bool = True
    """A worker gives back a hold of its session that it does not know: a pick-up that it had given up came late."""


@dataclass(frozen=True)
class Offers:
    """A world to explore."""

    runs: int = 1
    retries: int = 0
    faults: Faults = field(default_factory=Faults)
    rules: Rules = field(default_factory=Rules)


class Process(NamedTuple):
    """The knowledge of a node or a worker."""

    mode: str = "up"
    session: str | None = None
    trusted_until: int = 0
    begun: int = 0
    """Number of sessions that it has had."""
    does: str = ""
    """What it is in the middle of: a node `publishes`, `hands over` or `puts back`, a worker `picks up` or `runs`."""
    ticket: Ticket = (0, 0)
    fence: int = 0
    swept: str | None = None
    """A dead session over whose holds it has made a complete pass."""
    wary: bool = False
    """True if it does not know what became of its last claim: the next one waits for a beat."""

    def idle(self) -> Process:
        return self._replace(does="", ticket=(0, 0), fence=0)

    def lost(self) -> Process:
        """Return it without its session: every body stops, nothing is written, a new session comes next."""
        return Process(mode=self.mode, begun=self.begun)


class Request(NamedTuple):
    """Something that a process has sent to the store before it froze, and that may be applied at any time."""

    op: str
    who: str
    session: str
    ticket: Ticket = (0, 0)
    fence: int = 0
    seen: int = 0


class State(NamedTuple):
    """The whole world at one moment."""

    now: int
    job: Job
    sessions: tuple[Session, ...]
    processes: tuple[Process, ...]
    """The nodes, then the workers, by the letters of `NODES` and `WORKERS`."""
    queue: tuple[Ticket, ...]
    floating: tuple[Request, ...]
    handed: frozenset[Ticket]
    """Attempts that a node has claimed to hand over."""
    picked: frozenset[Ticket]
    """Attempts that a worker has got."""
    started: frozenset[Ticket]
    ended: tuple[tuple[Status, ...], ...]
    """The records of each run."""
    left: Faults


def with_process(state: State, who: str, process: Process) -> State:
    i = (NODES + WORKERS).index(who)
    return state._replace(processes=(*state.processes[:i], process, *state.processes[i + 1 :]))


def spend(state: State, fault: str) -> State:
    """Return the state with one fault less to come."""
    together = state.left.together - 1
    left = state.left._replace(**{fault: getattr(state.left, fault) - 1}, together=together)
    return state._replace(left=left if together else Faults(0, 0, 0, 0, 0, 0, 0, 0))


def key_of(state: State) -> Any:
    """Return a key that is equal for states which differ only in the time of day, the size of fences and the names."""
    names = _sessions(state)
    looks = [_look(state, process, names) for process in state.processes]
    count = len(NODES)
    orders = []
    for first in permutations(range(count)) if looks[0] == looks[1] else (_sorted(looks, 0, count),):
        ties = looks[count] == looks[count + 1]
        for second in permutations(range(count, len(looks))) if ties else (_sorted(looks, count, len(looks)),):
            orders.append((*first, *second))
    if len(orders) == 1:
        return _view(state, orders[0], looks)
    return min((_view(state, order, looks) for order in orders), key=hash)


def _sorted(looks: list[Any], first: int, last: int) -> tuple[int, ...]:
    return tuple(sorted(range(first, last), key=looks.__getitem__))


def _sessions(state: State) -> set[str]:
    """Return the names of all sessions that a step can still depend on."""
    names = {one.name for one in state.sessions} | {hold.session for hold in state.job.active}
    names |= {one.session for one in state.floating}
    return names | {process.session for process in state.processes if process.session}


def _look(state: State, process: Process, names: set[str]) -> tuple[Any, ...]:
    trust = -1 if process.session is None else max((process.trusted_until - state.now) // TICK, 0)
    return process.mode, trust, process.does, process.ticket, process.wary, process.swept in names


def _view(state: State, order: tuple[int, ...], looks: list[Any]) -> Any:
    """Return the state with its processes in this order, without what no step can ever depend on."""
    job, now = state.job, state.now
    place = {(NODES + WORKERS)[i]: n for n, i in enumerate(order)}
    current = {process.session for process in state.processes}
    label: dict[str | None, Any] = {None: None}
    for name in sorted(_sessions(state)):
        older = sum(1 for other in label if other is not None and other[0] == name[0])
        label[name] = (place[name[0]], "now" if name in current else older)
    fences = {hold.fence for hold in job.active} | {process.fence for process in state.processes}
    fences |= {one.fence for one in state.floating}
    rank = {fence: n for n, fence in enumerate(sorted(fences))}
    beats = {one.name: one.beats for one in state.sessions}
    return (
        tuple((h.run, h.attempt, label[h.session], rank[h.fence], h.handing) for h in job.active),
        frozenset(
            (o.run, o.attempt, min(max((o.ready_at - now) // TICK, 0), FAR), o.offer is not None, o.offered)
            for o in job.waiting_runs
        ),
        tuple(rank[fence] for fence in job.accepted if fence in fences),
        frozenset((label[one.name], one.state, max((one.expires_at - now) // TICK, 0)) for one in state.sessions),
        tuple(
            (*looks[i][:5], label[p.session], rank[p.fence], label.get(p.swept))
            for i in order
            for p in (state.processes[i],)
        ),
        state.queue,
        frozenset(
            (o.op, place[o.who], label[o.session], o.ticket, rank[o.fence], o.seen == beats.get(o.session))
            for o in state.floating
        ),
        (state.handed, state.picked, state.started, state.ended, state.left),
    )
