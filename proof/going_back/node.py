"""A node around a store that goes back: what it asks of the store, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proof.going_back import promise
from proof.going_back.state import (
    BARRIER,
    CHECKING,
    ENDED,
    HELD,
    KEPT,
    LEASE,
    OPEN,
    RUNNING,
    STOPPED,
    GoingBack,
    Memory,
    Node,
    Request,
    Slot,
    State,
    Store,
)
from proof.going_back.store import claimable, session_of

__all__ = ["answered", "heard", "requests", "trust", "unknown", "with_node"]


def with_node(state: State, i: int, node: Node) -> State:
    """The state with another node in the place of one."""
    return state._replace(nodes=(*state.nodes[:i], node, *state.nodes[i + 1 :]))


def trust(state: State, i: int) -> State:
    """The first thing after any sleep: is the session still to be trusted?"""
    node = state.nodes[i]
    return with_node(state, i, _lost(node)) if node.has and node.age >= LEASE else state


def _lost(node: Node) -> Node:
    """It cannot prove its lease any more: every body stops, nothing is written under that session."""
    stop = {RUNNING: STOPPED, ENDED: KEPT}
    memory = tuple([one and one._replace(phase=stop.get(one.phase, one.phase)) for one in node.memory])
    return node._replace(has=False, memory=memory, call=None, wary=False)


# --- what it asks ----------------------------------------------------------------------------------------------------


def requests(small: GoingBack, state: State, i: int) -> Iterator[Request]:
    """Yield the requests that a running node may send now."""
    node = state.nodes[i]
    if not node.has:
        before = node.serial if node.serial >= node.first else None
        yield Request("begin", i, node.serial + 1, node.acked, node.known, node.checked, before)
        return
    serial, acked = node.serial, node.acked
    if not node.renewed:
        yield Request("renew", i, serial, acked, node.known, node.checked, node.sent + 1)
    for n, one in enumerate(node.memory):
        if one is not None and one.phase in (RUNNING, ENDED):
            yield Request("finish", i, serial, acked, about=(n, one.fence))
    if node.checked != node.known:
        if node.joined:
            yield Request("mark", i, serial, acked, node.known, about=node.first)
        else:
            yield Request("join", i, serial, acked, node.known, about=node.memory)
        return
    space = state.store.space
    if space.state == CHECKING and space.epoch == node.checked:
        yield Request("open", i, serial, acked, node.checked)
    if space.state == OPEN and _may_claim(small, state, node):
        yield Request("claim", i, serial, acked, node.checked)
    yield from _about_holds(small, state, i, node)
    if node.waits and small.rules.newcomers_bury_late:
        return
    for other in state.store.sessions:
        if other.live and not other.left and (other.node, other.serial) != (i, serial):
            yield Request("bury", i, serial, acked, about=(other.node, other.serial))


def _may_claim(small: GoingBack, state: State, node: Node) -> bool:
    if node.call is not None or node.wary or (node.waits and small.rules.newcomers_wait):
        return False
    busy = [one for one in node.memory if one is not None and one.phase == RUNNING]
    return not busy and claimable(state, state.store.slots) is not None


def _about_holds(small: GoingBack, state: State, i: int, node: Node) -> Iterator[Request]:
    """Give up what this session holds and no body runs; take over what a dead session holds."""
    for n, slot in enumerate(state.store.slots):
        if slot.phase != HELD or slot.holder is None:
            continue
        if slot.holder == (i, node.serial):
            older = slot.fence <= node.looked and (small.rules.strict_adoption or node.memory[n] is not None)
            if older and node.call is None and not _knows(node, n, slot):
                yield Request("give up", i, node.serial, node.acked, about=(n, slot.fence))
        else:
            holder = session_of(state.store, *slot.holder)
            if holder is None or not holder.live:
                yield Request("take over", i, node.serial, node.acked, about=slot.holder)


def _knows(node: Node, n: int, slot: Slot) -> bool:
    """Whether it runs here, or has ended here, of which the store is told again."""
    one = node.memory[n]
    return one is not None and one.attempt == slot.attempt and one.phase != STOPPED


# --- what it makes of the answers ------------------------------------------------------------------------------------


def unknown(state: State, request: Request) -> State:
    """No answer came: the request may have been applied, may yet be, or never."""
    i, node = request.node, state.nodes[request.node]
    if request.op == "claim":
        node = node._replace(wary=True)
    elif request.op == "finish":
        node = _ended(node, request.about[0], ENDED)
    elif request.op == "begin":
        # A session that its node does not know: the next one has another name.
        node = node._replace(serial=request.serial, acked=0, sent=1)
    elif request.op == "renew":
        node = node._replace(sent=request.about)
    return with_node(state, i, node)


def answered(small: GoingBack, state: State, request: Request, reply: Any, what: object) -> State:
    """The node learns what became of its request."""
    i, node, op = request.node, state.nodes[request.node], request.op
    if op == "renew":
        return _renewed(small, state, i, reply, what)
    if op == "begin":
        return with_node(state, i, _begun(small, state, node, request, reply))
    if op == "claim":
        n, attempt, fence = reply
        return _body(state, i, n, attempt, fence, what)
    if op == "finish":
        n = request.about[0]
        keep = reply or small.rules.refused_ends_kept
        return with_node(state, i, _ended(node, n, KEPT) if keep else _remember(node, n, None))
    if op == "join":
        return with_node(state, i, node._replace(joined=True)) if reply else state
    if op == "mark":
        checked = request.epoch if reply else node.checked
        return with_node(state, i, node._replace(checked=checked, joined=False))
    return state


def _begun(small: GoingBack, state: State, node: Node, request: Request, reply: Any) -> Node:
    acked, epoch, sign = reply
    new = request.about is None
    return node._replace(
        serial=request.serial,
        has=True,
        acked=acked,
        sent=acked,
        age=0,
        renewed=True,
        joined=node.joined and node.known == epoch and not (sign and small.rules.join_again),
        known=epoch,
        checked=epoch if new else node.checked,
        waits=BARRIER if new else 0,
        looked=state.fence,
        wary=False,
        thawed=False,
    )


def _renewed(small: GoingBack, state: State, i: int, reply: Any, what: object) -> State:
    node = state.nodes[i]._replace(thawed=False)
    if reply in ("absent", "dead"):
        return with_node(state, i, _lost(node))
    acked, epoch, marked, sign = reply
    looked = node.looked
    node = node._replace(
        acked=acked,
        sent=acked,
        age=0,
        renewed=True,
        joined=node.joined and node.known == epoch and not (sign and small.rules.join_again),
        known=epoch,
        looked=state.fence,
        wary=False,
    )
    if node.checked == epoch and not marked and small.rules.lost_mark_is_seen:
        node = node._replace(checked=None)
    state = with_node(state, i, _forget(small, node, state.store))
    return _reconcile(small, state, i, looked, what) if node.checked == epoch else state


def _forget(small: GoingBack, node: Node, store: Store) -> Node:
    """Forget what was acknowledged longer ago than the memory reaches, unless it is needed to go on."""
    reach = small.memory
    if reach is None or node.checked != node.known or store.space.state != OPEN:
        return node
    aged = [one and (one if one.phase in (RUNNING, ENDED) else one._replace(age=one.age + 1)) for one in node.memory]
    kept = [one if one and one.age <= reach else None for one in aged]
    return node._replace(memory=tuple(kept))


def _reconcile(small: GoingBack, state: State, i: int, looked: int, what: object) -> State:
    """Compare what the store says that this session holds with what runs here."""
    for n, slot in enumerate(state.store.slots):
        node = state.nodes[i]
        one, mine = node.memory[n], slot.phase == HELD and slot.holder == (i, node.serial)
        if one is not None and one.phase == RUNNING and not (mine and slot.fence == one.fence):
            state = with_node(state, i, _remember(node, n, one._replace(phase=STOPPED)))
        elif not mine or node.call is not None:
            continue
        elif one is not None and one.attempt >= slot.attempt:
            if one.phase == KEPT and one.attempt == slot.attempt:  # it has ended: it is ended again
                state = with_node(state, i, _remember(node, n, one._replace(phase=ENDED, fence=slot.fence)))
        elif slot.fence > looked or not small.rules.strict_adoption:
            state = _body(state, i, n, slot.attempt, slot.fence, what)
    return state


def heard(small: GoingBack, state: State, i: int, what: object) -> State | None:
    """The answer to a claim comes at last: its body starts, or None if it comes too late."""
    node, rules = state.nodes[i], small.rules
    assert node.call is not None
    n, attempt, fence, epoch, serial = node.call
    if not node.has or serial != node.serial:
        return None
    if rules.late_answers_dropped and (epoch != node.checked or (rules.answers_dropped_from_join and node.joined)):
        return None
    return _body(with_node(state, i, node._replace(call=None)), i, n, attempt, fence, what)


def _body(state: State, i: int, n: int, attempt: int, fence: int, what: object) -> State:
    state = promise.started(state, n, attempt, fence, i, what)
    return with_node(state, i, _remember(state.nodes[i], n, Memory(attempt, RUNNING, fence)))


def _ended(node: Node, n: int, phase: int) -> Node:
    one = node.memory[n]
    assert one is not None
    return _remember(node, n, one._replace(phase=phase, age=0))


def _remember(node: Node, n: int, one: Memory | None) -> Node:
    return node._replace(memory=(*node.memory[:n], one, *node.memory[n + 1 :]))
