"""A lock's document: one holder, its token, a fence that only grows, and times by the store's clock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import MILLISECOND, SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.codec import decode, encode
from solocron.model.documents.lock import (
    QUEUE,
    TICKET,
    Ask,
    Busy,
    Granted,
    acquire,
    extend,
    force,
    leave,
    orphan,
    raise_fence,
    release,
    state_of,
)

T0 = 1_790_000_000 * SECOND
FREE = Absent(Kind.LOCK, "door")


def ask(token: str = "a", **more: Any) -> Ask:
    return Ask(token=token, owner=f"owner-{token}", at_most=more.pop("at_most", 60 * SECOND), **more)


def note(change: Change | None) -> SmallDocument:
    assert change is not None
    assert isinstance(change.doc, SmallDocument)
    return change.doc


def held(token: str = "a", **more: Any) -> SmallDocument:
    return note(acquire(FREE, ask(token, **more), now=T0))


def answer(change: Change | None) -> Any:
    assert change is not None
    return change.answer


def test_a_free_lock_is_granted_with_a_fence_of_the_stores_time() -> None:
    change = acquire(FREE, ask(), now=T0)
    assert answer(change) == Granted(T0 // MILLISECOND, T0)
    state = state_of(note(change))
    assert (state.token, state.owner, state.since, state.until) == ("a", "owner-a", T0, T0 + 60 * SECOND)


def test_a_taken_lock_is_busy_and_says_who_has_it() -> None:
    change = acquire(held(), ask("b"), now=T0 + 1)
    assert answer(change) == Busy("owner-a", None, T0, T0 + 60 * SECOND, 0)
    assert note(change) == held()


def test_a_repeated_request_is_answered_as_granted() -> None:
    doc = held()
    assert answer(acquire(doc, ask(), now=T0 + SECOND)) == Granted(state_of(doc).fence, T0)


def test_after_its_time_it_goes_to_the_next_with_a_higher_fence() -> None:
    doc = held(at_most=1)
    later = acquire(doc, ask("b"), now=T0 + 1)
    assert answer(later).fence == state_of(doc).fence + 1


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_the_fence_grows_over_release_expiry_force_and_a_clock_that_went_back() -> None:
    doc: SmallDocument | Absent = FREE
    fences = []
    for turn, now in enumerate([T0, T0 + 90 * SECOND, T0 - 3600 * SECOND, T0 - 3000 * SECOND]):
        change = acquire(doc, ask(str(turn), at_most=SECOND), now=now)
        fences.append(answer(change).fence)
        doc = note(release(note(change), token=str(turn), now=now))
    assert fences == sorted(set(fences))


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_release_and_extension_need_the_token_of_this_acquisition() -> None:
    doc = held()
    assert release(doc, token="b", now=T0) is None
    assert extend(doc, token="b", at_most=1, at_least=0, now=T0) is None
    free = note(release(doc, token="a", now=T0))
    again = note(acquire(free, ask("c"), now=T0))
    assert release(again, token="b", now=T0) is None


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_an_old_holder_can_neither_release_nor_extend_what_its_successor_has() -> None:
    successor = note(acquire(held(at_most=SECOND), ask("b"), now=T0 + SECOND))
    assert extend(successor, token="a", at_most=SECOND, at_least=0, now=T0 + SECOND) is None
    assert release(successor, token="a", now=T0 + SECOND) is None


def test_a_release_whose_answer_was_lost_is_answered_again() -> None:
    free = note(release(held(), token="a", now=T0))
    assert answer(release(free, token="a", now=T0 + 1)) is False


@pytest.mark.invariant("I14: after a fault what is overdue starts within a bound")
def test_an_extension_sets_the_time_and_never_adds_to_it() -> None:
    doc = held(at_most=3600 * SECOND)
    shorter = note(extend(doc, token="a", at_most=SECOND, at_least=0, now=T0 + SECOND))
    assert state_of(shorter).until == T0 + 2 * SECOND


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_an_extension_never_revives_a_lock_whose_time_is_over() -> None:
    assert extend(held(at_most=SECOND), token="a", at_most=SECOND, at_least=0, now=T0 + SECOND) is None


def test_inside_at_least_a_released_lock_stays_taken_by_nobody() -> None:
    kept = note(release(held(at_least=10 * SECOND), token="a", now=T0 + SECOND))
    assert state_of(kept).token is None
    assert isinstance(answer(acquire(kept, ask("b"), now=T0 + 9 * SECOND)), Busy)
    assert extend(kept, token="a", at_most=SECOND, at_least=0, now=T0 + SECOND) is None
    assert isinstance(answer(acquire(kept, ask("b"), now=T0 + 10 * SECOND)), Granted)


def test_a_lock_tied_to_a_session_is_taken_over_only_from_the_dead() -> None:
    doc = held(session="s1")
    assert state_of(doc).until is None
    assert isinstance(answer(acquire(doc, ask("b"), now=T0 + 10**12)), Busy)
    assert isinstance(answer(acquire(doc, ask("b"), now=T0, dead=frozenset({"s1"}))), Granted)
    assert orphan(doc, session="s2", now=T0) is None
    assert not state_of(note(orphan(doc, session="s1", now=T0))).taken(now=T0)


def test_waiting_in_line_keeps_the_order_and_lets_nobody_pass() -> None:
    doc = held()
    for token in ("b", "c"):
        doc = note(acquire(doc, ask(token, queue=True), now=T0))
    doc = note(release(doc, token="a", now=T0))
    assert isinstance(answer(acquire(doc, ask("d"), now=T0)), Busy)
    assert answer(acquire(doc, ask("c", queue=True), now=T0)).ahead == 1
    second = acquire(doc, ask("b", queue=True), now=T0)
    assert isinstance(answer(second), Granted)
    assert [ticket for ticket, _ in state_of(note(second)).waiting] == ["c"]


def test_a_waiter_that_does_not_come_back_loses_its_place() -> None:
    doc = note(acquire(held(), ask("b", queue=True), now=T0))
    doc = note(release(doc, token="a", now=T0))
    assert isinstance(answer(acquire(doc, ask("c"), now=T0 + TICKET - 1)), Busy)
    assert isinstance(answer(acquire(doc, ask("c"), now=T0 + TICKET)), Granted)


def test_a_waiter_that_looks_again_soon_writes_nothing_and_late_keeps_its_place() -> None:
    doc = note(acquire(held(), ask("b", queue=True), now=T0))
    assert note(acquire(doc, ask("b", queue=True), now=T0 + SECOND)) is doc
    late = T0 + TICKET // 2 + 1
    assert dict(state_of(note(acquire(doc, ask("b", queue=True), now=late))).waiting) == {"b": late + TICKET}


def test_the_queue_is_bounded_and_can_be_left() -> None:
    doc = held()
    for number in range(QUEUE + 3):
        doc = note(acquire(doc, ask(f"w{number}", queue=True), now=T0))
    assert len(state_of(doc).waiting) == QUEUE
    assert len(state_of(note(leave(doc, token="w0", now=T0))).waiting) == QUEUE - 1
    assert leave(doc, token="nobody", now=T0) is None


def test_a_release_by_force_raises_the_fence_and_is_recorded() -> None:
    doc = held()
    forced = note(force(doc, by="ops", why="stuck", now=T0 + SECOND))
    state = state_of(forced)
    assert state.fence > state_of(doc).fence
    assert state.forced[0] == {
        "at": T0 + SECOND, "by": "ops", "why": "stuck", "owner": "owner-a", "fence": state_of(doc).fence,
    }  # fmt: skip
    assert release(forced, token="a", now=T0) is None
    assert force(forced, by=None, why="again", now=T0) is None
    assert force(FREE, by=None, why="again", now=T0) is None


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_a_store_that_is_older_than_the_asker_remembers_is_refused() -> None:
    doc = held()
    fence = state_of(doc).fence
    assert acquire(FREE, ask("b", seen=fence), now=T0) is None
    assert acquire(doc, ask("b", seen=fence + 1), now=T0 + 90 * SECOND) is None
    raised = note(raise_fence(doc, fence=fence + 5))
    assert raise_fence(raised, fence=fence) is None
    assert acquire(raised, ask("b", seen=fence + 1), now=T0 + 90 * SECOND) is not None


@pytest.mark.parametrize("queue", [True, False])
def test_a_document_survives_its_own_json(queue: bool) -> None:
    doc = note(acquire(held(session="s", at_least=SECOND), ask("b", queue=queue), now=T0))
    doc = note(force(doc, by="x", why="y", now=T0))
    assert state_of(decode(Kind.LOCK, "door", *encode(doc))) == state_of(doc)  # type: ignore[arg-type]


TOKENS = st.sampled_from("abc")
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "queue", "release", "extend", "force", "leave"]),
        TOKENS,
        st.integers(0, 3 * SECOND),
    ),
    max_size=40,
)


@pytest.mark.invariant("I1: a slot has one live claim at a time")
@pytest.mark.invariant("I3: the fences of a job only grow")
@given(MOVES)
def test_any_story_has_one_holder_at_a_time_and_growing_fences(moves: list[tuple[str, str, int]]) -> None:
    """An oracle beside the document: who was granted it, until when, and whether it let go."""
    doc: SmallDocument | Absent = FREE
    now, holder, until, fence, serial = T0, None, 0, 0, 0
    tokens = {letter: letter for letter in "abc"}
    for move, letter, pause in moves:
        now += pause
        token = tokens[letter]
        change: Change | None
        if move in ("acquire", "queue"):
            change = acquire(doc, ask(token, at_most=2 * SECOND, queue=move == "queue"), now=now)
            if isinstance(answer(change), Granted) and holder != token:
                assert holder is None or until <= now, "granted while another process had it"
                assert answer(change).fence > fence
                holder, until, fence = token, now + 2 * SECOND, answer(change).fence
        elif move == "release":
            change = release(doc, token=token, now=now)
            if change is not None and holder == token:
                holder = None
            serial += 1
            tokens[letter] = f"{letter}{serial}"  # each acquisition has a token of its own
        elif move == "extend":
            change = extend(doc, token=token, at_most=2 * SECOND, at_least=0, now=now)
            if change is not None:
                assert holder == token
                until = now + 2 * SECOND
        elif move == "force":
            change = force(doc, by=None, why="x", now=now)
            if change is not None:
                holder, fence = None, state_of(note(change)).fence
        else:
            change = leave(doc, token=token, now=now)
        if change is not None:
            doc = note(change)
