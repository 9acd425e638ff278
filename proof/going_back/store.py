"""A store that may go back: each request is one atomic step, and tests in it what the rules say it must test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proof.going_back import promise
from proof.going_back.state import (
    BARRIER,
    CHECKING,
    CLOSED,
    DONE,
    ENDED,
    HELD,
    LEASE,
    OPEN,
    PASSED,
    RUNNING,
    UNDECIDED,
    WAITING,
    GoingBack,
    Memory,
    Namespace,
    Request,
    Session,
    Slot,
    State,
    Store,
)

__all__ = ["apply", "claimable", "session_of"]

DECIDED = Slot(DONE)


def session_of(store: Store, node: int, serial: int) -> Session | None:
    """The document of a session, if there is one."""
    for one in store.sessions:
        if one.serial == serial and one.node == node:
            return one
    return None


def claimable(state: State, slots: tuple[Slot, ...]) -> int | None:
    """The slot that a claim gets: one run at a time, a retry first, then the slots in order."""
    found = None
    for n, slot in enumerate(slots):
        if slot.phase == HELD:
            return None
        if slot.phase == WAITING:
            return n
        if slot.phase == UNDECIDED and found is None and n < state.due:
            found = n
    return found


def apply(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    """Return the store after a request, and the answer; None if it was refused."""
    return OPERATIONS[request.op](small, state, request)


def _begin(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    """A new session. `about` is the one before it in this process, if any, of which `acked` is the version."""
    before = None if request.about is None else session_of(state.store, request.node, request.about)
    state, sign = _check_begins(small, state, request, before, known=request.about is not None)
    store = state.store
    # Who remembers nothing has nothing to check.
    marked = request.about is None or request.checked == store.space.epoch
    new = Session(request.node, request.serial, 1, LEASE, True, marked, True)
    state = state._replace(store=store._replace(sessions=tuple(sorted((*store.sessions, new)))))
    return _noticed(promise.reached(state, request.node), request.node), (1, store.space.epoch, sign)


def _renew(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    found = session_of(state.store, request.node, request.serial)
    state, sign = _check_begins(small, state, request, found, known=True)
    store = state.store
    if found is None:
        return _noticed(state, request.node), "absent"
    if not found.live:
        return _noticed(state, request.node), "dead"
    found = session_of(store, request.node, request.serial)
    assert found is not None
    version = max(found.version, request.about if small.rules.renewals_are_numbered else found.version + 1)
    new = found._replace(version=version, left=LEASE, renewed=True)
    return _noticed(_with_session(state, found, new), request.node), (version, store.space.epoch, found.marked, sign)


def _check_begins(
    small: GoingBack, state: State, request: Request, own: Session | None, *, known: bool
) -> tuple[State, bool]:
    """A node that meets a sign that the store went back begins a check in that step, or joins one that is under way."""
    space, rules = state.store.space, small.rules
    lower = known and (own is None or own.version < request.acked)
    if own is not None and not own.live and not rules.dead_session_is_sign:
        lower = False
    below = known and rules.epoch_is_sign and request.epoch is not None and space.epoch[0] < request.epoch[0]
    if space.named and not lower and not below:
        return state, False
    beyond = False
    if small.memory is not None and rules.stop_beyond_memory and lower:
        beyond = request.acked - (0 if own is None else own.version) > small.memory
    under_way = space.named and space.state == CHECKING and space.epoch != request.checked
    if space.state == CLOSED or (under_way and not (beyond and rules.stop_also_when_joining)):
        return state, True
    token = state.token + 1
    new = Namespace(
        epoch=(space.epoch[0] + 1, token),
        state=CLOSED if beyond else CHECKING,
        age=0,
        due=state.due,
        doubt=rules.doubt_kept and space.doubt and space.state == CHECKING,
    )
    sessions = tuple([one._replace(marked=False, renewed=False) for one in state.store.sessions])
    return state._replace(store=state.store._replace(space=new, sessions=sessions), token=token), True


def _noticed(state: State, i: int) -> State:
    if state.lapse == promise.UNNOTICED and not state.nodes[i].newcomer:
        state = state._replace(lapse=0)
    return state


def _claim(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    store, rules = state.store, small.rules
    own = session_of(store, request.node, request.serial)
    if own is None or not own.live or store.space.state != OPEN:
        return state, None
    if rules.claim_tests_version and own.version < request.acked:
        return state, None
    if rules.claim_tests_server and not store.space.named:
        return state, None
    if rules.claim_tests_epoch and store.space.epoch != request.epoch:
        return state, None
    n = claimable(state, store.slots)
    if n is None:
        return state, None
    fence, attempt = state.fence + 1, max(store.slots[n].attempt, 1)
    state = _with_slot(state, n, Slot(HELD, attempt, (request.node, request.serial), fence))
    return state._replace(fence=fence), (n, attempt, fence)


def _finish(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    n, fence = request.about
    if state.store.slots[n].phase == HELD and state.store.slots[n].fence == fence:
        return _with_slot(state, n, DECIDED), True
    return state, False


def _give_up(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    n, fence = request.about
    slot = state.store.slots[n]
    if slot.phase == HELD and slot.fence == fence:
        return _with_slot(state, n, _after(slot.attempt, small.retries)), True
    return state, False


def _join(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    """Bring the documents up to what a node remembers: each run to the further of (attempt: waiting, held, ended)."""
    store = state.store
    own = session_of(store, request.node, request.serial)
    if small.rules.join_tests_session and not _checks(store, own, request):
        return state, None
    slots = list(store.slots)
    if small.rules.heal:
        for n, remembered in enumerate(request.about):
            if remembered is not None:
                target = _joined(remembered, (request.node, request.serial), small.retries)
                if _reach(target) > _reach(slots[n]):
                    slots[n] = target
        cursor = max([n for n, slot in enumerate(slots) if slot.phase != UNDECIDED], default=-1)
        slots[: cursor + 1] = [Slot(PASSED) if slot.phase == UNDECIDED else slot for slot in slots[: cursor + 1]]
    state = state._replace(store=store._replace(slots=tuple(slots)))
    return promise.reached(state, request.node) if small.rules.heal else state, True


def _checks(store: Store, own: Session | None, request: Request) -> bool:
    """Whether this is still the check that the node takes part in, and its session is as it knows it."""
    if own is None or not own.live or own.version < request.acked:
        return False
    return store.space.named and store.space.epoch == request.epoch


def _joined(remembered: Memory, session: tuple[int, int], retries: int) -> Slot:
    if remembered.phase >= ENDED:
        return DECIDED
    if remembered.phase == RUNNING:
        return Slot(HELD, remembered.attempt, session, remembered.fence)
    return _after(remembered.attempt, retries)


def _reach(slot: Slot) -> tuple[int, int]:
    if slot.phase == DONE:
        return (99, 0)
    return (slot.attempt, slot.phase)


def _after(attempt: int, retries: int) -> Slot:
    """Return the slot after an attempt that crashed."""
    return Slot(WAITING, attempt + 1) if attempt <= retries else DECIDED


def _mark(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    """The node has checked this epoch: mark its session, end its earlier ones (from `about` on)."""
    own = session_of(state.store, request.node, request.serial)
    if own is None or not _checks(state.store, own, request):
        return state, None
    sessions = [
        one._replace(live=False) if one.node == request.node and request.about <= one.serial < request.serial else one
        for one in state.store.sessions
    ]
    state = state._replace(store=state.store._replace(sessions=tuple(sessions)))
    return _with_session(state, own, own._replace(marked=True)), True


def _open(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    space, rules = state.store.space, small.rules
    if space.state != CHECKING or not space.named or space.epoch != request.epoch:
        return state, None
    if rules.barrier and space.age < BARRIER:
        return state, None
    for one in state.store.sessions:
        if one.live and not (one.marked if rules.open_on_marked else one.renewed):
            return state, None
    slots = list(state.store.slots)
    for n, slot in enumerate(slots):
        if slot.phase == PASSED and rules.passed_over_recorded:
            slots[n] = DECIDED
        elif space.doubt and (slot.phase == WAITING or (slot.phase == UNDECIDED and n < space.due)):
            slots[n] = _after(max(slot.attempt, 1), small.retries)
    space = space._replace(state=OPEN, doubt=False)
    state = state._replace(store=state.store._replace(space=space, slots=tuple(slots)))
    return promise.opened(state, retries=small.retries), True


def _sweeper(small: GoingBack, state: State, request: Request) -> bool:
    """Whether a sweeper is up to date: it knows this server, and has not lost renewals of its own."""
    if not small.rules.burial_tests_server:
        return True
    own = session_of(state.store, request.node, request.serial)
    return own is not None and own.live and own.version >= request.acked and state.store.space.named


def _bury(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    target, space = session_of(state.store, *request.about), state.store.space
    if target is None or not target.live or target.left or not _sweeper(small, state, request):
        return state, None
    if small.rules.burial_waits and space.age < LEASE:
        return state, None
    state = _with_session(state, target, target._replace(live=False))
    if space.state == CHECKING and not target.marked and small.rules.doubt:
        state = state._replace(store=state.store._replace(space=space._replace(doubt=True)))
    return state, True


def _take_over(small: GoingBack, state: State, request: Request) -> tuple[State, Any]:
    target = session_of(state.store, *request.about)
    if (target is not None and target.live) or not _sweeper(small, state, request):
        return state, None
    if state.store.space.state != OPEN and small.rules.takeover_waits:
        return state, None
    for n, slot in enumerate(state.store.slots):
        if slot.phase == HELD and slot.holder == request.about:
            state = _with_slot(state, n, _after(slot.attempt, small.retries))
    return state, True


OPERATIONS: dict[str, Callable[[GoingBack, State, Request], tuple[State, Any]]] = {
    "begin": _begin,
    "renew": _renew,
    "claim": _claim,
    "finish": _finish,
    "give up": _give_up,
    "join": _join,
    "mark": _mark,
    "open": _open,
    "bury": _bury,
    "take over": _take_over,
}


def _with_session(state: State, old: Session, new: Session) -> State:
    sessions = tuple([new if one is old or one == old else one for one in state.store.sessions])
    return state._replace(store=state.store._replace(sessions=sessions))


def _with_slot(state: State, n: int, slot: Slot) -> State:
    slots = (*state.store.slots[:n], slot, *state.store.slots[n + 1 :])
    return state._replace(store=state.store._replace(slots=slots))
