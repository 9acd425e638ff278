"""The steps of a run: one result each forever, saved only under the fence of the latest attempt that has entered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.steps import Finished, enter, finished, prune, save

NEW = Absent(Kind.STEP, "job@1")


def note(change: Change | None) -> SmallDocument:
    assert change is not None
    assert isinstance(change.doc, SmallDocument)
    return change.doc


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_a_later_attempt_reads_what_was_saved_and_shuts_the_earlier_one_out() -> None:
    doc = note(enter(NEW, fence=5, now=1))
    doc = note(save(doc, step="charge", value={"id": 1}, fence=5, now=2))
    second = enter(doc, fence=6, now=3)
    assert second is not None
    assert second.answer == {"charge": Finished({"id": 1}, 2)}
    assert save(note(second), step="mail", value=None, fence=5, now=4) is None
    assert enter(note(second), fence=5, now=4) is None
    assert finished(note(save(note(second), step="mail", value=None, fence=6, now=5))).keys() == {"charge", "mail"}


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_a_step_has_one_result_for_ever() -> None:
    doc = note(enter(NEW, fence=5, now=1))
    doc = note(save(doc, step="charge", value=1, fence=5, now=2))
    again = save(doc, step="charge", value=2, fence=5, now=3)
    assert again == Change(doc, answer=Finished(1, 2))


def test_a_repeated_entry_writes_nothing() -> None:
    doc = note(enter(NEW, fence=5, now=1))
    assert note(enter(doc, fence=5, now=2)) is doc


def test_nothing_is_saved_by_one_who_has_not_entered() -> None:
    assert save(NEW, step="charge", value=1, fence=5, now=1) is None
    assert finished(NEW) == {}


def test_pruning_spares_runs_that_may_come_back() -> None:
    doc = note(enter(NEW, fence=5, now=100))
    assert prune(doc, before=100, unfinished={}) is None
    assert prune(doc, before=101, unfinished={"job@1": 1}) is None
    assert prune(doc, before=101, unfinished={}) == Change(None)
    assert prune(NEW, before=101, unfinished={}) is None


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
@given(st.lists(st.tuples(st.sampled_from(["enter", "save"]), st.integers(1, 4), st.sampled_from("xy")), max_size=30))
def test_any_story_keeps_the_first_result_and_refuses_stale_fences(moves: list[tuple[str, int, str]]) -> None:
    doc: SmallDocument | Absent = NEW
    latest, results = 0, {}
    for now, (move, fence, step) in enumerate(moves):
        change = (
            enter(doc, fence=fence, now=now)
            if move == "enter"
            else save(doc, step=step, value=[fence, now], fence=fence, now=now)
        )
        if move == "enter":
            assert (change is None) == (fence < latest)
            latest = max(latest, fence)
        else:
            assert (change is None) == (latest == 0 or fence != latest)
            if change is not None:
                results.setdefault(step, [fence, now])
                assert change.answer.value == results[step]
        if change is not None:
            doc = note(change)
    assert {name: done.value for name, done in finished(doc).items()} == results
