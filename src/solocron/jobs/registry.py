"""The jobs and handlers of one scheduler: each name once, each with the place in the code that it comes from."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from solocron.errors import InvalidError
from solocron.jobs.address import address_of
from solocron.jobs.application import application_of
from solocron.jobs.checks import check_name
from solocron.jobs.declaration import Declaration
from solocron.jobs.given import GivenParameter, call_async, call_sync, given_parameters
from solocron.jobs.parameters import taking
from solocron.jobs.unfinished import refuse_generator
from solocron.model._fast.values import replace
from solocron.model.documents.calendar import calendar_of
from solocron.model.documents.definition import CALENDAR_REVISION, Definition
from solocron.model.timetable import EMPTY, Timetable
from solocron.schedules import Calendar, Schedule, load

__all__ = ["Declared", "Handler", "Registry", "default_name", "place_of"]


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that can be called for a run."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    takes_run: bool
    application: str
    """The application that it comes from."""
    by_name: str | None = None
    """The parameter that gets the run, where it is not the first one."""
    on_retry: Handler | None = None
    """Function that is called before a run is repeated after a crash."""
    given: tuple[GivenParameter, ...] = ()
    """The parameters that factories fill."""

    @property
    def dispatcher(self) -> str:
        """The dispatcher that carries it out, unless the job says otherwise."""
        return "loop" if self.is_async else "thread"

    @property
    def needs_loop(self) -> bool:
        """True if it, or its `on_retry`, is a coroutine function."""
        return self.is_async or (self.on_retry is not None and self.on_retry.is_async)

    @property
    def place(self) -> str:
        return place_of(self.function)

    @property
    def line(self) -> str:
        """Module and line of the function; the module alone where it has no lines, as a built-in."""
        function = inspect.unwrap(self.function)
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        module = getattr(function, "__module__", None) or type(function).__module__
        return str(module) if code is None else f"{module}:{code.co_firstlineno}"

    def on_loop(self) -> Handler:
        """Return the same handler on an event loop: a plain function may return something to await."""
        return self if self.is_async else dataclasses.replace(self, is_async=True)

    def bind(self, run: Any) -> Callable[[], Any]:
        """Return the call without arguments, for a dispatcher."""
        function, by_name = self.function, self.by_name
        if self.given:
            call = call_async if self.is_async else call_sync
            return partial(call, self.given, run, self._called_with(run))
        if by_name is not None:
            return lambda: function(**{by_name: run})
        return (lambda: function(run)) if self.takes_run else function

    def _called_with(self, run: Any) -> Callable[..., Any]:
        """Return the function with its run, to be called with the values that it is given."""
        if self.by_name is not None:
            return partial(self.function, **{self.by_name: run})
        return partial(self.function, run) if self.takes_run else self.function


@dataclass(frozen=True, slots=True)
class Declared:
    """A job as this code declares it. A program may have very many, so derived values are not kept."""

    handler: Handler
    options: Definition
    """Shared by all jobs that are declared alike."""
    spec: Mapping[str, Any] | None
    schedule: Schedule

    @property
    def name(self) -> str:
        return self.handler.name

    @property
    def definition(self) -> Definition:
        """The definition that is proposed to the store, made anew each time."""
        return replace(self.options, handler=self.name, schedule=self.spec, application=self.handler.application)

    @property
    def run_in(self) -> str:
        return self.options.run_in

    @property
    def calendar(self) -> str | None:
        return calendar_of(self.spec)

    @property
    def place(self) -> str:
        return self.handler.place


class Registry:
    """The jobs, handlers and calendars that a scheduler knows; filled by discovery, read by the node."""

    def __init__(self) -> None:
        self.jobs: dict[str, Declared] = {}
        self.handlers: dict[str, Handler] = {}
        self.calendars: dict[tuple[str, int], Calendar] = {}
        """Revisions of calendars that were fetched; their content never changes."""
        self._resolved: tuple[Mapping[str, Any] | None, Timetable] = (None, EMPTY)
        """The spec that was resolved last: jobs that fall due together often share the very definition."""
        self._limits: dict[str, Declared] = {}
        """By the name of a limit, the first job that names it."""

    def __iter__(self) -> Iterator[Declared]:
        return iter(self.jobs.values())

    def copy(self) -> Registry:
        """Return a registry of the same jobs and handlers, to try adding more."""
        made = Registry()
        made.take(self)
        return made

    def take(self, other: Registry) -> None:
        """Add all jobs and handlers of another registry, which began as a copy of this one."""
        self.jobs.update(other.jobs)
        self.handlers.update(other.handlers)
        self._limits.update(other._limits)

    def add(self, function: Callable[..., Any], declaration: Declaration, *, prefix: str = "") -> Declared | None:
        """Register one job; return None if this very one is known already. Two jobs of one name are refused."""
        name = prefix + (declaration.name or default_name(function))
        check_name(name)
        handler = make_handler(name, function, declaration.on_retry)
        definition, schedule = declaration.define(name, name)
        if definition.run_in == "process":
            address_of(function, handler.place)
        elif definition.run_in == "thread" and handler.is_async:
            raise InvalidError(
                f"{handler.place} is a coroutine, so run_in='thread' cannot carry it out. It was not registered; leave "
                'run_in at "auto".'
            )
        elif definition.run_in == "loop":
            handler = handler.on_loop()
        declared = Declared(handler, declaration.options, definition.schedule, schedule)
        known = self.jobs.get(name)
        if known is not None:
            if _same(self.handlers[name].function, function) and known.definition == declared.definition:
                return None
            own = "a name= of its own"
            if known.place == declared.place and hasattr(function, "__self__"):  # two objects of one class
                own = 'a prefix: discover(it, prefix="eu:")'
            raise InvalidError(
                f"two jobs are named {name!r}: {known.place} and {declared.place}. "
                f"The first stays, the second was not registered; give one of them {own}."
            )
        limit = self._one_bound(declared)
        self._add_handler(handler)
        self.jobs[name] = declared
        if limit is not None:
            self._limits.setdefault(limit, declared)
        return declared

    def _one_bound(self, declared: Declared) -> str | None:
        """Check that a limit has one number for all jobs that name it; return its name."""
        limit = declared.options.limit
        if limit is None:
            return None
        name = limit.rpartition(":")[0]
        other = self._limits.get(name, declared)
        known = other.options.limit
        if limit != known:
            raise InvalidError(
                f"{declared.name} says limit={limit!r} and {other.name} says limit={known!r}: a limit has one "
                f"number. {declared.name} was not registered; make them equal, or give one another name."
            )
        return name

    def add_handler(self, function: Callable[..., Any], name: str | None = None) -> Handler:
        """Register a function without a schedule, for jobs that are added as data."""
        handler = make_handler(check_name(name or default_name(function)), function)
        self._add_handler(handler)
        return handler

    def name_of(self, job: str | Callable[..., Any]) -> str:
        """Return the name of a job, of which either that or the declared function is given."""
        if isinstance(job, str):
            return job
        if not callable(job):
            raise InvalidError(f"{job!r:.80} is neither the name of a job nor a function; nothing was done.")
        names = [name for name in self._handlers_of(job) if name in self.jobs]
        if len(names) == 1:
            return names[0]
        if names:
            listed = ", ".join(sorted(names))
            raise InvalidError(f"{place_of(job)} has several jobs: {listed}. Nothing was done; give the name of one.")
        raise InvalidError(
            f"{place_of(job)} is not declared as a job of this scheduler; nothing was done. Discover it first, or give "
            "the name of a job."
        )

    def handler_of(self, handler: str | Callable[..., Any]) -> str:
        """Return the name of a handler; a function that is not registered yet is registered under its own name."""
        if isinstance(handler, str):
            return handler
        if not callable(handler):
            raise InvalidError(f"{handler!r:.80} is neither the name of a handler nor a function; nothing was added.")
        known = self._handlers_of(handler)
        return known[0] if known else self.add_handler(handler).name

    def _handlers_of(self, function: Callable[..., Any]) -> list[str]:
        return [name for name, handler in self.handlers.items() if _same(handler.function, function)]

    def resolve(self, spec: Mapping[str, Any] | None) -> Timetable:
        """Turn a schedule as stored into its slots; a user's own class is known only to the code that has it."""
        if spec is None:
            return EMPTY
        known, slots = self._resolved
        if spec is known:
            return slots
        if spec["kind"] != "custom":
            calendar = (
                self.calendars.get((spec["calendar"], spec.get(CALENDAR_REVISION, 0))) if "calendar" in spec else None
            )
            schedule = load(spec, calendar)
            slots = Timetable(schedule, known=schedule is not None)
            if "calendar" not in spec:
                self._resolved = spec, slots
            return slots
        declared = self.jobs.get(spec.get("job", ""))
        if declared is None or declared.spec != spec:
            return Timetable(None, known=False)
        return Timetable(declared.schedule)

    def _add_handler(self, handler: Handler) -> None:
        known = self.handlers.get(handler.name)
        if known is not None and not _same(known.function, handler.function):
            raise InvalidError(
                f"two functions are named {handler.name!r}: {known.place} and {handler.place}. "
                "The first stays, the second was not registered; give one of them a name= of its own."
            )
        self.handlers[handler.name] = handler


