"""Keys of states: equal for states that are the same for every purpose, so that there are finitely many.

Times count from now and stop where nothing depends on them any more. Versions of a session are compared with each other
only: they count from the least that any of them has, and a wide gap is as good as a wider one. Documents that no node
will ever look at again are gone. Nodes stand in an order of their own, whichever is called A or B.
"""

from __future__ import annotations

from typing import Any

from proof.going_back.promise import UNNOTICED
from proof.going_back.state import LEASE, GoingBack, Node, Request, Session, State, Store

__all__ = ["key_of", "later"]

Id = tuple[int, int]


def later(state: State, small: GoingBack) -> State:
    """The state a beat later, in the smallest numbers that say the same."""
    wanted = _wanted(state)
    labels = _versions(state, small, wanted)
    nodes = tuple([_later_node(state, i, node, labels) for i, node in enumerate(state.nodes)])
    return state._replace(
        due=min(state.due + 1, small.slots),
        store=_later_store(state.store, wanted, labels),
        behind=state.behind and _later_store(state.behind, wanted, labels),
        nodes=nodes,
        floating=tuple([_later_request(one, labels[_session(one)]) for one in state.floating]),
    )


def _session(request: Request) -> Id:
    """The session of which a request says the acknowledged version."""
    return (request.node, (request.about or 0) if request.op == "begin" else request.serial)


def _later_request(one: Request, label: dict[int, int]) -> Request:
    about = label[one.about] if one.op == "renew" else one.about
    return one._replace(acked=label[one.acked], about=about)


def _later_node(state: State, i: int, node: Node, labels: dict[Id, dict[int, int]]) -> Node:
    if node.mode == "dead":
        return node
    return node._replace(
        renewed=False,
        age=min(node.age + 1, LEASE),
        waits=max(node.waits - 1, 0),
        acked=labels[i, node.serial][node.acked],
        sent=labels[i, node.serial][node.sent],
        looked=node.looked if _may_hold(state, i) else state.fence,
        newcomer=node.newcomer and state.lapse == UNNOTICED,
    )


def _may_hold(state: State, i: int) -> bool:
    """Whether there may be a hold of which a node has to know if it is older than its last look."""
    stores = [state.store] if state.behind is None else [state.store, state.behind]
    return bool(state.floating) or any(
        slot.holder is not None and slot.holder[0] == i for store in stores for slot in store.slots
    )


def _later_store(store: Store, wanted: set[Id], labels: dict[Id, dict[int, int]]) -> Store:
    sessions = [
        one._replace(left=max(one.left - 1, 0), version=labels[one.node, one.serial][one.version])
        for one in store.sessions
        if _kept(one, wanted)
    ]
    space = store.space
    return store._replace(sessions=tuple(sessions), space=space._replace(age=min(space.age + 1, LEASE)))


def _wanted(state: State) -> set[Id]:
    """Sessions whose documents matter though they are dead."""
    wanted = {(i, node.serial) for i, node in enumerate(state.nodes) if node.mode != "dead"}
    wanted.update([(one.node, one.serial) for one in state.floating])
    for store in (state.store, state.behind):
        if store is not None:
            wanted.update([slot.holder for slot in store.slots if slot.holder is not None])
    return wanted


def _kept(one: Session, wanted: set[Id]) -> bool:
    return one.live or (one.node, one.serial) in wanted


def _versions(state: State, small: GoingBack, wanted: set[Id]) -> dict[Id, dict[int, int]]:
    found: dict[Id, set[int]] = {}
    for store in (state.store, state.behind):
        for one in store.sessions if store is not None else ():
            if _kept(one, wanted):
                found.setdefault((one.node, one.serial), set()).add(one.version)
    for i, node in enumerate(state.nodes):
        found.setdefault((i, node.serial), set()).update((node.acked, node.sent))
    for request in state.floating:
        found.setdefault(_session(request), set()).add(request.acked)
        if request.op == "renew":
            found[_session(request)].add(request.about)
    # A late renewal may add one to a version. Where memory ends, the age of a session counts as well.
    widest = 2 if small.memory is None else small.memory + 1
    labels = {}
    for session, versions in found.items():
        ordered = sorted(versions)
        at = 1 if small.memory is None else min(ordered[0], widest)
        label, before = {}, ordered[0]
        for version in ordered:
            at += min(version - before, widest)
            label[version], before = at, version
        labels[session] = label
    return labels


def key_of(state: State) -> Any:
    """The state with its nodes in the order of how they look.

    Only when a beat has just passed: that merges nearly as many, for what follows a merged state is explored once.
    """
    if any(node.renewed for node in state.nodes):
        return state
    looks = [_look(state, i, node) for i, node in enumerate(state.nodes)]
    order = sorted(range(len(looks)), key=looks.__getitem__)
    if order == list(range(len(looks))):
        return state
    place = {i: n for n, i in enumerate(order)}
    return state._replace(
        store=_moved(state.store, place),
        behind=state.behind and _moved(state.behind, place),
        nodes=tuple([state.nodes[i] for i in order]),
        floating=tuple(sorted([_moved_request(one, place) for one in state.floating], key=repr)),
        starts=tuple([tuple([one and one._replace(node=place[one.node]) for one in row]) for row in state.starts]),
    )


def _look(state: State, i: int, node: Node) -> Any:
    return (
        node._replace(checked=node.checked or (0, 0), call=None, memory=()),
        node.call or (),
        [one or () for one in node.memory],
        [one for one in state.store.sessions if one.node == i] if node.mode == "dead" else 0,
    )


def _moved(store: Store, place: dict[int, int]) -> Store:
    return store._replace(
        sessions=tuple(sorted([one._replace(node=place[one.node]) for one in store.sessions])),
        slots=tuple(
            [
                slot if slot.holder is None else slot._replace(holder=(place[slot.holder[0]], slot.holder[1]))
                for slot in store.slots
            ]
        ),
    )


def _moved_request(one: Request, place: dict[int, int]) -> Request:
    about = one.about
    if one.op in ("bury", "take over"):
        about = (place[about[0]], about[1])
    return one._replace(node=place[one.node], about=about)
