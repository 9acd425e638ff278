"""`on_retry`: after a crash no node knows how far the work had come, so the job itself is asked before a repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solocron import InvalidError, RetryDecision, Run, Scheduler, every
from solocron.model.transitions.finishing import Outcome
from solocron.testing.cluster import Cluster
from tests.unit.model.one_job import OneJob


def crashed(on_retry: Callable[[Run], Any], *, for_s: int = 120, **options: Any) -> Cluster:
    """A run whose node dies in the middle, and the other node's answer to that."""

    @every("1h", name="payout", retries=3, on_retry=on_retry, **options)
    def payout(run: Run) -> None:
        if run.attempt == 1:
            cluster.sleep("30m")

    cluster = Cluster(payout, nodes=2)
    cluster.run("3601s")
    cluster.kill(0 if cluster.starts[0].node == cluster.process(0).name else 1)
    cluster.run(for_s)
    return cluster


def told(cluster: Cluster) -> list[tuple[int, str, str | None]]:
    return [(run.attempt, run.status, run.reason) for run in cluster.runs("payout")][1:]


def test_done_ends_the_run_well_without_starting_it() -> None:
    cluster = crashed(lambda run: RetryDecision.done("the bank has it"))
    assert told(cluster) == [(2, "succeeded", "on_retry: done: the bank has it")]
    assert [start.attempt for start in cluster.starts] == [1]


def test_give_up_ends_the_run_badly_and_for_good() -> None:
    cluster = crashed(lambda run: RetryDecision.give_up("half of it is paid"))
    assert told(cluster) == [(2, "failed", "on_retry: given up: half of it is paid")]
    assert [start.attempt for start in cluster.starts] == [1]
    assert cluster.job("payout").failures == 1


def test_repeat_starts_it_again() -> None:
    cluster = crashed(lambda run: "repeat")
    assert told(cluster) == [(2, "succeeded", None)]
    assert [start.attempt for start in cluster.starts] == [1, 2]
    assert cluster.events["retry asked"] == 1


def test_it_is_asked_with_the_run_that_would_be_repeated() -> None:
    seen: list[tuple[int, str]] = []

    def ask(run: Run) -> RetryDecision:
        seen.append((run.attempt, run.key))
        return RetryDecision.done()

    cluster = crashed(ask)
    assert seen == [(2, cluster.runs("payout")[0].key)]


def test_an_answer_that_cannot_even_be_shown_costs_the_attempt_and_not_the_node() -> None:
    class Moody:
        def __repr__(self) -> str:
            raise MemoryError

    answers = iter([Moody(), RetryDecision.done("found it")])
    cluster = crashed(lambda run: next(answers), for_s=600)
    assert [(attempt, status) for attempt, status, _ in told(cluster)] == [(2, "failed"), (3, "succeeded")]
    assert cluster.runs("payout")[1].error is not None


def test_without_an_answer_the_attempt_fails_and_the_next_one_asks_again() -> None:
    """Whatever it raises or returns: the doubt about the crash stays until it is answered."""
    answers = iter([ConnectionError("the bank is closed"), "perhaps", RetryDecision.done("found it")])

    def ask(run: Run) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    cluster = crashed(ask)
    _, *runs = cluster.runs("payout")
    assert [(run.attempt, run.status) for run in runs] == [(2, "failed"), (3, "failed"), (4, "succeeded")]
    assert (runs[0].error or "").startswith("on_retry returned no decision, so the run was not repeated:")
    assert "the bank is closed" in (runs[0].error or "")
    assert "on_retry returned 'perhaps'" in (runs[1].error or "")
    assert [start.attempt for start in cluster.starts] == [1]


def test_a_coroutine_may_answer_for_a_plain_function() -> None:
    async def ask(run: Run) -> RetryDecision:
        return RetryDecision.done("awaited")

    assert told(crashed(ask)) == [(2, "succeeded", "on_retry: done: awaited")]


def test_the_deadline_of_the_attempt_counts_while_it_is_asked() -> None:
    def ask(run: Run) -> RetryDecision:
        while not run.cancelled:
            cluster.append(1)
            waiting[0].sleep("1s")
        return RetryDecision.repeat()

    cluster: list[int] = []
    waiting: list[Cluster] = []

    @every("1h", name="payout", retries=1, timeout="40m", on_retry=ask)
    def payout(run: Run) -> None:
        waiting[0].sleep("30m")

    waiting.append(world := Cluster(payout, nodes=2))
    world.run("3601s")
    world.kill(0 if world.starts[0].node == world.process(0).name else 1)
    world.run("50m")
    assert [(run.attempt, run.status) for run in world.runs("payout")] == [(1, "lost"), (2, "timed_out")]
    assert [start.attempt for start in world.starts] == [1]


def test_a_failure_is_no_crash_and_is_simply_repeated() -> None:
    job = OneJob("1h", retries=2)
    job.at(3600).fail(job.claims("a"))
    assert not job.at(3605).claims("a").crashed


def test_a_hand_back_does_not_answer_the_question() -> None:
    job = OneJob("1h", retries=2)
    job.at(3600).claims("a")
    job.take_over("a")
    again = job.claims("b")
    assert again.crashed
    job.hand_back(again)
    third = job.claims("c")
    assert third.crashed
    job.finish(third, Outcome.failed("its own mistake"))
    assert not job.at(3610).claims("d").crashed


@pytest.mark.parametrize(("bad", "what"), [("ask", "on_retry='ask' is not a function"), (lambda a, b: 1, "wants a, b")])
def test_a_hook_that_cannot_be_asked_is_refused(bad: Any, what: str) -> None:
    scheduler = Scheduler("memory://")
    with pytest.raises(InvalidError, match=what):
        scheduler.every("1h", name="payout", on_retry=bad)(lambda: None)
    assert not scheduler.registry.jobs