def _same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    return one == other or (
        getattr(one, "__self__", None) is getattr(other, "__self__", None)
        and place_of(one) == place_of(other)
        and "<locals>" not in place_of(one)
    )


def make_handler(name: str, function: Callable[..., Any], on_retry: Callable[..., Any] | None = None) -> Handler:
    """Make a handler; a function that needs more than the run is refused."""
    takes_run, by_name, missing = taking(function)
    if missing:
        names = ", ".join(missing)
        raise InvalidError(
            f"{place_of(function)} wants {names}: a job's function takes the run or nothing. It was not registered; "
            "put what it needs into payload= or into an object whose method it is."
        )
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    refuse_generator(function, call, place_of(function))
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
    asked = None if on_retry is None else make_handler(f"{name}.on_retry", on_retry)
    made = given_parameters(function, place_of(function), is_async=is_async)
    return Handler(name, function, is_async, takes_run, application_of(function), by_name, asked, made)


def default_name(function: Callable[..., Any]) -> str:
    """Return the function's name, `Class.method` for methods; refuse what has none."""
    if isinstance(function, partial):
        raise InvalidError(f"{function!r:.120} has no name of its own; give it one with name=. It was not registered.")
    qualified = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(qualified).rpartition("<locals>.")[2]


def place_of(function: Callable[..., Any]) -> str:
    """Return where a function is defined, for people."""
    qualified = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', '?')}.{qualified}"
