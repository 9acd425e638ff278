"""For the tests of a Django project: run a job here and now, and see what was triggered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from solocron.django.project import releasing
from solocron.django.triggering import Triggered, recorded

__all__ = ["Triggered", "run_now", "triggered"]


def run_now(job: str | Callable[..., Any], **payload: Any) -> Any:
    """Run a job on this thread, inside the test's transaction, and return what it returned; raise what it raised.

    The keyword arguments are its payload; without any it has the payload that it was declared with.
    """
    with releasing() as scheduler:
        return scheduler.run_now(job, payload or None)


@contextmanager
def triggered() -> Iterator[list[Triggered]]:
    """Collect what `solocron.django.trigger` is asked for, also before a commit. Nothing reaches a store."""
    found: list[Triggered] = []
    recorded.append(found)
    try:
        yield found
    finally:
        recorded.pop()
