"""An idempotency key's document: begun by one process, done forever, and in doubt when that process died."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.codec import decode, encode
from solocron.model.documents.key import (
    Done,
    Doubt,
    Opened,
    Opening,
    Stand,
    Working,
    close,
    doubt,
    drop,
    open_key,
    orphan,
    prune,
    seize,
    stand_of,
)

T0 = 1_790_000_000 * SECOND
NEW = Absent(Kind.KEY, "receipt:42")


def by(token: str = "a", **more: Any) -> Opening:
    return Opening(token=token, session=more.pop("session", f"s-{token}"), owner=f"owner-{token}", **more)


def note(change: Change | None) -> SmallDocument:
    assert change is not None
    assert isinstance(change.doc, SmallDocument)
    return change.doc


def opened(token: str = "a", **more: Any) -> SmallDocument:
    return note(open_key(NEW, by(token, **more), now=T0))


def test_the_first_one_opens_it_and_a_repeated_request_is_recognised() -> None:
    change = open_key(NEW, by(), now=T0)
    assert change.answer == Opened()
    assert note(change).session == "s-a"
    assert open_key(note(change), by(), now=T0 + 1).answer == Opened()


def test_while_somebody_is_at_work_others_are_told_who() -> None:
    assert open_key(opened(), by("b"), now=T0 + 1).answer == Working("owner-a", "s-a", T0)


def test_done_is_done_for_ever_and_brings_its_result() -> None:
    done = note(close(opened(), token="a", now=T0 + 1, value={"id": 7}))
    assert done.session is None
    assert open_key(done, by("b"), now=T0 + 10**15).answer == Done({"id": 7}, T0 + 1)
    assert open_key(done, by("a"), now=T0).answer == Done({"id": 7}, T0 + 1)


def test_a_dead_holder_leaves_doubt_and_so_does_an_earlier_attempt_of_the_same_run() -> None:
    assert open_key(opened(), by("b"), now=T0, dead=frozenset({"s-a"})).answer == Doubt("owner-a", "a", T0)
    mine = opened("a", run="job@1", fence=5)
    assert isinstance(open_key(mine, by("b", run="job@1", fence=6), now=T0).answer, Doubt)
    assert isinstance(open_key(mine, by("b", run="job@1", fence=5), now=T0).answer, Working)
    assert isinstance(open_key(mine, by("b", run="job@2", fence=6), now=T0).answer, Working)


def test_a_swept_session_leaves_its_open_keys_uncertain_and_its_done_ones_alone() -> None:
    swept = note(orphan(opened(), session="s-a", now=T0))
    assert (stand_of(swept), swept.session) == (Stand.UNCERTAIN, None)
    assert orphan(swept, session="s-a", now=T0) is None
    assert orphan(note(close(opened(), token="a", now=T0)), session="s-a", now=T0) is None
    assert orphan(NEW, session="s-a", now=T0) is None
    assert isinstance(open_key(swept, by("b"), now=T0).answer, Doubt)


def test_what_is_in_doubt_can_be_begun_anew_by_one_only() -> None:
    doubtful = note(orphan(opened(), session="s-a", now=T0))
    anew = note(seize(doubtful, by("b"), after="a", now=T0 + 1))
    assert stand_of(anew) is Stand.OPEN
    assert seize(anew, by("c"), after="a", now=T0 + 1) is None
    assert seize(anew, by("b"), after="a", now=T0 + 1) == Change(anew, answer=Opened())
    assert seize(note(close(opened(), token="a", now=T0)), by("b"), after="a", now=T0) is None
    assert seize(NEW, by("b"), after="a", now=T0) is None


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_only_the_current_beginning_can_be_ended() -> None:
    anew = note(seize(note(orphan(opened(), session="s-a", now=T0)), by("b"), after="a", now=T0))
    assert close(anew, token="a", now=T0) is None
    assert drop(anew, token="a", now=T0) is None
    assert doubt(anew, token="a", now=T0) is None
    assert close(NEW, token="a", now=T0) is None


def test_an_end_whose_answer_was_lost_is_answered_again_with_the_first_result() -> None:
    done = note(close(opened(), token="a", now=T0, value=1))
    again = close(done, token="a", now=T0 + 9, value=2)
    assert again == Change(done, answer="accepted before")


def test_a_body_that_raised_frees_the_key_and_one_that_was_cut_off_leaves_doubt() -> None:
    assert drop(opened(), token="a", now=T0) == Change(None)
    assert stand_of(note(doubt(opened(), token="a", now=T0))) is Stand.UNCERTAIN


def test_a_key_with_an_age_can_be_used_again_unless_a_run_made_it() -> None:
    done = note(close(opened(), token="a", now=T0, keep=SECOND))
    assert isinstance(open_key(done, by("b"), now=T0 + SECOND - 1).answer, Done)
    assert open_key(done, by("b"), now=T0 + SECOND).answer == Opened()
    of_run = note(close(opened("a", run="job@1", fence=1), token="a", now=T0, keep=SECOND))
    assert isinstance(open_key(of_run, by("b"), now=T0 + 10**12).answer, Done)


def test_pruning_spares_what_is_young_for_ever_or_of_a_run_that_may_come_back() -> None:
    of_run = note(close(opened("a", run="job@1", fence=1), token="a", now=T0, keep=SECOND))
    assert prune(of_run, now=T0, unfinished={}) is None
    assert prune(of_run, now=T0 + SECOND, unfinished={"job@1": 1}) is None
    assert prune(of_run, now=T0 + SECOND, unfinished={}) == Change(None)
    assert prune(note(close(opened(), token="a", now=T0)), now=T0 + 10**15, unfinished={}) is None
    assert prune(opened(), now=T0 + 10**15, unfinished={}) is None
    assert prune(NEW, now=T0, unfinished={}) is None


def test_a_document_survives_its_own_json() -> None:
    for doc in (opened("a", run="r", fence=3), note(close(opened(), token="a", now=T0, value=["x"], keep=5))):
        assert decode(Kind.KEY, doc.name, *encode(doc)) == doc
