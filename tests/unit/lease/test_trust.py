"""Trust counts from before a renewal was sent, ends before the store's expiry, and never comes back."""

from __future__ import annotations

import pytest

from solocron.lease.terms import LeaseTerms
from solocron.lease.trust import Standing, Trust

TERMS = LeaseTerms(node="n", host="h", pid=1, lease=15.0, beat=5.0)


@pytest.fixture
def trust() -> Trust:
    made = Trust(TERMS)
    made.begin("s", 100.0)
    return made


def test_without_a_session_there_is_nothing_to_trust() -> None:
    trust = Trust(TERMS)
    assert trust.standing(0.0) is Standing.NONE
    assert trust.until is None
    assert not trust.renew("s", 0.0, 0.0)


def test_a_session_is_trusted_for_a_lease_less_the_margin(trust: Trust) -> None:
    assert trust.until == 113.5
    assert trust.holds("s", 113.4)
    assert not trust.holds("s", 113.5)
    assert trust.standing(113.5) is Standing.NONE


def test_a_renewal_counts_from_before_it_was_sent(trust: Trust) -> None:
    assert trust.renew("s", 105.0, 112.0)
    assert trust.until == 118.5


def test_lost_is_final_although_the_store_renews(trust: Trust) -> None:
    assert not trust.renew("s", 113.0, 113.5)
    assert trust.standing(113.5) is Standing.NONE


def test_two_beats_without_a_renewal_are_jeopardy(trust: Trust) -> None:
    assert trust.standing(110.0) is Standing.HELD
    assert trust.standing(110.1) is Standing.JEOPARDY
    assert trust.renew("s", 110.2, 110.3)
    assert trust.standing(110.3) is Standing.HELD


def test_a_renewal_that_failed_is_jeopardy_at_once(trust: Trust) -> None:
    trust.trouble()
    assert trust.standing(100.1) is Standing.JEOPARDY
    assert trust.renew("s", 101.0, 101.1)
    assert trust.standing(101.1) is Standing.HELD


def test_a_reply_about_another_session_changes_nothing(trust: Trust) -> None:
    trust.acknowledge("other", 7)
    assert not trust.renew("other", 105.0, 105.0)
    assert (trust.beats, trust.until) == (0, 113.5)


def test_renewals_are_numbered_whatever_became_of_them(trust: Trust) -> None:
    assert [trust.next_number() for _ in range(3)] == [1, 2, 3]
    trust.acknowledge("s", 3)
    trust.acknowledge("s", 2)
    assert trust.beats == 3
    trust.begin("t", 200.0)
    assert (trust.beats, trust.next_number()) == (0, 1)


def test_a_session_is_lost_once(trust: Trust) -> None:
    assert trust.lose() == "s"
    assert trust.lose() is None
    assert trust.standing(100.0) is Standing.NONE
