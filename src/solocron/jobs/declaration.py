"""What a decorator notes down: a schedule, options, perhaps a name. Everything is checked here, when declared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from solocron.duration import parse_duration, to_us
from solocron.errors import InvalidError
from solocron.model._fast.values import replace
from solocron.model.documents.definition import Definition
from solocron.model.documents.permit import MOST
from solocron.model.documents.run import Shards
from solocron.model.policy import Backoff, CatchUp, Overlap, whole
from solocron.model.routing import NODES
from solocron.model.transitions.shards import SHARDS
from solocron.schedules import RULES, Cron, Schedule, dump, spread
from solocron.schedules.calendar import check_movable
from solocron.schedules.native import Native
from solocron.schedules.shorthand import uses_hash
from solocron.size import format_size, parse_size

__all__ = ["NAME", "Declaration", "check_limit", "check_name", "check_payload", "check_shards"]

Span = timedelta | int | float | str

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
PAYLOAD_LIMIT = 64 * 1024
PAYLOAD_DEPTH = 32
SLICE = re.compile(r"[A-Za-z0-9_.-]{1,32}")
NAMED_SLICES = 100
LIMIT = re.compile(r"([A-Za-z0-9_.-]{1,64}):([0-9]{1,4})")
RUN_IN = ("auto", "thread", "loop", "process")
LEAST_MEMORY = 64 << 20
"""A Python process with its imports takes nearly half of it before it calls anything."""
MOST_CORES = 4_096
_BACKOFF = Backoff()


def check_name(name: object, what: str = "name") -> str:
    """A name as logs, keys and columns can carry it."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidError(
            f"{what}={name!r:.150} cannot be used: 1 to 128 letters, digits and _ . : - only. Nothing was registered."
        )
    return name


def check_shards(shards: object) -> Shards | None:
    """How a slot is cut: into a number of shards, or into shards with names."""
    if shards is None or (whole(shards) and isinstance(shards, int) and 1 <= shards <= SHARDS):
        return shards
    names = tuple(shards) if isinstance(shards, Iterable) and not isinstance(shards, str | bytes | Mapping) else ()
    good = all(isinstance(name, str) and SLICE.fullmatch(name) for name in names)
    if not good or not 1 <= len(names) <= NAMED_SLICES or len(set(names)) < len(names):
        raise InvalidError(
            f"shards={shards!r:.150} cannot be used: give a whole number from 1 to {SHARDS}, or 1 to {NAMED_SLICES} "
            "different names of up to 32 letters, digits and _ . - each. Nothing was registered."
        )
    return names


def check_routing(nodes: object, prefer: object, shards: object) -> None:
    """On how many nodes a slot runs, and who goes first."""
    if nodes is not None and nodes != "all" and not (isinstance(nodes, int) and whole(nodes) and 1 <= nodes <= NODES):
        raise InvalidError(
            f'nodes={nodes!r:.80}: give a whole number from 1 to {NODES}, or "all". Nothing was registered.'
        )
    if prefer is not None and prefer != "last":
        raise InvalidError(
            f'prefer={prefer!r:.80} is not known; choose "last" or leave it out. Nothing was registered.'
        )
    if nodes is not None and (shards is not None or prefer is not None):
        other = "shards" if shards is not None else "prefer"
        raise InvalidError(f"nodes= and {other}= do not go together; choose one of them. Nothing was registered.")


def check_limit(limit: object) -> str | None:
    """A limit as it is written down: its name, and how many runs of all jobs that name it may run at once."""
    if limit is None:
        return None
    found = LIMIT.fullmatch(limit) if isinstance(limit, str) else None
    if found is None or not 1 <= int(found[2]) <= MOST:
        raise InvalidError(
            f"limit={limit!r:.150} cannot be used: give a name of up to 64 letters, digits and _ . - and a number from "
            f'1 to {MOST}, such as "db-heavy:2". Nothing was registered.'
        )
    return f"{found[1]}:{int(found[2])}"


