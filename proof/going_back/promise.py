"""The promise of a store that goes back (I22), word by word, and its exceptions.

No (run, attempt) starts twice, if

- another server answers, however much was lost, and a node that remembers the attempt reaches the store before the
  barrier opens; or it does not (killed, frozen), its session is in what is left, and the job has `retries=0`;
- or the same server answers, and what was lost includes a renewal of every node.

Not promised: the same server, less than a beat lost; a node that died and whose session began in what was lost; with
retries, an attempt of a node that is gone; a fleet in which every node was restarted.

If the claim of an attempt is still in the store, its second start is never excused, whatever else was lost.
"""

from __future__ import annotations

from collections.abc import Callable

from proof.explorer import Wrong
from proof.going_back.state import HELD, UNDECIDED, WAITING, Start, State, Store

__all__ = ["UNNOTICED", "gone", "lapse_of", "lost", "opened", "reached", "started"]

SAFE, LEFT, GONE, EXCUSED = range(4)
"""Of an attempt that was started: its claim is in the store; it was lost, but the session of the node that remembers it
is in what is left; it was lost with the session; nothing is promised of it."""

UNNOTICED, WEAK = 1, 2
"""Of a restore: no node that saw it has reached the store since; less than a renewal of every node was lost."""


def contains(store: Store, slot: int, attempt: int) -> bool:
    """Whether the store knows that an attempt was claimed."""
    found = store.slots[slot]
    if found.phase == UNDECIDED:
        return False
    if found.phase == HELD:
        return found.attempt >= attempt
    return found.phase != WAITING or found.attempt > attempt


def _in(store: Store, start: Start) -> bool:
    return any(one.node == start.node and one.serial == start.serial for one in store.sessions)


def lapse_of(state: State) -> int:
    """Of a restore: whether what was lost includes an acknowledged renewal of every node that lives."""
    assert state.behind is not None
    if not state.behind.space.named:
        return 0  # another server than the document names: that is seen whatever was lost
    kept = {(one.node, one.serial): one.version for one in state.behind.sessions}
    for i, node in enumerate(state.nodes):
        began = node.mode != "dead" and node.serial >= node.first
        if began and kept.get((i, node.serial), 0) >= node.acked:
            return WEAK
    return UNNOTICED


def _each(state: State, change: Callable[[int, int, Start], Start]) -> State:
    rows = []
    for slot, row in enumerate(state.starts):
        rows.append(tuple([one and change(slot, n + 1, one) for n, one in enumerate(row)]))
    starts = tuple(rows)
    return state if starts == state.starts else state._replace(starts=starts)


def lost(state: State, *, retries: int) -> State:
    """The store has gone back: what is promised now of all that was started."""

    def of(slot: int, attempt: int, start: Start) -> Start:
        if start.promise == EXCUSED:
            return start
        return start._replace(promise=_of_lost(state, slot, attempt, start, retries))

    return _each(state, of)


def _of_lost(state: State, slot: int, attempt: int, start: Start, retries: int) -> int:
    if contains(state.store, slot, attempt):
        return SAFE
    if state.lapse == WEAK:
        return EXCUSED
    left = _in(state.store, start)
    if not start.alive and (retries or not left):
        return EXCUSED
    return LEFT if left else GONE


def gone(state: State, i: int, *, retries: int) -> State:
    """A process was killed: no node remembers what it had not yet joined."""

    def of(slot: int, attempt: int, start: Start) -> Start:
        if start.node != i or not start.alive:
            return start
        start = start._replace(alive=False)
        if start.promise == EXCUSED or contains(state.store, slot, attempt):
            return start
        return start._replace(promise=EXCUSED if retries or start.promise == GONE else LEFT)

    return _each(state, of)


def reached(state: State, i: int) -> State:
    """A process has a session in the store, or has joined what it remembers."""

    def of(slot: int, attempt: int, start: Start) -> Start:
        if start.node != i or not start.alive or start.promise == EXCUSED:
            return start
        return start._replace(promise=SAFE if contains(state.store, slot, attempt) else LEFT)

    return _each(state, of)


def opened(state: State, *, retries: int) -> State:
    """The barrier opens: a node that was frozen until now has not reached the store before."""

    def of(slot: int, attempt: int, start: Start) -> Start:
        if start.promise not in (LEFT, GONE) or not start.alive or contains(state.store, slot, attempt):
            return start
        node = state.nodes[start.node]
        away = node.mode == "frozen" or node.thawed
        return start._replace(promise=EXCUSED) if away and (retries or start.promise == GONE) else start

    return _each(state._replace(lapse=0), of)


def started(state: State, slot: int, attempt: int, fence: int, i: int, what: object) -> State:
    """The body of an attempt starts; raise `Wrong` if that was promised not to happen."""
    row = state.starts[slot]
    before = row[attempt - 1]
    if before is not None:
        excused = before.promise == EXCUSED or (state.lapse == WEAK and state.store.slots[slot].fence != fence)
        if not excused and not _no_witness_left(state):
            raise Wrong("I22: an attempt starts twice", what)
        return state
    new = Start(i, state.nodes[i].serial, True, SAFE)
    if not contains(state.store, slot, attempt):
        promise = EXCUSED if state.lapse == WEAK else LEFT if _in(state.store, new) else GONE
        new = new._replace(promise=promise)
    row = (*row[: attempt - 1], new, *row[attempt:])
    return state._replace(starts=(*state.starts[:slot], row, *state.starts[slot + 1 :]))


def _no_witness_left(state: State) -> bool:
    """After a restore: every node that could notice was killed and restarted, or is frozen."""
    survivors = [node for node in state.nodes if node.mode == "up" and not node.newcomer and not node.thawed]
    return state.lapse == UNNOTICED and not survivors
