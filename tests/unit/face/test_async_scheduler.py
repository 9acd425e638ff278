"""`scheduler.aio` is a class of its own with the methods of `Scheduler`: same names, parameters, results and docs."""

from __future__ import annotations

import inspect
from typing import Any, get_overloads, get_type_hints

import pytest

from solocron import AsyncScheduler, Scheduler

DECLARING = {
    "discover",
    "cron",
    "every",
    "at",
    "register",
    "around",
    "on",
    "alarms",
    "metrics",
    "otel",
    "sentry",
    "logs",
    "health",
    "carrier",
    "lifespan",
    "setup",
    "forward",
    "asgi",
    "wsgi",
}
"""They open nothing and wait for nothing."""
OWN_COLOURS = {"lock", "leader", "once"}
"""What they return can be awaited itself: `async with`."""
BLOCKING = {"run_forever", "open"}
"""They own the process, or return an object that blocks."""


def public(cls: type) -> dict[str, Any]:
    members = {name: value for part in reversed(cls.__mro__) for name, value in vars(part).items()}
    return {name: value for name, value in members.items() if not name.startswith("_") and inspect.isfunction(value)}


def test_every_method_that_waits_for_the_store_or_for_jobs_can_be_awaited() -> None:
    assert public(AsyncScheduler).keys() == public(Scheduler).keys() - DECLARING - OWN_COLOURS - BLOCKING


@pytest.mark.parametrize("name", sorted(public(AsyncScheduler)))
def test_an_awaited_method_has_the_signature_and_the_docs_of_the_other(name: str) -> None:
    awaited, plain = public(AsyncScheduler)[name], public(Scheduler)[name]
    assert inspect.iscoroutinefunction(awaited)
    assert inspect.signature(awaited) == inspect.signature(plain)
    assert get_type_hints(awaited) == get_type_hints(plain)
    assert inspect.getdoc(awaited) == inspect.getdoc(plain)
    both = zip(get_overloads(awaited), get_overloads(plain), strict=True)
    assert all(inspect.signature(one) == inspect.signature(other) for one, other in both)


def test_no_attribute_of_a_scheduler_opens_its_store(tmp_path: Any) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path / 'jobs.db'}")
    for name in dir(scheduler):
        getattr(scheduler, name)
    assert list(tmp_path.iterdir()) == []
    scheduler.open().store.close()
    assert (tmp_path / "jobs.db").exists()