def check_payload(payload: Any, *, whose: str) -> Any:
    """A payload as the store can carry it: JSON, bounded in size and depth."""
    try:
        text = json.dumps(payload, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:  # a text that is no UTF-8 is a ValueError too
        raise InvalidError(
            f"the payload of {whose} is not JSON ({error}); nothing was written. Hand over plain JSON."
        ) from None
    if size > PAYLOAD_LIMIT:
        raise InvalidError(
            f"the payload of {whose} has {size} bytes, more than {PAYLOAD_LIMIT}; nothing was written. "
            "Keep the data elsewhere and hand over its name."
        )
    if _depth(payload) > PAYLOAD_DEPTH:
        raise InvalidError(f"the payload of {whose} is nested deeper than {PAYLOAD_DEPTH}; nothing was written.")
    return json.loads(text)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A decorator's words; `define` turns them into a definition once the job's name is known."""

    when: Schedule | str
    """A schedule, or a cron expression whose `H` and `spread` wait for the job's name."""
    name: str | None
    tz: str = "UTC"
    dst: dict[str, str] | None = None
    spread: timedelta | None = None
    calendar: str | None = None
    on_holiday: str = "skip"
    on_retry: Callable[..., Any] | None = None
    """Lives in the code alone: a store keeps names, never functions."""
    options: Definition

    @classmethod
    def make(
        cls,
        when: Schedule | str,
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
    ) -> Declaration:
        """Check every word of it; nothing is registered when one is wrong."""
        if name is not None:
            check_name(name)
        if not whole(retries) or not 0 <= retries <= 10_000:
            raise InvalidError(f"retries={retries!r}: give a whole number from 0 to 10000. Nothing was registered.")
        if pause_after is not None and (not whole(pause_after) or not 1 <= pause_after <= 10_000):
            raise InvalidError(
                f"pause_after={pause_after!r}: give a whole number from 1 to 10000. Nothing was registered."
            )
        if on_retry is not None and not callable(on_retry):
            raise InvalidError(f"on_retry={on_retry!r:.80} is not a function of the run. Nothing was registered.")
        if on_holiday is not None:
            _one_of("on_holiday", on_holiday, RULES)
            if calendar is None:
                raise InvalidError(f"on_holiday={on_holiday!r} needs a calendar=; nothing was registered.")
        _one_of("on_crash", on_crash, ("retry", "fail"))
        _one_of("on_lost", on_lost, ("cancel", "finish"))
        _one_of("on_stuck", on_stuck, ("hold", "abandon"))
        _one_of("run_in", run_in, RUN_IN)
        _check_isolation(run_in, memory, cpu, on_lost)
        check_name(pool, "pool")
        check_routing(nodes, prefer, shards)
        made = cls(
            when=when,
            name=name,
            tz=tz,
            dst=dst,
            spread=None if spread is None else parse_duration(spread, what="spread"),
            calendar=None if calendar is None else check_name(calendar, "calendar"),
            on_holiday=on_holiday or "skip",
            on_retry=on_retry,
            options=_shared(
                Definition(
                    handler="",
                    schedule=None,
                    pool=pool,
                    payload=None if payload is None else check_payload(payload, whose=name or "the job"),
                    timeout=_span("timeout", timeout),
                    retries=retries,
                    backoff=backoff if backoff is not None else _BACKOFF,
                    on_crash=on_crash,
                    on_lost=on_lost,
                    on_stuck=on_stuck,
                    overlap=Overlap.parse(overlap),
                    catch_up=CatchUp.parse(catch_up),
                    start_within=_span("start_within", start_within),
                    run_in=run_in,
                    pause_after=pause_after,
                    memory=None if memory is None else parse_size(memory, what="memory"),
                    cpu=cpu,
                    enabled=bool(enabled),
                    shards=check_shards(shards),
                    nodes=nodes,
                    prefer=prefer,
                    limit=check_limit(limit),
                )
            ),
        )
        # A bad expression or zone is refused where it is declared, and so is what cannot be moved.
        made.define(name or "any", "any")
        return made

    def schedule_for(self, name: str) -> Schedule:
        """The schedule of the job of that name: `H` and `spread` follow from it, on every node alike."""
        if not isinstance(self.when, str):
            schedule = self.when
        elif self.dst is None and isinstance(self.tz, str) and not uses_hash(self.when):
            schedule = _plain_cron(self.when, self.tz)
        else:
            schedule = Cron(self.when, tz=self.tz, dst=self.dst, seed=name)
        return schedule if self.spread is None else spread(schedule, self.spread, name)

    def define(self, name: str, handler: str) -> tuple[Definition, Schedule]:
        """The definition under a name, and the schedule itself (a user's own class lives only in code)."""
        schedule, spec = _shared_schedule(self.schedule_for(name))
        if spec["kind"] == "custom":
            spec = {**spec, "job": name}  # the only way back to it is through the code that declares the job
        if self.calendar is not None:
            if spec["kind"] == "custom":
                raise InvalidError(
                    f"{type(schedule).__name__} brings its own instants, so calendar= has no effect; leave days out "
                    "there. Nothing was registered."
                )
            if self.on_holiday != "skip":
                check_movable(schedule)
            spec = {**spec, "calendar": self.calendar, "on_holiday": self.on_holiday}
        return replace(self.options, handler=handler, schedule=spec), schedule


@lru_cache(maxsize=4096)
def _plain_cron(expression: str, tz: str) -> Schedule:
    """The one schedule of all jobs that say the same and do not depend on their names."""
    return Cron(expression, tz=tz)


def _shared_schedule(schedule: Schedule) -> tuple[Schedule, Mapping[str, Any]]:
    """The one schedule of all that are equal, and how it is written down: a program may have thousands of jobs."""
    return _one_schedule(schedule) if isinstance(schedule, Native) else (schedule, dump(schedule))


@lru_cache(maxsize=4096)
def _one_schedule(schedule: Native) -> tuple[Schedule, Mapping[str, Any]]:
    return schedule, dump(schedule)


def _shared(options: Definition) -> Definition:
    """The one object of all equal options; a payload may be anything, and is its job's own."""
    return _one_definition(options) if options.payload is None else options


@lru_cache(maxsize=256)
def _one_definition(options: Definition) -> Definition:
    return options


def _check_isolation(run_in: str, memory: int | str | None, cpu: int | None, on_lost: str) -> None:
    """What only a process of its own can keep is refused without one, and so is what it cannot keep."""
    for what, value in (("memory", memory), ("cpu", cpu)):
        if value is not None and run_in != "process":
            raise InvalidError(f'{what}={value!r}: only run_in="process" can keep to it. Nothing was registered.')
    if memory is not None and parse_size(memory, what="memory") < LEAST_MEMORY:
        raise InvalidError(
            f"memory={memory!r} is less than a Python process needs for itself; give {format_size(LEAST_MEMORY)} or "
            "more. Nothing was registered."
        )
    if cpu is not None and (not whole(cpu) or not 1 <= cpu <= MOST_CORES):
        raise InvalidError(f"cpu={cpu!r}: give the number of cores that it may use, from 1 up. Nothing was registered.")
    if run_in == "process" and on_lost == "finish":
        raise InvalidError(
            'on_lost="finish": a process of its own always ends with its lease, which is what run_in="process" '
            'promises. Nothing was registered; leave on_lost at "cancel".'
        )


def _span(what: str, value: Span | None) -> int | None:
    if value is None:
        return None
    us = to_us(parse_duration(value, what=what))
    if us <= 0:
        raise InvalidError(f"{what}={value!r}: give a time above zero. Nothing was registered.")
    return us


def _one_of(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        choices = " or ".join(f'"{one}"' for one in known)
        raise InvalidError(f"{what}={value!r} is not known; choose {choices}. Nothing was registered.")
