"""`@cron`, `@every`, `@at`: declarations on a function, which stays what it was. Nothing is started or opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar, Unpack

from solocron.errors import InvalidError
from solocron.jobs.declaration import Declaration
from solocron.jobs.options import CronOptions, JobOptions, Span, lists_options
from solocron.schedules import At, Every, Schedule

__all__ = ["MARK", "at", "cron", "declarations", "every"]

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__solocron__"


@lists_options(CronOptions)
def cron(expression: str | Schedule, **options: Unpack[CronOptions]) -> Callable[[F], F]:
    """Run the function at the instants of a cron expression, or of any object with the `Schedule` protocol."""
    if not isinstance(expression, str | Schedule):
        raise InvalidError(
            f"cron({expression!r:.80}): give a cron expression or an object with after, before, between, count and "
            "describe. Nothing was registered."
        )
    if not isinstance(expression, str) and (options.get("tz", "UTC") != "UTC" or options.get("dst") is not None):
        raise InvalidError(
            f"{type(expression).__name__} brings its own instants, so tz= and dst= have no effect; leave them out. "
            "Nothing was registered."
        )
    return _declares(expression, options)


@lists_options(JobOptions)
def every(period: Span, **options: Unpack[JobOptions]) -> Callable[[F], F]:
    """Run the function at whole multiples of a period since 1970 UTC, so that all nodes agree on the instants."""
    _refuse_zone("every", options)
    return _declares(Every(period), options)


@lists_options(JobOptions)
def at(when: datetime, **options: Unpack[JobOptions]) -> Callable[[F], F]:
    """Run the function once, at an aware datetime."""
    _refuse_zone("at", options)
    return _declares(At(when), options)


def declarations(function: object) -> tuple[Declaration, ...]:
    """Return the declarations on a function or method, the outermost last."""
    found = getattr(getattr(function, "__func__", function), MARK, ())
    return found if isinstance(found, tuple) else ()


def _declares(when: str | Schedule, options: CronOptions | JobOptions) -> Callable[[F], F]:
    """Return the decorator that adds a declaration; several on one function are several jobs."""
    declaration = Declaration.make(when, options)
    if declaration.options.target is not None:
        raise InvalidError(
            "hand_over={'target': ...}: the function would never be called. Nothing was registered; declare a job "
            "without a function with scheduler.forward(...)."
        )

    def mark(function: F) -> F:
        target = getattr(function, "__func__", function)  # static and class methods wrap the function they mark
        if not callable(target):
            raise InvalidError(f"{function!r:.80} is not a function; put the decorator on a function or method.")
        try:
            setattr(target, MARK, (*getattr(target, MARK, ()), declaration))
        except AttributeError:
            raise InvalidError(
                f"{function!r:.80} cannot be marked, as a built-in; put the decorator on a function that calls it. "
                "Nothing was registered."
            ) from None
        return function

    return mark


def _refuse_zone(what: str, options: Mapping[str, object]) -> None:
    for name in ("tz", "dst"):
        if name in options:
            raise InvalidError(
                f"{what}(...) has no {name}=: its instants are the same in every zone. Nothing was registered."
            )
