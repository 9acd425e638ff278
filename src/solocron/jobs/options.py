"""The options of a job, written down once: `cron`, `every`, `at`, the decorators of a `Scheduler` and `add` take these.

Type checkers and editors read the classes; at run time `DEFAULTS` completes what was given, and `complete` refuses what
is not an option. The values are checked in `Declaration.make`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta, tzinfo
from typing import Any, Final, Literal, TypedDict, TypeVar

from solocron.errors import InvalidError
from solocron.jobs.retrying import RetryDecision
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.near import did_you_mean
from solocron.schedules import Bound

__all__ = [
    "DEFAULTS",
    "ELSEWHERE",
    "PLACES",
    "AddOptions",
    "CronOptions",
    "Dst",
    "JobOptions",
    "Span",
    "complete",
    "lists_options",
]

C = TypeVar("C", bound=Callable[..., Any])

PLACES = ("auto", "thread", "loop", "process")
"""The values of `run_in` that are not the name of a carrier."""

Span = timedelta | int | float | str
"""A duration: a `timedelta`, a number of seconds, or a string such as `"90s"` or `"1h30m"`."""

Decision = RetryDecision | Literal["done", "repeat", "give up"]


class Dst(TypedDict, total=False):
    """Slots in hours that a clock change skips (`gap`) or repeats (`fold`)."""

    gap: Literal["run-after", "skip"]
    fold: Literal["first", "last", "both"]


class _Policies(TypedDict, total=False):
    """The options that a store can keep."""

    timeout: Span | None
    """A deadline for each attempt, counted from the start of its body."""
    retries: int
    """Further attempts after a failure, a timeout or a crash."""
    backoff: Backoff | None
    """Delay of a run after a failure; by default `Backoff(first="1s", factor=2, cap="5m", jitter=0.1)`."""
    on_crash: Literal["retry", "fail"]
    """`"fail"`: the death of a node does not use up retries, the run is `lost`."""
    on_lost: Literal["cancel", "finish"]
    """`"finish"`: a body whose lease is lost comes to its own end; its result is refused all the same."""
    on_stuck: Literal["hold", "abandon"]
    """`"abandon"`: give up a body that does not stop."""
    overlap: Overlap | Literal["skip", "queue", "queue-all", "replace"]
    """A slot that comes while a run is active; `allow(n)` lets several run."""
    catch_up: CatchUp | Literal["skip", "latest", "all"]
    """Slots that were missed; `catch_up_all(limit=, within=, rate=)` bounds `"all"`."""
    start_within: Span | None
    """A slot that has not started by then is `missed`."""
    pool: str
    """The pool of nodes that may run it."""
    run_in: Literal["auto", "thread", "loop", "process"] | str
    """Where the body runs; by default functions run on threads and coroutines on an event loop. Or a carrier's name."""
    hand_over: Mapping[str, Any] | None
    """Options for the carrier that `run_in` names, such as the queue; JSON."""
    memory: int | str | None
    """Memory limit of a process of its own: bytes, or a string such as `"512M"`."""
    cpu: int | None
    """Cores that a process of its own may use."""
    pause_after: int | None
    """Pause the job after so many failed runs in a row."""
    calendar: str | None
    """A business calendar of the store."""
    on_holiday: Literal["skip", "next", "previous"] | None
    """Skip a slot on a day off (the default), or move it to the next or the previous workday."""
    enabled: bool
    """`False`: slots are skipped and triggers refused."""
    payload: Any
    """JSON for `run.payload`, at most 64 kB and 32 levels deep."""
    shards: int | Iterable[str] | None
    """Split each slot into shards: a number up to 1000, or up to 100 names."""
    nodes: int | Literal["all"] | None
    """Run each slot on so many nodes of the pool, or on all."""
    prefer: Literal["last"] | None
    """`"last"`: the node that ran it last goes first, another after a second."""
    limit: str | None
    """`"name:number"`: at most so many runs at once of all jobs that name it."""
    spread: Span | None
    """Shift every slot by a stable offset below this, derived from the job's name."""
    starts: Bound | None
    """No slot before it: a date in the job's zone, an aware datetime, or one of them in ISO 8601."""
    ends: Bound | None
    """No slot after it; a date counts to its end."""
    tags: Iterable[str]
    """Words by which listings find it."""
    owner: str | None
    """The team or person that answers for it; alarms name it."""
    runbook: str | None
    """A link to what to do when it fails; alarms carry it."""


