"""`if run.once(key):` protects nothing, so it must not be true: blocks without `with` refuse to be asked."""

from __future__ import annotations

import inspect
import pkgutil
import sqlite3
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import solocron.effects
import solocron.effects.locks
from solocron import AsyncRun, InvalidError, Lock, NotEntered, Run, Scheduler, SolocronError


def made(folder: Path) -> Scheduler:
    return Scheduler(f"sqlite:///{folder}/solocron.db", enabled=True, lease="3s")


@pytest.mark.parametrize(
    ("make", "how"),
    [
        (lambda scheduler, connection: scheduler.once("mail"), "with ... as claim"),
        (lambda scheduler, connection: scheduler.once("mail", connection=connection), "with ... as claim"),
        (lambda scheduler, connection: scheduler.lock("mail"), "with lock"),
        (lambda scheduler, connection: Lock("memory://", "mail"), "with lock"),
        (lambda scheduler, connection: scheduler.leader("mail"), "is_leader"),
    ],
    ids=["once", "once in a transaction", "scheduler.lock", "Lock", "leader"],
)
def test_a_block_has_no_truth_value_and_says_how_to_write_it(
    make: Callable[[Scheduler, Any], Any], how: str, tmp_path: Path
) -> None:
    scheduler, connection = made(tmp_path), sqlite3.connect(tmp_path / "own.db")
    block = make(scheduler, connection)
    for ask in (bool, lambda block: not block, lambda block: block or None):
        with pytest.raises(NotEntered, match="Nothing was") as refused:
            ask(block)
        assert how in str(refused.value)
    scheduler.stop()
    connection.close()


def test_the_error_is_known_under_every_name_that_people_catch() -> None:
    assert issubclass(NotEntered, SolocronError)
    assert issubclass(NotEntered, InvalidError)
    assert issubclass(NotEntered, TypeError)


def test_a_job_that_forgets_the_with_fails_instead_of_paying_twice(tmp_path: Path) -> None:
    scheduler, paid = made(tmp_path), list[str]()

    @scheduler.every("1h", name="plain")
    def plain(run: Run) -> None:
        if run.once("invoice-7"):  # type: ignore[truthy-bool, unused-ignore]
            paid.append("plain")

    @scheduler.every("1h", name="coroutine")
    async def coroutine(run: AsyncRun) -> None:
        if run.once("invoice-7"):  # type: ignore[truthy-bool, unused-ignore]
            paid.append("coroutine")

    with scheduler:
        for job in ("plain", "coroutine"):
            view = scheduler.wait(scheduler.trigger(job), "10s")
            assert view.status == "failed"
            assert "NotEntered: key 'invoice-7' was used as a truth value" in (view.error or "")
    assert paid == []


def test_a_run_whose_step_was_made_and_never_called_has_failed(tmp_path: Path) -> None:
    """`run.step("charge")` alone charges nothing, and the run must not say that it succeeded."""
    scheduler = made(tmp_path)

    @scheduler.every("1h", name="forgotten")
    def forgotten(run: Run) -> str:
        run.step("charge")
        return "charged"

    @scheduler.every("1h", name="asked")
    def asked(run: Run) -> None:
        if run.step("charge"):  # type: ignore[truthy-bool, unused-ignore]
            raise AssertionError("it is not true")

    @scheduler.every("1h", name="awaited-nothing")
    async def not_awaited(run: AsyncRun) -> None:
        run.step("charge")

    @scheduler.every("1h", name="called")
    def called(run: Run) -> str:
        step = run.step("charge")
        return step.call(lambda: "charged")

    with scheduler:
        for job in ("forgotten", "awaited-nothing"):
            view = scheduler.wait(scheduler.trigger(job), "10s")
            assert (view.status, view.result) == ("failed", None)
            assert (view.error or "").startswith(
                "step 'charge' was made and never called, so its function was not run."
            )
        view = scheduler.wait(scheduler.trigger("asked"), "10s")
        assert "NotEntered: step 'charge' was used as a truth value" in (view.error or "")
        assert scheduler.wait(scheduler.trigger("called"), "10s").result == "charged"


def test_what_was_entered_or_acquired_still_has_one(tmp_path: Path) -> None:
    scheduler = made(tmp_path)
    with scheduler.once("mail") as claim:
        assert claim
    held = scheduler.lock("mail").acquire()
    assert held
    held.release()
    scheduler.stop()


def test_no_block_of_these_packages_was_forgotten() -> None:
    blocks = {
        found
        for package in (solocron.effects.locks, solocron.effects)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass)
        if hasattr(found, "__enter__") and found.__module__ == module.name
    }
    assert {block.__name__ for block in blocks} == {"Once", "OnceBlock", "OnceInTransaction", "Lock", "Leader"}
    for block in blocks:
        empty = block.__new__(block)
        empty.name = empty.key = "of nobody"
        with pytest.raises(NotEntered):
            bool(empty)
