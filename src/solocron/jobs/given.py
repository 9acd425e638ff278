"""`given(factory)`: parameters of a job's function that a factory makes for each attempt.

A factory takes the run or nothing. It is a function, a coroutine function, or a generator that yields once and is
closed after the body, the last one first. There is no graph, no cache and no override: for more there are `around` and
methods of an object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from solocron.errors import InvalidError
from solocron.jobs.parameters import other_than_run, taking
from solocron.jobs.unfinished import awaited

__all__ = ["Given", "GivenParameter", "call_async", "call_sync", "given", "given_parameters"]

_REFUSED = "It was not registered"


@dataclass(frozen=True, slots=True)
class Given:
    """The default of a parameter whose value a factory makes."""

    dependency: Callable[..., Any]
    """Named as FastAPI names it in `Depends`, so that both are read alike."""


def given(factory: Callable[..., Any]) -> Any:
    """Mark a parameter: its value is what the factory returns or yields, made anew for each attempt.

    `def job(run: Run, *, db: Session = given(get_db))`. Typed as `Any`, because it stands for a value of any type.
    """
    if not callable(factory):
        raise InvalidError(f"given({factory!r:.80}) is not a function that makes a value; pass the function itself.")
    return Given(factory)


class GivenParameter(NamedTuple):
    """A parameter of a handler, and how its value is made."""

    name: str
    factory: Callable[..., Any]
    takes_run: bool
    by_name: str | None
    """The factory's parameter that gets the run, where it is not the first one."""
    yields: bool
    is_async: bool

    def make(self, run: Any) -> Any:
        """Call the factory: a value, a coroutine to await, or a generator."""
        if self.by_name is not None:
            return self.factory(**{self.by_name: run})
        return self.factory(run) if self.takes_run else self.factory()

    def manager(self, run: Any) -> Any:
        """Return a context manager around the one value that the generator yields."""
        managed = asynccontextmanager if self.is_async else contextmanager
        return managed(lambda: self.make(run))()


def given_parameters(function: Callable[..., Any], place: str, *, is_async: bool) -> tuple[GivenParameter, ...]:
    """Return the parameters of a function that factories fill; refuse a factory that cannot be called for a run."""
    return tuple(_checked(name, default.dependency, place, is_async) for name, default in _defaults(function))


def _defaults(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the parameters whose default is `given(...)`, or FastAPI's `Depends(...)`, and these defaults."""
    plain = isinstance(function, FunctionType) and not hasattr(function, "__wrapped__")
    if plain and not function.__defaults__ and not function.__kwdefaults__:
        return []  # nearly every job: `inspect` costs far more
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [(one.name, one.default) for one in parameters if _is_given(one.default)]


def _is_given(default: Any) -> bool:
    """Return whether a default asks for a value: ours, or an object of another library with a callable `.dependency`.

    A class has such an attribute for its instances, and stands for itself.
    """
    return not isinstance(default, type) and callable(getattr(default, "dependency", None))


def _checked(name: str, factory: Callable[..., Any], place: str, is_async: bool) -> GivenParameter:
    takes_run, by_name, missing = taking(factory)
    wants = [*missing, *other_than_run(factory), *(one for one, _ in _defaults(factory))]
    if wants:
        raise InvalidError(
            f"{place} is given {name} by {_named(factory)}, which wants {', '.join(wants)}: a factory takes the run or "
            f"nothing. {_REFUSED}; let the factory make what it needs by itself."
        )
    is_coroutine, yields_async = _is(factory, inspect.iscoroutinefunction), _is(factory, inspect.isasyncgenfunction)
    if (is_coroutine or yields_async) and not is_async:
        raise InvalidError(
            f"{place} is given {name} by {_named(factory)}, which is a coroutine, and is a plain function itself. "
            f"{_REFUSED}; make it `async def`, or the factory a plain function."
        )
    yields = yields_async or _is(factory, inspect.isgeneratorfunction)
    return GivenParameter(name, factory, takes_run, by_name, yields, is_coroutine or yields_async)


def _is(function: Any, test: Callable[[Any], bool]) -> bool:
    """Apply a test of `inspect` to a function, or to the `__call__` of an object."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return test(function)
    return test(function.__call__)


def _named(factory: Callable[..., Any]) -> str:
    return str(getattr(factory, "__qualname__", None) or f"{factory!r:.60}")


# --- calling ---------------------------------------------------------------------------------------------------------


def call_sync(parameters: tuple[GivenParameter, ...], run: Any, body: Callable[..., Any]) -> Any:
    """Make the values, call the body with them, and close the generators, also after an error."""
    failed: BaseException | None = None
    with ExitStack() as stack:
        values = {
            one.name: stack.enter_context(one.manager(run)) if one.yields else one.make(run) for one in parameters
        }
        try:
            return body(**values)
        except BaseException as error:
            failed = error
            raise
    raise failed  # a factory that caught it does not turn a failed run into one that succeeded


async def call_async(parameters: tuple[GivenParameter, ...], run: Any, body: Callable[..., Any]) -> Any:
    """Do the same on an event loop, where factories may be coroutines."""
    failed: BaseException | None = None
    async with AsyncExitStack() as stack:
        values: dict[str, Any] = {}
        for one in parameters:
            if not one.yields:
                made = one.make(run)
                values[one.name] = await made if one.is_async else made
            elif one.is_async:
                values[one.name] = await stack.enter_async_context(one.manager(run))
            else:
                values[one.name] = stack.enter_context(one.manager(run))
        try:
            return await awaited(body(**values))
        except BaseException as error:
            failed = error
            raise
    raise failed
