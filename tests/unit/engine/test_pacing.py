"""When the claimer looks next, from what one pass has seen."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.engine.pacing import LookPlan, next_look
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Job
from solocron.stores.contract import Applied, Result, Verdict

NOW = 1_000
"""Seconds on the boot clock at which the reply came; the store's clock reads the same."""
LATEST = NOW + 30.0


def seen(*results: Result, next_due: float | None = None) -> Applied:
    due = None if next_due is None else round(next_due * SECOND)
    return Applied(results=results, now=NOW * SECOND, next_due=due)


def result(verdict: Verdict = Verdict.APPLIED, due: float | None = None, name: str = "j") -> Result:
    definition = Definition(handler="h", schedule=None)
    due_at = None if due is None else round(due * SECOND)
    return Result(name, verdict, Job(name=name, incarnation=1, definition=definition, cursor=0, due_at=due_at))


def plan(applied: Applied, **more: Any) -> LookPlan:
    given: dict[str, Any] = {
        "replied": float(NOW), "latest": LATEST, "left_alone": (), "boot_of": lambda instant: instant / SECOND,
        "backlog": False, "in_vain": 0, "jitter": 1.0,
    }  # fmt: skip
    return next_look(applied, **(given | more))


def test_with_nothing_due_ever_it_looks_at_the_latest() -> None:
    assert plan(seen()) == LookPlan(at=LATEST)
    assert plan(seen(result())) == LookPlan(at=LATEST)


def test_it_sleeps_to_the_next_due_instant() -> None:
    assert plan(seen(next_due=NOW + 7)) == LookPlan(at=NOW + 7, expected=NOW + 7)
    assert plan(seen(result(due=NOW + 5), next_due=NOW + 7)) == LookPlan(at=NOW + 5, expected=NOW + 5)


def test_it_never_sleeps_longer_than_the_latest() -> None:
    assert plan(seen(next_due=NOW + 700)) == LookPlan(at=LATEST, expected=NOW + 700)
    assert plan(seen(next_due=NOW + 7), boot_of=lambda instant: None) == LookPlan(at=LATEST)


def test_a_job_that_was_claimed_and_has_more_to_run_is_looked_at_at_once() -> None:
    assert plan(seen(result(due=NOW - 1), next_due=NOW + 60)) == LookPlan(at=NOW)


def test_a_job_that_is_left_to_others_makes_it_look_no_sooner() -> None:
    declined = result(Verdict.DECLINED, due=NOW - 1)
    assert plan(seen(declined), left_alone={"j"}) == LookPlan(at=LATEST)


def test_under_backlog_it_goes_on_at_once_and_wants_every_free_place() -> None:
    assert plan(seen(next_due=NOW - 1), backlog=True) == LookPlan(at=NOW, starved=True)


@pytest.mark.parametrize("verdict", [Verdict.CONTENDED, Verdict.UNKNOWN])
def test_after_an_open_outcome_it_looks_again_soon(verdict: Verdict) -> None:
    assert plan(seen(Result("j", verdict), next_due=NOW + 60)) == LookPlan(at=NOW + 0.005, in_vain=1)


def test_looks_in_vain_come_less_and_less_often_and_jittered() -> None:
    in_vain, pauses = 0, []
    for _ in range(8):
        found = plan(seen(next_due=NOW - 1), in_vain=in_vain)
        in_vain = found.in_vain
        pauses.append(found.at - NOW)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(0.2)
    jittered = plan(seen(next_due=NOW - 1), jitter=1.5)
    assert jittered.at == pytest.approx(NOW + 0.0075)


def test_a_look_that_found_its_way_resets_the_pauses() -> None:
    assert plan(seen(next_due=NOW + 1), in_vain=7).in_vain == 0