class _Zone(TypedDict, total=False):
    """The options that only a cron expression has."""

    tz: str | tzinfo
    """The zone of the expression: an IANA name, a ZoneInfo, or UTC."""
    dst: Dst | None
    """Slots in hours that a clock change skips or repeats."""


class JobOptions(_Policies, total=False):
    """The options of `every` and `at`."""

    name: str | None
    """The job's name; by default the function's, `Class.method` for methods."""
    on_retry: Callable[..., Decision | Awaitable[Decision]] | None
    """Called with the run before it is repeated after a crash; returns a `RetryDecision`."""


class CronOptions(JobOptions, _Zone, total=False):
    """The options of `cron`."""


class AddOptions(_Policies, _Zone, total=False):
    """The options of `Scheduler.add`: those of `cron` that a store can keep."""


DEFAULTS: Final[CronOptions] = {
    "name": None,
    "tz": "UTC",
    "dst": None,
    "timeout": None,
    "retries": 0,
    "backoff": None,
    "on_crash": "retry",
    "on_lost": "cancel",
    "on_stuck": "hold",
    "overlap": "skip",
    "catch_up": "latest",
    "start_within": None,
    "pool": "default",
    "run_in": "auto",
    "hand_over": None,
    "memory": None,
    "cpu": None,
    "pause_after": None,
    "on_retry": None,
    "calendar": None,
    "on_holiday": None,
    "enabled": True,
    "payload": None,
    "shards": None,
    "nodes": None,
    "prefer": None,
    "limit": None,
    "spread": None,
    "starts": None,
    "ends": None,
    "tags": (),
    "owner": None,
    "runbook": None,
}


ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("timezone", "time_zone", "zone"), "tz"),
    **dict.fromkeys(("retry", "max_retries", "max_attempts"), "retries"),
    **dict.fromkeys(("args", "kwargs", "data"), "payload"),
    "queue": "pool",
    "jitter": "spread",
    "max_instances": "overlap",
    "coalesce": "catch_up",
    "misfire_grace_time": "start_within",
    "start_date": "starts",
    "end_date": "ends",
}
"""What options are called in other schedulers. By its letters alone `retry` is nearest to `on_retry`."""


def complete(options: CronOptions | JobOptions | AddOptions) -> CronOptions:
    """Add the defaults; refuse a name that is not an option."""
    given: Mapping[str, Any] = options
    for name in given:
        if name not in DEFAULTS:
            meant = ELSEWHERE.get(name, name)
            hint = did_you_mean(meant, DEFAULTS, f"known are {', '.join(DEFAULTS)}.")
            raise InvalidError(f"a job has no option {name!r}; {hint} Nothing was registered.")
    made: dict[str, Any] = {**DEFAULTS, **given}
    return made  # type: ignore[return-value]  # a merge of two of them, which mypy takes for a plain dict


def lists_options(options: type) -> Callable[[C], C]:
    """Make `help()` and `inspect.signature` list the options with their defaults, as an editor does."""

    def mark(function: C) -> C:
        signature = inspect.signature(function)
        given = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        listed = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_shown(options, name))
            for name, default in DEFAULTS.items()
            if name in options.__annotations__
        ]
        setattr(function, "__signature__", signature.replace(parameters=[*given, *listed]))  # noqa: B010
        return function

    return mark


def _shown(options: type, name: str) -> str:
    annotation = options.__annotations__[name]
    return str(getattr(annotation, "__forward_arg__", annotation))
