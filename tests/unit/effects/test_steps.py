"""Durable steps: finished ones survive failures, crashes and freezes; a predecessor that wakes up saves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from solocron import AsyncRun, Backoff, Run, Scheduler, every
from solocron.effects.steps import steps_of
from solocron.errors import InvalidError, LeaseLost, StaleFence, WaitTimeout
from solocron.model.change import Kind, SmallDocument
from solocron.testing.cluster import Cluster
from tests.unit.effects.locks.conftest import Crowd

AT_ONCE = Backoff(first=0, cap=0)


def all_runs(member: Scheduler, job: str) -> str:
    """Trigger a job and tick until nothing is due; return the run's id."""
    member.tick()
    run = member.trigger(job)
    while member.tick():
        pass
    return run


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_a_retry_replays_what_is_finished_and_does_the_rest(crowd: Crowd) -> None:
    a = crowd.join("a")
    calls: list[str] = []

    def charge(customer: str, *, amount: int) -> dict[str, Any]:
        calls.append(f"charge {customer} {amount}")
        return {"receipt": 1}

    def mail(receipt: int) -> None:
        calls.append(f"mail {receipt}")
        if calls.count("mail 1") == 1:
            raise ValueError("no paper")

    @a.every("1h", name="bill", retries=2, backoff=AT_ONCE)
    def bill(run: Run) -> object:
        receipt = run.step("charge").call(charge, "ada", amount=5)["receipt"]
        run.step("mail").call(mail, receipt)
        run.sleep(0)
        return receipt

    run = all_runs(a, "bill")
    view = a.get_run(run)
    assert (view.status, view.attempt, view.result) == ("succeeded", 2, 1)
    assert calls == ["charge ada 5", "mail 1", "mail 1"]
    found = steps_of(a.open().store, run)
    assert [(step.name, step.value) for step in found][:2] == [("charge", {"receipt": 1}), ("mail", None)]
    assert found[2].name == "sleep:1"
    assert [attempt.attempt for attempt in a.open().attempts(run)] == [1, 2]


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_in_coroutines_too(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    calls: list[str] = []

    async def charge() -> int:
        calls.append("charge")
        return 7

    async def slow() -> None:
        calls.append("slow")
        if calls.count("slow") == 1:
            await asyncio.sleep(60)

    @a.every("1h", name="bill", retries=1, backoff=AT_ONCE)
    async def bill(run: AsyncRun) -> int:
        number: int = await run.step("charge").call(charge)
        assert await run.step("plain").call(len, "abc") == 3
        await run.step("slow", timeout="10ms", retries=1, backoff=AT_ONCE).call(slow)
        await run.sleep("1ms")
        if run.attempt == 1:
            raise ValueError("once more")
        return number

    run = all_runs(a, "bill")
    assert a.get_run(run).result == 7
    assert calls == ["charge", "slow", "slow"]


def test_a_step_has_retries_and_a_backoff_of_its_own(room: Callable[[], Crowd]) -> None:
    a = room().join("a")
    tries: list[int] = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("away")
        return "there"

    @a.every("1h", name="job")
    def job(run: Run) -> str:
        value: str = run.step("flaky", retries=2, backoff=Backoff(first="1ms", cap="1ms")).call(flaky)
        return value

    assert a.get_run(all_runs(a, "job")).result == "there"
    assert len(tries) == 3


def test_the_functions_own_keywords_reach_it_whatever_they_are_called(room: Callable[[], Crowd]) -> None:
    """`timeout=` and `retries=` used to be taken from it."""
    a = room().join("a")

    def fetch(url: str, *, timeout: int, retries: int, name: str) -> list[Any]:
        return [url, timeout, retries, name]

    async def fetch_async(url: str, *, timeout: int, retries: int, name: str) -> list[Any]:
        return [url, timeout, retries, name]

    @a.every("1h", name="plain")
    def plain(run: Run) -> list[Any]:
        return run.step("fetch", retries=1, timeout="1m").call(fetch, "here", timeout=5, retries=7, name="n")

    @a.every("1h", name="coroutine")
    async def coroutine(run: AsyncRun) -> list[Any]:
        step = run.step("fetch", retries=1, timeout="1m")
        return await step.call(fetch_async, "here", timeout=5, retries=7, name="n")

    for job in ("plain", "coroutine"):
        assert a.get_run(all_runs(a, job)).result == ["here", 5, 7, "n"]


def test_a_plain_function_past_its_time_is_given_up_and_its_result_not_saved() -> None:
    def slow() -> str:
        cluster.sleep("30s")
        return "too late"

    told: list[BaseException] = []

    @every("1m", name="job")
    def job(run: Run) -> None:
        try:
            run.step("slow", timeout="5s", retries=3).call(slow)
        except WaitTimeout as error:
            told.append(error)
            raise

    cluster = Cluster(job, nodes=1)
    cluster.run("110s")
    assert "still runs after 5 s" in str(told[0])
    assert len(told) == 1
    assert steps(cluster) == {}
    assert cluster.runs("job")[0].status == "failed"


def steps(cluster: Cluster) -> dict[str, Any]:
    """The saved steps of every run."""
    notes = [doc for (kind, _), (doc, _) in cluster.fleet.database.docs.items() if kind is Kind.STEP]
    return {name: value for note in notes if isinstance(note, SmallDocument) for name, value, _ in note.body["steps"]}


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_after_a_crash_another_node_goes_on_where_the_first_one_was() -> None:
    done: list[tuple[str, str]] = []

    @every("1h", name="job", retries=3)
    def job(run: Run) -> None:
        for name in ("one", "two", "three"):
            run.step(name).call(lambda name=name: done.append((name, run.node)))
            cluster.sleep("10s")

    cluster = Cluster(job, nodes=3)
    cluster.run("3615s")
    first = cluster.starts[0].node
    cluster.kill(next(n for n in range(3) if cluster.process(n).name == first))
    cluster.run("2m")
    assert [name for name, _ in done] == ["one", "two", "three"]
    assert {node for _, node in done} > {first}
    assert [run.status for run in cluster.runs("job")] == ["lost", "succeeded"]


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_a_frozen_predecessor_can_neither_save_nor_begin_a_step() -> None:
    told: list[BaseException] = []
    done: list[str] = []

    @every("1h", name="job", retries=3, on_lost="finish")
    def job(run: Run) -> None:
        def work() -> str:
            cluster.sleep("5s")
            done.append(f"{run.attempt}")
            return f"attempt {run.attempt}"

        try:
            run.step("work").call(work)
        except (LeaseLost, StaleFence) as error:
            told.append(error)
            raise

    cluster = Cluster(job, nodes=2)
    cluster.run("3602s")
    victim = next(n for n in range(2) if cluster.process(n).name == cluster.starts[0].node)
    cluster.freeze(victim)
    cluster.run("1m")
    assert steps(cluster) == {"work": "attempt 2"}
    cluster.thaw(victim)
    cluster.run("1m")
    assert done == ["2", "1"], "the frozen one has done its work a second time, which no store can prevent"
    assert len(told) == 1
    assert steps(cluster) == {"work": "attempt 2"}, "but its result was refused"


@pytest.mark.invariant("I17: a step that was saved is never carried out again")
def test_a_save_that_arrives_after_the_successor_has_entered_is_refused() -> None:
    """Sent before the freeze, applied after the takeover: only the steps' own fence can refuse it."""
    saved: list[Any] = []

    @every("1h", name="job", retries=3)
    def job(run: Run) -> None:
        saved.append((run.attempt, run.step("work").call(lambda: run.attempt)))
        cluster.sleep("40s")

    cluster = Cluster(job, nodes=2, locking=False)
    cluster.run("3599s")
    for number in range(2):
        name = cluster.process(number).name
        cluster.fleet.network.script(name, "commit step", after=0.01)
        cluster.fleet.network.script(name, "commit step", after=45.0)
    cluster.run("2s")
    victim = next(n for n in range(2) if cluster.process(n).name == cluster.starts[0].node)
    cluster.freeze(victim)
    other = cluster.process(1 - victim).name
    cluster.fleet.network._scripts.pop((other, "commit step"))
    cluster.run("3m")
    assert steps(cluster) == {"work": 2}
    assert saved == [(2, 2)]


def test_a_sleep_survives_a_crash_and_is_not_slept_again() -> None:
    woke: list[tuple[int, float]] = []

    @every("1h", name="job", retries=3)
    def job(run: Run) -> None:
        run.sleep("10m")
        woke.append((run.attempt, cluster.fleet.kernel.now))

    cluster = Cluster(job, nodes=2)
    cluster.run("3900s")
    cluster.kill(next(n for n in range(2) if cluster.process(n).name == cluster.starts[0].node))
    cluster.run("6m")
    assert [attempt for attempt, _ in woke] == [2]
    assert woke[0][1] == pytest.approx(3600 + 600, abs=2)


def test_a_lost_answer_costs_a_round_trip_and_no_second_result() -> None:
    calls: list[int] = []

    @every("1h", name="job", retries=1)
    def job(run: Run) -> object:
        return run.step("work").call(lambda: calls.append(1) or len(calls))

    cluster = Cluster(job, nodes=1)
    cluster.run("3599s")
    for _ in range(2):
        cluster.fleet.network.script(cluster.process(0).name, "commit step", after=0.01, answered=False)
    cluster.run("1m")
    assert calls == [1]
    assert [(run.status, run.result) for run in cluster.runs("job")] == [("succeeded", 1)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.step("").call(len, ""), "1 to 200 printable"),
        (lambda run: run.step("sleep:1").call(len, ""), "kept for sleeps"),
        (lambda run: run.step("x").call(3), "cannot be called"),
        (lambda run: run.step("x", retries=-1).call(len, ""), "whole number from 0 up"),
        (lambda run: run.step("x", timeout=-1).call(len, ""), "is negative"),
        (lambda run: run.step("x").call(set), "is not JSON"),
        (lambda run: run.step("x").call(lambda: "x" * 70_000), "more than 65536"),
        (lambda run: [run.step("x").call(len, ""), run.step("x").call(len, "")], "was used before in this attempt"),
        (lambda run: [run.step(f"x{n}").call(lambda: "y" * 60_000) for n in range(20)], "bytes together"),
        (lambda run: run.sleep(-1), "is negative"),
    ],
)
def test_bad_input_is_refused_with_one_clear_message(
    room: Callable[[], Crowd], call: Callable[[Run], object], message: str
) -> None:
    a = room().join("a")
    told: list[InvalidError] = []

    @a.every("1h", name="job")
    def job(run: Run) -> None:
        with pytest.raises(InvalidError, match=message) as caught:
            call(run)
        told.append(caught.value)

    assert a.get_run(all_runs(a, "job")).status == "succeeded"
    assert len(told) == 1


