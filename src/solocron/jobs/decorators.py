"""`@cron`, `@every`, `@at`: notes on a function. The function stays what it was; nothing starts, nothing is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from solocron.errors import InvalidError
from solocron.jobs.declaration import Declaration
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.schedules import At, Every, Schedule

__all__ = ["MARK", "at", "cron", "declarations", "declare", "every"]

F = TypeVar("F", bound=Callable[..., Any])
Span = timedelta | int | float | str

MARK = "__solocron__"


def cron(
    expression: str | Schedule,
    *,
    name: str | None = None,
    tz: str = "UTC",
    dst: dict[str, str] | None = None,
    timeout: Span | None = None,
    retries: int = 0,
    backoff: Backoff | None = None,
    on_crash: str = "retry",
    on_lost: str = "cancel",
    on_stuck: str = "hold",
    overlap: Overlap | str = "skip",
    catch_up: CatchUp | str = "latest",
    start_within: Span | None = None,
    pool: str = "default",
    run_in: str = "auto",
    pause_after: int | None = None,
    on_retry: Callable[..., Any] | None = None,
    calendar: str | None = None,
    on_holiday: str | None = None,
    memory: int | str | None = None,
    cpu: int | None = None,
    enabled: bool = True,
    payload: Any = None,
    spread: Span | None = None,
    shards: int | Iterable[str] | None = None,
    nodes: int | str | None = None,
    prefer: str | None = None,
    limit: str | None = None,
) -> Callable[[F], F]:
    """Run the function at the instants of a cron expression (or of any object with the `Schedule` protocol)."""
    options = {key: value for key, value in locals().items() if key != "expression"}
    if not isinstance(expression, str | Schedule):
        raise InvalidError(
            f"cron({expression!r:.80}): give a cron expression or an object with after, before, between, count and "
            "describe. Nothing was registered."
        )
    if not isinstance(expression, str) and (tz != "UTC" or dst is not None):
        raise InvalidError(
            f"{type(expression).__name__} brings its own instants, so tz= and dst= have no effect; leave them out. "
            "Nothing was registered."
        )
    return declare(expression, options)


def every(period: Span, **options: Any) -> Callable[[F], F]:
    """Run the function every so often, anchored so that all nodes agree on the instants. Options as for `cron`."""
    _no_zone("every", options)
    return declare(Every(period), options)


def at(when: datetime, **options: Any) -> Callable[[F], F]:
    """Run the function once, at an instant. Options as for `cron`."""
    _no_zone("at", options)
    return declare(At(when), options)


def declare(when: str | Schedule, options: dict[str, Any]) -> Callable[[F], F]:
    """The decorator that notes a declaration on whatever it is put on; several on one function are several jobs."""
    try:
        declaration = Declaration.make(when, **options)
    except TypeError as error:
        raise InvalidError(f"{error}; nothing was registered.") from None

    def mark(function: F) -> F:
        target = getattr(function, "__func__", function)  # static and class methods wrap the function they mark
        if not callable(target):
            raise InvalidError(f"{function!r:.80} is not a function; put the decorator on a function or method.")
        setattr(target, MARK, (*getattr(target, MARK, ()), declaration))
        return function

    return mark


def declarations(function: object) -> tuple[Declaration, ...]:
    """What was noted on a function or method, outermost last."""
    found = getattr(getattr(function, "__func__", function), MARK, ())
    return found if isinstance(found, tuple) else ()


def _no_zone(what: str, options: dict[str, Any]) -> None:
    for name in ("tz", "dst"):
        if name in options:
            raise InvalidError(
                f"{what}(...) knows no {name}: its instants are the same in every zone. Nothing was registered."
            )
