"""The namespace's document: who may begin a check, join one, open and close."""

from __future__ import annotations

from functools import partial

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import namespace as model
from solocron.model.documents.namespace import NAME, Namespace, Openness

NOWHERE = Absent(Kind.NAMESPACE, NAME)
OPEN = Namespace(count=3, token="t", identity="old")
CHECKING = Namespace(count=4, token="u", identity="new", openness=Openness.CHECKING, since=100)
begin = partial(model.begin_check, identity="new", known=3, checked="3.t", token="v", now=200)


def after(change: Change | None) -> Namespace:
    assert change is not None
    found = model.read(change.doc)
    assert found is not None
    assert found == change.answer
    return found


def test_the_first_node_makes_it_open_and_others_find_it() -> None:
    made = after(model.establish(NOWHERE, identity="a", token="x"))
    assert (made.count, made.openness, made.identity) == (1, Openness.OPEN, "a")
    assert after(model.establish(made.note(), identity="b", token="y")) == made


def test_a_sign_begins_a_check_under_a_higher_epoch_for_the_server_that_answers() -> None:
    found = after(begin(OPEN.note()))
    assert (found.count, found.openness, found.identity, found.since) == (4, Openness.CHECKING, "new", 200)
    assert after(begin(OPEN.note(), known=9)).count == 10, "above every epoch that was ever seen"
    assert after(begin(NOWHERE)).count == 4, "also where the document itself is lost"


def test_a_check_that_is_under_way_is_joined_unless_this_node_has_taken_part_in_it() -> None:
    assert after(begin(CHECKING.note())) == CHECKING
    assert after(begin(CHECKING.note(), checked="4.u")).count == 5, "it went back again"
    assert after(begin(CHECKING.note(), identity="newer")).count == 5, "yet another server answers"


def test_the_doubt_of_a_check_that_is_not_over_stays() -> None:
    doubtful = after(model.note_doubt(CHECKING.note(), epoch="4.u"))
    assert doubtful.doubt
    assert after(begin(doubtful.note(), identity="newer")).doubt
    assert not after(begin(OPEN.note())).doubt
    assert model.note_doubt(CHECKING.note(), epoch="3.t") is None, "it is another check by now"


def test_it_opens_when_the_barrier_is_over_and_doubt_was_dealt_with() -> None:
    opened = partial(model.open_again, CHECKING.note(), epoch="4.u", barrier=50, doubt=False)
    assert opened(now=149) is None
    assert after(opened(now=150)).openness is Openness.OPEN
    assert model.open_again(CHECKING.note(), epoch="3.t", now=150, barrier=50, doubt=False) is None
    doubtful = after(model.note_doubt(CHECKING.note(), epoch="4.u"))
    assert model.open_again(doubtful.note(), epoch="4.u", now=150, barrier=50, doubt=False) is None
    assert not after(model.open_again(doubtful.note(), epoch="4.u", now=150, barrier=50, doubt=True)).doubt


def test_what_is_closed_stays_closed_until_a_person_opens_it() -> None:
    closed = after(model.close(OPEN.note(), identity="new", known=3, token="x", now=300))
    assert closed.openness is Openness.CLOSED
    assert after(begin(closed.note())).openness is Openness.CLOSED
    assert after(begin(closed.note(), identity="newer")).identity == "newer"
    forgotten = after(begin(closed.note(), known=9))
    assert (forgotten.openness, forgotten.count) == (Openness.CLOSED, 10), "that it had been opened is lost"
    restoring = after(model.begin_restoring(closed.note(), identity="new", token="r", now=400))
    reopened = after(model.reopen(restoring.note(), identity="new", restoring="r", token="y", now=400))
    assert (reopened.openness, reopened.count, reopened.restoring) == (Openness.OPEN, closed.count + 1, "")


def test_a_person_opens_only_what_bears_the_token_of_the_closing() -> None:
    """A store that went back meanwhile bears none, or that of an earlier write."""
    restoring = partial(model.begin_restoring, identity="new", now=400)
    first = after(restoring(OPEN.note(), token="r"))
    assert (first.openness, first.count) == (Openness.CLOSED, OPEN.count + 1)
    second = after(restoring(first.note(), token="s", after="r"))
    assert second.gate == first.gate, "to the nodes nothing has changed"
    assert after(restoring(second.note(), token="s", after="r")) == second, "the reply was lost"
    assert restoring(OPEN.note(), token="s", after="r") is None
    assert restoring(after(restoring(first.note(), token="another")).note(), token="s", after="r") is None
    opens = partial(model.reopen, identity="new", restoring="s", token="o", now=500)
    assert opens(OPEN.note()) is None
    assert opens(first.note()) is None
    opened = after(opens(second.note()))
    assert after(opens(opened.note())) == opened, "the reply was lost"
    closed_again = after(model.close(second.note(), identity="newer", known=9, token="x", now=450))
    assert opens(closed_again.note()) is None, "a node has noticed that the store went back"


def test_what_others_keep_in_the_document_is_kept() -> None:
    note = OPEN.note()
    kept = SmallDocument(kind=note.kind, name=note.name, body={**note.body, "more": {"x": 1}})
    changes: tuple[Change | None, ...] = (
        begin(kept),
        model.close(kept, identity="new", known=3, token="x", now=1),
        model.begin_restoring(kept, identity="new", token="x", now=1),
    )
    for change in changes:
        assert change is not None
        assert isinstance(change.doc, SmallDocument)
        assert change.doc.body["more"] == {"x": 1}