def test_a_coroutine_step_in_a_plain_job_is_refused(room: Callable[[], Crowd]) -> None:
    a = room().join("a")

    async def work() -> None: ...

    @a.every("1h", name="job")
    def job(run: Run) -> None:
        run.step("work").call(work)

    assert "await it in a coroutine job" in (a.get_run(all_runs(a, "job")).error or "")


def test_old_keys_and_steps_are_removed_but_not_those_of_a_run_that_may_come_back() -> None:
    @every("1h", name="job", retries=1, backoff=Backoff(first="1d", cap="1d"))
    def job(run: Run) -> None:
        with run.once(f"key:{run.slot:%H}", keep="1m"):
            pass
        run.step("work").call(len, "")
        if f"{run.slot:%H}" == "03" and run.attempt == 1:
            raise ValueError("later")

    cluster = Cluster(job, nodes=1, keep="2h", lease="5m")
    cluster.run("20h")
    docs = cluster.fleet.database.docs
    waiting = next(start.run for start in cluster.starts if start.slot.hour == 3)
    assert len({start.run for start in cluster.starts}) == 3
    assert [name for kind, name in docs if kind is Kind.KEY] == ["key:03"], "its run waits for its retry"
    assert [name for kind, name in docs if kind is Kind.STEP] == [waiting]
