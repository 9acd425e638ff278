"""The declared choices: what is accepted, what is refused with which words, and how long a backoff waits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.errors import InvalidError
from solocron.model.policy import Backoff, CatchUp, Overlap, allow, catch_up_all
from tests.unit.model.samples import backoffs


@pytest.mark.parametrize("kind", ["skip", "queue", "queue-all", "replace"])
def test_overlap_takes_its_words(kind: str) -> None:
    assert Overlap.parse(kind) == Overlap(kind, 1)
    assert Overlap.parse(allow(3)) == Overlap("allow", 3)


@pytest.mark.parametrize("value", ["allow", "SKIP", "", None, 3])
def test_overlap_refuses_others_and_names_the_choices(value: Any) -> None:
    with pytest.raises(InvalidError, match=r'choose "skip", "queue", "queue-all", "replace" or allow\(n\)'):
        Overlap.parse(value)


@pytest.mark.parametrize("n", [0, -1, 1001, 1.5, True, "2", None])
def test_allow_takes_a_whole_number_in_bounds(n: Any) -> None:
    with pytest.raises(InvalidError, match="whole number from 1 to 1000"):
        allow(n)


@pytest.mark.parametrize("kind", ["skip", "latest", "all"])
def test_catch_up_takes_its_words(kind: str) -> None:
    assert CatchUp.parse(kind) == CatchUp(kind)


@pytest.mark.parametrize("value", ["none", "ALL", "", None, 3])
def test_catch_up_refuses_others_and_names_the_choices(value: Any) -> None:
    with pytest.raises(InvalidError, match=r'choose "skip", "latest", "all" or catch_up_all'):
        CatchUp.parse(value)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_catch_up_all_takes_a_whole_limit(limit: Any) -> None:
    with pytest.raises(InvalidError, match="whole number from 1 up"):
        catch_up_all(limit=limit)


def test_catch_up_all_takes_an_age_as_a_duration() -> None:
    assert catch_up_all(within="1h30m") == CatchUp("all", None, 5_400_000_000)
    with pytest.raises(InvalidError, match="within"):
        catch_up_all(within="soon")


@pytest.mark.parametrize("options", [{"factor": 0.5}, {"factor": 101}, {"jitter": -0.1}, {"jitter": 1.1}])
def test_backoff_refuses_what_would_not_back_off(options: dict[str, float]) -> None:
    with pytest.raises(InvalidError, match=next(iter(options))):
        Backoff(**options)


def test_backoff_doubles_from_a_second_to_five_minutes_by_default() -> None:
    waits = [Backoff(jitter=0).delay(n, "x") / 1e6 for n in range(1, 12)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


@given(backoffs, st.integers(1, 10_000), st.text(max_size=20))
def test_backoff_is_never_above_its_cap_nor_below_nothing(backoff: Backoff, failures: int, seed: str) -> None:
    delay = backoff.delay(failures, seed)
    assert 0 <= delay <= backoff.cap
    assert delay == backoff.delay(failures, seed), "all nodes agree"


def test_jitter_spreads_runs_apart_and_stays_near_the_plain_wait() -> None:
    backoff = Backoff(first="100s", jitter=0.1)
    waits = {backoff.delay(1, f"run {n}") for n in range(50)}
    assert len(waits) > 40
    assert all(90_000_000 <= wait <= 110_000_000 for wait in waits)


@given(backoffs)
def test_a_backoff_comes_back_from_json_as_it_was(backoff: Backoff) -> None:
    assert Backoff.from_json(backoff.to_json()) == backoff
