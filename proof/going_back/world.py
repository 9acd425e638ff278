"""A small fleet around a store that goes back: all that can happen, one step at a time.

A replica or a backup is the store as it was at some moment; a failover or a restore puts it in the store's place, and
so loses every commit since, be it one or all. A node that runs renews once in each beat, as soon as the store answers.
A request may be answered into the void, applied at any time later, or applied now and answered at any time later. A
step that breaks the promise raises `Wrong`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from proof.going_back import promise
from proof.going_back.key import key_of, later
from proof.going_back.node import answered, heard, requests, trust, unknown, with_node
from proof.going_back.state import (
    CLOSED,
    DONE,
    LEASE,
    NAMES,
    OPEN,
    Faults,
    GoingBack,
    Namespace,
    Node,
    Request,
    Session,
    Slot,
    State,
    Store,
)
from proof.going_back.store import apply

__all__ = ["GoingBackWorld", "What"]

SPENT = Faults(0, 0, 0, 0, 0, 0, 0, 0, 0)


class What(NamedTuple):
    """A step, put into words only when they are asked for: an exploration makes millions."""

    op: str
    node: int | None = None
    about: Any = None
    how: str = ""

    def __str__(self) -> str:
        who = "" if self.node is None else f"{NAMES[self.node]}: "
        about = ""
        if self.op in ("bury", "take over"):
            about = f" {NAMES[self.about[0]]}'s session {self.about[1]}"
        elif self.op in ("finish", "give up"):
            about = f" slot {self.about[0] + 1}"
        return f"{who}{self.op}{about}{self.how and f' ({self.how})'}"


Step = tuple[What, bool, State]
"""A step: its name, whether it needs no fault, and the state after it."""


class GoingBackWorld:
    """All that can happen."""

    def __init__(self, small: GoingBack) -> None:
        self.small = small
        self._nothing = (None,) * small.slots

    def start(self) -> State:
        """Return the first state: every node is up and has a session, nothing is claimed; then the given steps."""
        state = self._fresh()
        for words in self.small.given:
            following = [after for what, _, after in self.steps(state) if str(what) == words]
            if not following:
                raise ValueError(
                    f"{words!r} cannot happen here; what can: {[str(what) for what, *_ in self.steps(state)]}"
                )
            state = following[0]
        return state

    def _fresh(self) -> State:
        small, space = self.small, Namespace()
        sessions = tuple([Session(i, 1, 1, LEASE, True, True, True) for i in range(small.nodes)])
        node = Node(
            serial=1, first=1, has=True, acked=1, sent=1, renewed=True, checked=space.epoch, memory=self._nothing
        )
        return State(
            due=1,
            store=Store(space, sessions, (Slot(),) * small.slots),
            behind=None,
            nodes=(node,) * small.nodes,
            floating=(),
            starts=((None,) * (small.retries + 1),) * small.slots,
            left=small.faults,
        )

    def key(self, state: State) -> Any:
        """Equal for states that differ only in the time of day, the size of counts, and names."""
        return key_of(state)

    def done(self, state: State) -> bool:
        """The namespace is open and every slot is on record; or it is closed, and waits for a person."""
        space = state.store.space
        if not space.named:
            return False
        return space.state == CLOSED or (space.state == OPEN and all(one.phase == DONE for one in state.store.slots))

    def over(self, state: State) -> bool:
        """Done, and the store cannot go back any more, nor a body start."""
        if state.left.failovers or state.left.restores or not self.done(state):
            return False
        return all(node.call is None for node in state.nodes)

    def without_idle(self, state: State) -> State:
        """Every request may matter: what it was sent for may be gone, and come back."""
        return state

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that can happen next."""
        for i, node in enumerate(state.nodes):
            yield from self._of_node(state, i, node)
        if not state.away:
            for n, request in enumerate(state.floating):
                rest = state._replace(floating=state.floating[:n] + state.floating[n + 1 :])
                what = What(request.op, request.node, request.about, "sent before, applied now")
                yield what, False, apply(self.small, rest, request)[0]
        yield from self._of_store(state)
        up = [i for i, node in enumerate(state.nodes) if node.mode == "up"]
        if state.away or not any(self._busy(state, i) for i in up):
            yield What("a beat passes"), True, self._beat(state)

    def _of_node(self, state: State, i: int, node: Node) -> Iterator[Step]:
        left = state.left
        if node.mode == "up":
            if not state.away:
                for request in requests(self.small, state, i):
                    yield from self._call(state, request)
            if node.call is not None:
                what = What("hears that its claim was granted", i)
                after = heard(self.small, state, i, what)
                if after is None:
                    what = What("throws away the answer to its claim", i)
                    after = with_node(state, i, node._replace(call=None))
                yield what, True, after
            if left.freezes:
                yield What("freezes", i), False, _spend(with_node(state, i, node._replace(mode="frozen")), "freezes")
        elif node.mode == "frozen":
            thawed = with_node(state, i, node._replace(mode="up", thawed=True))
            yield What("thaws", i), True, trust(thawed, i)
        else:
            unnoticed = state.lapse == promise.UNNOTICED
            new = Node(serial=node.serial, first=node.serial + 1, memory=self._nothing, newcomer=unnoticed)
            yield What("starts anew, remembering nothing", i), True, with_node(state, i, new)
        if node.mode != "dead" and left.kills:
            dead = with_node(state, i, Node(mode="dead", serial=node.serial, memory=self._nothing))
            yield What("is killed", i), False, _spend(promise.gone(dead, i, retries=self.small.retries), "kills")

    def _call(self, state: State, request: Request) -> Iterator[Step]:
        """A request and all that can become of it."""
        i, op, about, left = request.node, request.op, request.about, state.left
        applied, reply = apply(self.small, state, request)
        refused = reply is None and applied is state
        if not refused or op in ("join", "mark"):
            what = What(op, i, about, "" if reply else "refused")
            yield what, True, answered(self.small, applied, request, reply, what)
        if left.lost and not refused:
            yield What(op, i, about, "the answer is lost"), False, _spend(unknown(applied, request), "lost")
        if left.late:
            floats = state._replace(floating=tuple(sorted((*state.floating, request), key=repr)))
            yield What(op, i, about, "on its way"), False, _spend(unknown(floats, request), "late")
            if op == "claim" and not refused:
                waiting = applied.nodes[i]._replace(call=(*reply, request.epoch, request.serial))
                after = _spend(with_node(applied, i, waiting), "late")
                yield What(op, i, about, "the answer is on its way"), False, after

    def _busy(self, state: State, i: int) -> bool:
        """Whether a node has something to do before the beat ends: to renew, at least."""
        if not state.nodes[i].renewed:
            return True
        return self.small.prompt and any(
            request.op not in ("claim", "finish") and apply(self.small, state, request)[1]
            for request in requests(self.small, state, i)
        )

    def _beat(self, state: State) -> State:
        state = later(state, self.small)
        for i, node in enumerate(state.nodes):
            if node.mode == "up":
                state = trust(state, i)
        return state

    # --- what becomes of the store --------------------------------------------------------------------------------

    def _of_store(self, state: State) -> Iterator[Step]:
        left, behind = state.left, state.behind
        if state.away:
            yield What("the store answers again"), True, state._replace(away=False)
        elif left.outages:
            yield What("the store is away"), False, _spend(state._replace(away=True), "outages")
        if left.switches:
            yield What("another server takes over with everything"), False, _spend(_other(state), "switches")
        if behind is None:
            if left.failovers or left.restores:
                yield What("a copy is made of the store"), True, state._replace(behind=state.store)
            return
        if left.failovers:
            after = _other(state._replace(store=behind, behind=None, lapse=0))
            yield What("another server takes over with the copy"), False, _spend(self._lost(after), "failovers")
        if left.restores:
            after = state._replace(store=behind, behind=None, lapse=promise.lapse_of(state))
            yield What("the same server goes back to the copy"), False, _spend(self._lost(after), "restores")

    def _lost(self, state: State) -> State:
        # A process that had no session yet has nothing to notice by.
        nodes = [node._replace(newcomer=node.mode != "dead" and node.serial < node.first) for node in state.nodes]
        return promise.lost(state._replace(nodes=tuple(nodes)), retries=self.small.retries)


def _other(state: State) -> State:
    def unnamed(store: Store) -> Store:
        return store._replace(space=store.space._replace(named=False))

    return state._replace(store=unnamed(state.store), behind=state.behind and unnamed(state.behind))


def _spend(state: State, fault: str) -> State:
    together = state.left.together - 1
    left = state.left._replace(**{fault: getattr(state.left, fault) - 1}, together=together)
    return state._replace(left=left) if together else state._replace(left=SPENT, behind=None)
