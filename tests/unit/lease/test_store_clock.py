"""What a node knows of the store's clock: an estimate from below, and whether it has leapt."""

from __future__ import annotations

import pytest

from solocron.lease.store_clock import StoreClock

SECOND = 1_000_000


def read(clock: StoreClock, boot: float, ahead: float, *, trip: float = 0.01) -> int:
    """One reading of a store that is `ahead` seconds ahead, taken in the middle of a round trip."""
    now = round((boot + ahead) * SECOND)
    clock.read(now, asked=boot - trip / 2, replied=boot + trip / 2)
    return now


def test_nothing_is_known_before_the_first_reading() -> None:
    clock = StoreClock()
    assert clock.boot_of(SECOND) is None
    assert clock.time_of(1.0) is None
    assert not clock.ran_evenly_since(10**18)


def test_the_estimate_is_from_below_and_no_further_off_than_a_round_trip() -> None:
    clock = StoreClock()
    for boot in range(0, 100, 5):
        read(clock, boot, 1_000.0, trip=0.2)
        at = clock.boot_of(1_200 * SECOND)
        assert at is not None
        assert 200.0 <= at <= 200.2


def test_what_was_written_before_the_first_reading_cannot_be_compared() -> None:
    clock = StoreClock()
    now = read(clock, 50.0, 1_000.0)
    assert not clock.ran_evenly_since(now - 1)
    assert clock.ran_evenly_since(now)


def test_an_even_clock_with_a_rate_of_its_own_and_slow_answers_never_seems_to_leap() -> None:
    clock = StoreClock()
    first = read(clock, 0.0, 1_000.0)
    for beat in range(1, 500):
        read(clock, beat * 5.0, 1_000.0 + beat * 5.0 * 0.02, trip=4.0 if beat % 7 == 0 else 0.01)
    assert clock.ran_evenly_since(first)


def test_a_leap_forward_is_noticed_and_one_back_spoils_nothing() -> None:
    clock = StoreClock()
    first = read(clock, 0.0, 1_000.0)
    read(clock, 5.0, 1_000.0)
    read(clock, 10.0, 970.0)
    assert clock.ran_evenly_since(first)
    after = read(clock, 15.0, 1_000.0)
    assert not clock.ran_evenly_since(after - 1)
    assert clock.ran_evenly_since(after)


def test_a_call_in_which_the_store_told_no_time_changes_nothing() -> None:
    clock = StoreClock()
    clock.read(0, asked=1.0, replied=1.1)
    assert clock.time_of(1.0) is None
    first = read(clock, 2.0, 1_000.0)
    clock.read(0, asked=3.0, replied=3.1)
    read(clock, 3.2, 1_000.0)
    assert clock.ran_evenly_since(first)
    assert clock.time_of(4.0) == pytest.approx(1_004 * SECOND, abs=10_000)


def test_answers_that_arrive_in_another_order_are_no_leap() -> None:
    clock = StoreClock()
    first = read(clock, 0.0, 1_000.0)
    read(clock, 20.0, 1_000.0)
    read(clock, 10.0, 1_000.0)
    assert clock.ran_evenly_since(first)
