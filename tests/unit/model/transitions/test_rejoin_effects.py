"""Locks, keys and steps after the store went back: the further of what is stored and what is remembered."""

from __future__ import annotations

from functools import partial

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import key, lock, steps
from solocron.model.documents.key import Stand, stand_of
from solocron.model.transitions.rejoin_effects import rejoin_effect

rejoin = partial(rejoin_effect, session="mine", now=100)


def note(change: Change | None) -> SmallDocument:
    assert change is not None
    assert isinstance(change.doc, SmallDocument)
    return change.doc


def opened(token: str, *, since: int, session: str = "mine") -> SmallDocument:
    by = key.Opening(token=token, session=session, owner="n")
    return note(key.open_key(Absent(Kind.KEY, "k"), by, now=since))


def test_a_key_that_is_lost_is_put_back_and_done_is_further_than_begun() -> None:
    begun = opened("a", since=10)
    done = note(key.close(begun, token="a", now=20))
    assert note(rejoin(Absent(Kind.KEY, "k"), begun)) == begun
    assert note(rejoin(begun, done)) == done
    assert rejoin(done, begun) is None
    assert rejoin(done, done) is None


def test_of_two_beginnings_of_a_key_the_later_one_stands() -> None:
    early, late = opened("a", since=10), opened("b", since=11)
    assert note(rejoin(early, late)) == late
    assert rejoin(late, early) is None


def test_a_key_of_a_session_that_this_process_has_lost_is_uncertain() -> None:
    found = note(rejoin(Absent(Kind.KEY, "k"), opened("a", since=10, session="former")))
    assert stand_of(found) is Stand.UNCERTAIN
    assert found.session is None


def granted(doc: SmallDocument | Absent, token: str, *, session: str = "mine", now: int = 10) -> SmallDocument:
    ask = lock.Ask(token=token, owner="n", at_most=50, session=session)
    return note(lock.acquire(doc, ask, now=now))


def test_a_lock_is_put_back_where_its_grant_is_the_later_one() -> None:
    nowhere = Absent(Kind.LOCK, "door")
    mine = granted(nowhere, "a")
    free = note(lock.release(mine, token="a", now=11))
    others = granted(free, "b", session="other", now=12)
    assert note(rejoin(nowhere, mine)) == mine
    assert note(rejoin(mine, free)) == free, "its release was lost"
    assert rejoin(free, mine) is None
    assert rejoin(others, mine) is None, "another process has taken it since"


def test_a_lock_of_a_session_that_this_process_has_lost_is_free_and_its_fence_stays() -> None:
    former = granted(Absent(Kind.LOCK, "door"), "a", session="former")
    found = lock.state_of(note(rejoin(Absent(Kind.LOCK, "door"), former)))
    assert found.token is None
    assert found.fence >= lock.state_of(former).fence


def test_steps_are_joined_and_the_first_result_of_a_step_stands() -> None:
    nowhere = Absent(Kind.STEP, "r")
    entered = note(steps.enter(nowhere, fence=5, now=1))
    ours = note(steps.save(entered, step="charge", value=1, fence=5, now=2))
    theirs = note(steps.save(note(steps.enter(nowhere, fence=6, now=3)), step="mail", value=2, fence=6, now=4))
    assert note(rejoin(nowhere, ours)) == ours
    joined = note(rejoin(theirs, ours))
    assert {name: one.value for name, one in steps.finished(joined).items()} == {"mail": 2, "charge": 1}
    assert joined.body["fence"] == 6
    assert rejoin(joined, ours) is None
