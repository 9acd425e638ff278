"""Wrappers around every run: a database session, a tenant, an error tracker. The first one added is the outermost.

A wrapper is a function of the run that yields once (a generator, or anything that returns a context manager), or a
function of the run and the call, which it makes and whose value it returns. For coroutine jobs both may be
asynchronous.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from solocron.errors import InvalidError
from solocron.jobs.unfinished import awaited

__all__ = ["Wrapper", "check_wrapper", "elsewhere", "wrap"]

Wrapper = Callable[..., Any]


def check_wrapper(function: Wrapper) -> Wrapper:
    """Refuse a function that could not wrap a run, when it is added."""
    yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if _parameters(function) not in ((1,) if yields else (1, 2)):
        raise InvalidError(
            f"around({function!r:.80}): give a function of the run that yields once, or of the run and the call that "
            "returns what the call returned. It was not added."
        )
    return function


def elsewhere(wrapper: Wrapper) -> Wrapper:
    """Return what stands for a wrapper in a process of its own: its attribute `elsewhere`, or the wrapper itself.

    One that belongs to an object of this process cannot be found there.
    """
    found: Wrapper = getattr(wrapper, "elsewhere", wrapper)
    return found


def wrap(wrappers: Sequence[Wrapper], run: Any, body: Callable[[], Any], *, is_async: bool) -> Callable[[], Any]:
    """Return the body inside its wrappers."""
    if is_async and wrappers:
        body = _coroutine(body)
    for wrapper in reversed(wrappers):
        body = _async(wrapper, run, body) if is_async else _sync(wrapper, run, body)
    return body


def _parameters(function: Wrapper) -> int:
    """Return 1 if it takes the run, 2 if it takes the call too, 0 if it can take neither.

    A parameter with a default keeps it, unless it is named `call`.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        return 0
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in positional)
    if needed < 2 and len(positional) > 1 and positional[1].name == "call":
        return 2
    return needed or min(len(positional), 1)


def _coroutine(body: Callable[[], Any]) -> Callable[[], Any]:
    """Make a plain function on the loop awaitable, as wrappers expect bodies there to be."""

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
