"""What wraps every run: a database session, a tenant, an error tracker. Outermost is what was added first.

A wrapper is a function of the run that yields once (a generator, or anything that returns a context manager), or a
function of the run and the call, which it carries out and whose value it returns. For coroutine jobs both may be
asynchronous.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from solocron.errors import Invalid
from solocron.jobs.unfinished import awaited

__all__ = ["Wrapper", "check_wrapper", "wrap"]

Wrapper = Callable[..., Any]


def check_wrapper(function: Wrapper) -> Wrapper:
    """Refuse what could not wrap a run, when it is handed over."""
    if _parameters(function) not in (1, 2):
        raise Invalid(f"around({function!r:.80}): give a function of the run, or of the run and the call.")
    return function


def wrap(wrappers: Sequence[Wrapper], run: Any, body: Callable[[], Any], *, is_async: bool) -> Callable[[], Any]:
    """The body inside its wrappers."""
    if is_async and wrappers:
        body = _coroutine(body)
    for wrapper in reversed(wrappers):
        body = _async(wrapper, run, body) if is_async else _sync(wrapper, run, body)
    return body


def _parameters(function: Wrapper) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(1 for p in inspect.signature(function).parameters.values() if p.kind in kinds)


def _coroutine(body: Callable[[], Any]) -> Callable[[], Any]:
    """A plain function on the loop, as wrappers know bodies there: to be awaited."""

    async def call() -> Any:
        return await awaited(body())

    return call


def _sync(wrapper: Wrapper, run: Any, body: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> Any:
        if _parameters(wrapper) == 2:
            return wrapper(run, body)
        manager = contextmanager(wrapper) if inspect.isgeneratorfunction(wrapper) else wrapper
        with manager(run):
            return body()

    return call


def _async(wrapper: Wrapper, run: Any, body: Callable[[], Any]) -> Callable[[], Any]:
    async def call() -> Any:
        if _parameters(wrapper) == 2:
            value = wrapper(run, body)
            return await value if inspect.isawaitable(value) else value
        if inspect.isasyncgenfunction(wrapper):
            async with asynccontextmanager(wrapper)(run):
                return await body()
        manager: Any = contextmanager(wrapper)(run) if inspect.isgeneratorfunction(wrapper) else wrapper(run)
        if hasattr(manager, "__aenter__"):
            async with manager:
                return await body()
        with manager:
            return await body()

    return call
