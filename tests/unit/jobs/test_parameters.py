"""What a function is given: the run goes to the parameter that asks for it, and never to one that has another use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Optional

import pytest

import solocron
from solocron import AsyncRun, InvalidError, Run, Scheduler
from solocron.jobs.around import check_wrapper, wrap
from solocron.jobs.parameters import _RUN
from solocron.jobs.registry import make_handler

RUN: Any = object()


class OfAnotherLibrary:
    """Called `Run` where it is imported; not ours."""


def called(function: Callable[..., Any]) -> Any:
    """What the function returns when a job calls it."""
    return make_handler("job", function).bind(RUN)()


def test_a_parameter_with_a_default_keeps_it() -> None:
    """`def purge(force=False)` ran as forced."""

    def purge(force: bool = False) -> bool:
        return force

    assert called(purge) is False
    scheduler = Scheduler("memory://", enabled=True, lease="3s")
    scheduler.every("1h", name="purge")(purge)
    scheduler.every("1h", name="in-a-loop")(lambda name="mine": name)
    with scheduler:
        assert scheduler.wait(scheduler.trigger("purge"), "10s").result is False
        assert scheduler.wait(scheduler.trigger("in-a-loop"), "10s").result == "mine"


def _annotated() -> list[Callable[..., Any]]:
    def real(force=False, it: Run = None):  # type: ignore[no-untyped-def, assignment]
        return force, it

    def typed(force=False, it=None):  # type: ignore[no-untyped-def]
        return force, it

    found: list[Callable[..., Any]] = [real]
    annotations: tuple[Any, ...] = (
        Run, AsyncRun, Run | None, Optional["Run"], "Run", "AsyncRun | None",
        "Optional[Run]", "solocron.Run", "'Run'", "for_types_only.Run",
    )  # fmt: skip
    for annotation in annotations:
        copy = functools.wraps(typed)(lambda force=False, it=None: (force, it))
        del copy.__wrapped__
        copy.__annotations__ = {"it": annotation}
        found.append(copy)
    return found


@pytest.mark.parametrize("function", _annotated(), ids=lambda function: str(function.__annotations__["it"]))
def test_a_parameter_that_is_annotated_as_the_run_gets_it_whatever_its_place(function: Callable[..., Any]) -> None:
    assert called(function) == (False, RUN)


def test_a_parameter_named_run_gets_it_and_one_without_a_default_too() -> None:
    def named(run: Any = None) -> Any:
        return run

    def second(force: bool = False, run: Any = None) -> Any:
        return force, run

    def keyword(*, run: Any) -> Any:
        return run

    def needed(context: Any, force: bool = False) -> Any:
        return context, force

    def nothing(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    assert called(named) is RUN
    assert called(second) == (False, RUN)
    assert called(keyword) is RUN
    assert called(needed) == (RUN, False)
    assert called(nothing) == ((), {})


def test_methods_wrappers_objects_and_partials_are_looked_at_like_functions() -> None:
    class Jobs:
        def method(self, force: bool = False, run: Run | None = None) -> Any:
            return force, run

        def __call__(self, force: bool = False) -> bool:
            return force

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call

    def job(customer: str, run: Run) -> Any:
        return customer, run

    assert called(Jobs().method) == (False, RUN)
    assert called(Jobs()) is False
    assert called(logged(Jobs().method)) == (False, RUN)
    assert called(functools.partial(job, "ada")) == ("ada", RUN)
    assert called(functools.partial(job, customer="ada", run="mine")) == ("ada", "mine"), "what was given stays given"


def test_what_only_looks_like_a_run_is_none() -> None:
    def hook(after: Callable[[Run], None] | None = None) -> Any:
        return after

    def job(it: Run | None = None) -> Any:
        return it

    other = FunctionType(job.__code__, {"Run": OfAnotherLibrary}, "job", (None,))
    other.__annotations__ = {"it": "Run | None"}
    assert called(hook) is None
    assert called(other) is None


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda run, customer: None, "customer"),
        (lambda customer, order: None, "customer, order"),
        (lambda *, customer: None, "customer"),
        (lambda customer, run=None: None, "customer"),
        (lambda run, *, customer: None, "customer"),
    ],
)
def test_what_cannot_be_called_with_the_run_alone_is_refused_by_name(function: Callable[..., Any], names: str) -> None:
    scheduler = Scheduler("memory://", enabled=True)
    with pytest.raises(InvalidError, match=rf"wants {names}: .*It was not registered"):
        scheduler.every("1h", name="job")(function)
    assert scheduler.registry.jobs == {}


def test_a_wrapper_keeps_its_defaults_and_one_that_could_not_wrap_is_refused() -> None:
    seen: list[Any] = []

    def tenant(run: Run, schema: str = "public") -> Iterator[None]:
        seen.append(schema)
        yield

    assert wrap([check_wrapper(tenant)], RUN, lambda: "body", is_async=False)() == "body"
    assert seen == ["public"]

    def never(run: Run, call: Callable[[], Any]) -> Iterator[None]:
        yield call()

    for wrong in (never, lambda: None, lambda a, b, c: None, lambda run, *, schema: None):
        with pytest.raises(InvalidError, match=r"give a function of the run"):
            check_wrapper(wrong)


def test_the_public_names_are_those_that_annotations_are_compared_with() -> None:
    for kind in (solocron.Run, solocron.AsyncRun):
        assert _RUN in {(base.__module__, base.__name__) for base in kind.__mro__}
