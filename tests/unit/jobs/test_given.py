"""`given(factory)`: parameters that are made for each attempt, and closed after it, whatever the body does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import Depends, Request

from solocron import AsyncRun, InvalidError, Message, Run, Scheduler, given

said: list[str] = []


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    yield
    said.clear()


def get_db() -> Iterator[str]:
    said.append("open db")
    yield "db"
    said.append("close db")


def get_user(run: Run) -> str:
    return f"user of {run.job}"


def get_cache() -> Iterator[str]:
    said.append("open cache")
    try:
        yield "cache"
    finally:
        said.append("close cache")


async def get_http(run: AsyncRun) -> AsyncIterator[str]:
    said.append("open http")
    yield f"http for {run.attempt}"
    said.append("close http")


async def get_token() -> str:
    return "token"


def scheduler() -> Scheduler:
    return Scheduler("memory://", enabled=True)


def test_factories_get_the_run_and_generators_are_closed_the_last_one_first() -> None:
    made = scheduler()

    @made.every("1d")
    def job(
        run: Run, *, db: str = given(get_db), cache: str = given(get_cache), who: str = given(get_user)
    ) -> list[str]:
        said.append("body")
        return [run.job, db, cache, who]

    assert made.run_now("job") == ["job", "db", "cache", "user of job"]
    assert said == ["open db", "open cache", "body", "close cache", "close db"]


def test_a_function_without_the_run_is_given_its_values_too() -> None:
    made = scheduler()
    made.every("1d", name="job")(_takes_db)
    assert made.run_now("job") == "db"
    assert _takes_db(db="of a test") == "of a test", "it stays a function that a test can call"


def _takes_db(*, db: str = given(get_db)) -> str:
    return db


def test_coroutine_factories_are_awaited_on_the_loop() -> None:
    made = scheduler()

    @made.every("1d")
    async def job(*, http: str = given(get_http), token: str = given(get_token), db: str = given(get_db)) -> list[str]:
        return [http, token, db]

    assert made.run_now("job") == ["http for 1", "token", "db"]
    assert said == ["open http", "open db", "close db", "close http"]


def test_a_plain_function_on_the_loop_is_given_its_values() -> None:
    made = scheduler()

    @made.every("1d", run_in="loop")
    def job(*, db: str = given(get_db)) -> str:
        return db

    assert made.run_now("job") == "db"


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_factory_that_swallows_an_error_does_not_make_the_run_succeed(kind: str) -> None:
    """Code that rolls back often catches everything; a failed charge would be on record as done."""
    made = scheduler()

    def rolls_back() -> Iterator[str]:
        try:
            yield "db"
        except ValueError:
            said.append("rolled back")

    def plain(*, db: str = given(rolls_back)) -> None:
        raise ValueError(db)

    async def coroutine(*, db: str = given(rolls_back)) -> None:
        raise ValueError(db)

    made.every("1d", name="job")(plain if kind == "plain" else coroutine)
    with pytest.raises(ValueError, match="db"):
        made.run_now("job")
    assert said == ["rolled back"]


def test_what_a_wrapper_opens_is_open_when_factories_are_called() -> None:
    made = scheduler()

    @made.around
    def outside(run: Run) -> Iterator[None]:
        said.append("outside")
        yield
        said.append("outside again")

    made.every("1d", name="job")(_takes_db)
    made.run_now("job")
    assert said == ["outside", "open db", "close db", "outside again"]


def test_fastapis_depends_is_taken_for_what_it_says() -> None:
    made = scheduler()

    @made.every("1d")
    def job(run: Run, db: str = Depends(get_db)) -> str:
        return db

    assert made.run_now("job") == "db"
    assert said == ["open db", "close db"]


def needs_request(request: Request) -> str: ...  # type: ignore[empty-body]


def needs_both(run: Run, request: Request) -> str: ...  # type: ignore[empty-body]


def needs_another(db: str = Depends(get_db)) -> str:
    return db


@pytest.mark.parametrize(
    ("default", "said_of_it"),
    [
        (
            Depends(needs_request),
            "is given it by needs_request, which wants request: a factory takes the run or nothing",
        ),
        (given(needs_both), "is given it by needs_both, which wants request: a factory takes the run or nothing"),
        (Depends(needs_another), "is given it by needs_another, which wants db: a factory takes the run or nothing"),
        (given(get_token), "is given it by get_token, which is a coroutine, and is a plain function itself"),
        (given(partial(get_http)), "which is a coroutine, and is a plain function itself"),
    ],
)
def test_a_factory_that_cannot_be_called_for_a_run_is_refused(default: Any, said_of_it: str) -> None:
    made = scheduler()

    def job(*, it: str = default) -> None: ...

    with pytest.raises(InvalidError) as refused:
        made.every("1d")(job)
    assert said_of_it in str(refused.value)
    assert "It was not registered" in str(refused.value)
    assert made.registry.jobs == {}


def test_given_takes_a_function() -> None:
    with pytest.raises(InvalidError, match="pass the function itself"):
        given("get_db")  # type: ignore[arg-type]


def test_a_worker_of_a_queue_makes_and_closes_them_too(tmp_path: Path) -> None:
    queue = list[dict[str, Any]]()

    class Queue:
        follows = True

        def publish(self, message: Message) -> None:
            queue.append(message.to_json())

    def job(run: Run, *, db: str = given(get_db), who: str = given(get_user)) -> None:
        said.append(f"{db} for {who}")

    node, worker = (Scheduler(f"sqlite:///{tmp_path}/jobs.db", enabled=True, lease="3s") for _ in range(2))
    for one in (node, worker):
        one.carrier("queue", Queue())
        one.every("365d", name="job", run_in="queue")(job)
    node.tick()
    run = node.trigger("job")
    node.tick()
    assert said == []
    worker.carry_out(queue[0])
    assert said == ["open db", "db for user of job", "close db"]
    assert node.get_run(run).status == "succeeded"
    for one in (node, worker):
        one.stop("1s")
