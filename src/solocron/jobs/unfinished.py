"""Refuse calls that only promise the work: a run succeeds only if its call was carried out to its end.

Calling a generator function or a coroutine function runs none of its lines. A function that is one is refused where it
is declared. A result that is one is awaited where there is an event loop, and fails the run elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

from solocron.errors import InvalidError, RunStopped

__all__ = ["awaited", "refuse_generator", "unfinished"]


def refuse_generator(function: Callable[..., Any], call: Callable[..., Any], place: str) -> None:
    """Refuse a function that yields. `call` is its `__call__` where the function is an object."""
    if inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(call):
        kind = "a generator function"
    elif inspect.isasyncgenfunction(function) or inspect.isasyncgenfunction(call):
        kind = "an async generator function"
    else:
        return
    raise InvalidError(
        f"{place} is {kind}: a call runs none of its lines. It was not registered; take the yield out, or register a "
        "function that loops over it."
    )


def unfinished(value: Any) -> str | None:
    """Say why a call that returned this was not carried out to its end; None if it was. A coroutine is closed."""
    if isinstance(value, Coroutine):
        with suppress(Exception, RunStopped):  # one that was already started may object; its run has failed anyway
            value.close()
        kind = "a coroutine"
    elif isinstance(value, Awaitable):
        kind = f"an awaitable ({type(value).__name__})"
    elif isinstance(value, AsyncGenerator):
        kind = "an async generator"
    elif isinstance(value, Generator):
        kind = "a generator"
    else:
        return None
    advice = (
        'Declare it as `async def` and await it there, or give the job run_in="loop".'
        if isinstance(value, Awaitable)
        else "Loop over it inside the function."
    )
    return f"its function returned {kind}, which was never carried out. {advice}"


async def awaited(value: Any) -> Any:
    """Await until nothing is left to await: a coroutine may return another one."""
    while isinstance(value, Awaitable):
        value = await value
    return value
