"""The nouns of a small world: its size, its faults, its nodes and requests, and which of its states are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import Any, NamedTuple

from solocron.clock import SECOND
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Session

__all__ = [
    "LATE_FOR",
    "LEASE",
    "NAMES",
    "TICK",
    "Faults",
    "Log",
    "Node",
    "Request",
    "Rules",
    "Small",
    "State",
    "frozen",
    "key_of",
    "killed",
    "lost",
    "spend",
    "trust",
    "with_node",
]

NAMES = "ABCDE"
TICK = SECOND
"""A beat: nodes renew once each tick."""
LEASE = 3 * TICK
LATE_FOR = LEASE + 2 * TICK
OLD = LATE_FOR // TICK
"""Ticks after which nothing gets any older."""


@dataclass(frozen=True)
class Rules:
    """The rules of the lease protocol that may be left out, to see what they are for."""

    claim_needs_live_session: bool = True
    """Rule 1: a claim commits only if its session is live in the same step."""
    dead_until_swept: bool = True
    """Rule 2: a node that finds a dead session which is not swept goes on with the sweep."""
    reconcile: bool = True
    """Rule 3: every beat a node adopts what its session holds and it does not know."""


class Faults(NamedTuple):
    """Faults that may still happen: so many of each kind, and so many together."""

    freezes: int = 1
    kills: int = 1
    lost_replies: int = 1
    late: int = 1
    together: int = 4


@dataclass(frozen=True)
class Small:
    """A world to explore."""

    nodes: int = 2
    slots: int = 2
    retries: int = 1
    overlap: str = "queue"
    faults: Faults = field(default_factory=Faults)
    rules: Rules = field(default_factory=Rules)
    prompt: bool = True
    """Whether nodes do what they have to within a beat, if no fault keeps them (bodies may always take their time)."""
    swap: bool = False
    """Whether a sent change of a job is computed when sent and committed if no other write came between
    (compare-and-swap), or computed when it arrives (a script in the store)."""


class Node(NamedTuple):
    """The knowledge of one node."""

    mode: str = "up"
    session: str | None = None
    trusted_until: int = 0
    bodies: tuple[tuple[str, int, int], ...] = ()
    """Runs whose bodies it has: run, fence, slot."""
    swept: str | None = None
    """A dead session over whose holds it has made a complete pass."""
    wary: bool = False
    """Whether it does not know what became of its last claim: the next one waits for a beat."""
    begun: int = 0
    """Number of sessions it has had; their names are never reused."""


class Request(NamedTuple):
    """Something sent to the store by a node."""

    op: str
    node: int
    session: str
    run: str = ""
    fence: int = 0
    seen: int = 0
    """The beats of the session that it would bury."""
    sent_at: int = 0


Log = tuple[tuple[Status, ...], ...]
"""Per slot the statuses of its attempts, or the one of a slot that did not run."""


class State(NamedTuple):
    """The whole world at one moment."""

    now: int
    job: Job
    sessions: tuple[Session, ...]
    nodes: tuple[Node, ...]
    floating: tuple[Request, ...]
    """Sent, and not yet applied: they may be at any time, or never."""
    log: Log
    left: Faults


def with_node(state: State, i: int, node: Node) -> State:
    """The state with another node in the place of one."""
    return state._replace(nodes=(*state.nodes[:i], node, *state.nodes[i + 1 :]))


def spend(state: State, fault: str) -> State:
    """The state with one fault less to come."""
    together = state.left.together - 1
    left = state.left._replace(**{fault: getattr(state.left, fault) - 1}, together=together)
    return state._replace(left=left if together else Faults(0, 0, 0, 0, 0))


def killed(node: Node) -> Node:
    """Nothing of it ever acts again."""
    return Node(mode="dead", begun=node.begun)


def frozen(node: Node) -> Node:
    """It does nothing until it thaws, and then does not know that it did not."""
    return node._replace(mode="frozen")


def lost(node: Node) -> Node:
    """It cannot prove its lease any more: every body stops, nothing is written, a new session comes next."""
    return Node(mode=node.mode, begun=node.begun)


def trust(state: State, i: int) -> State:
    """The first thing after any sleep: is the session still to be trusted?"""
    node = state.nodes[i]
    if node.session is not None and state.now >= node.trusted_until:
        return with_node(state, i, lost(node))
    return state


def key_of(state: State, slots: tuple[int, ...], *, swap: bool) -> Any:
    """States that differ only in the time of day, the size of fences and who is called A or B are one."""
    now, nodes = state.now, state.nodes
    looks = [
        (
            node.mode,
            node.session is not None and max(node.trusted_until - now, 0),
            [slot for _, _, slot in node.bodies],
            node.wary,
            node.swept is None,
        )
        for node in nodes
    ]
    order = sorted(range(len(nodes)), key=looks.__getitem__)
    if all(looks[a] != looks[b] for a, b in pairwise(order)):
        return _view(state, tuple(order), slots, swap)
    return min((_view(state, order, slots, swap) for order in permutations(range(len(nodes)))), key=hash)


def _view(state: State, order: tuple[int, ...], slots: tuple[int, ...], swap: bool) -> Any:
    """The state as it looks with the nodes in this order, without what no step can ever depend on."""
    now, job = state.now, state.job
    mine = {fence for node in state.nodes for _, fence, _ in node.bodies}
    mine.update(one.fence for one in state.floating if one.op == "finish")
    rank = {fence: n for n, fence in enumerate(sorted(mine | {hold.fence for hold in job.active}))}
    place = {NAMES[i]: n for n, i in enumerate(order)}
    current = {node.session: "current" for node in state.nodes}
    names = {one.name for one in state.sessions} | {one.session for one in state.floating}
    names.update(hold.session for hold in job.active)
    label: dict[str | None, tuple[int, Any]] = {None: (-1, "")}
    for name in sorted(names | {node.session for node in state.nodes if node.session}):
        # A node's sessions follow one another: all that counts is which is its own and how they are ordered.
        label[name] = (place[name[0]], current.get(name, sum(other[:1] == name[0] for other in label if other)))

    def age(us: int, oldest: int = 0) -> int:
        return max((us - now) // TICK, -oldest)

    beats = {one.name: one.beats for one in state.sessions}
    return (
        tuple([age(slot, OLD) for slot in slots if slot > job.cursor]),
        tuple([(h.slot, h.attempt, label[h.session], rank[h.fence], h.cancel is None) for h in job.active]),
        tuple([(o.slot, o.attempt) for o in job.waiting_runs]),
        tuple([(s.first, s.last) for s in job.waiting_ranges]),
        tuple([rank[fence] for fence in job.accepted if fence in mine]),
        frozenset([(label[s.name], s.state, age(s.expires_at)) for s in state.sessions]),
        tuple([_view_of_node(state.nodes[i], label, rank, age) for i in order]),
        frozenset(
            [
                (
                    one.op,
                    place[NAMES[one.node]],
                    label[one.session],
                    rank.get(one.fence),
                    one.op == "bury" and one.seen == beats.get(one.session),
                    swap and age(one.sent_at, OLD),
                )
                for one in state.floating
            ]
        ),
        state.log,
        state.left,
    )


def _view_of_node(
    node: Node, label: Mapping[str | None, Any], rank: Mapping[int, int], age: Callable[[int], int]
) -> Any:
    trust = 0 if node.session is None else age(node.trusted_until)
    bodies = tuple([(slot, rank[fence]) for _, fence, slot in node.bodies])
    return node.mode, label[node.session], trust, bodies, label.get(node.swept, label[None]), node.wary
