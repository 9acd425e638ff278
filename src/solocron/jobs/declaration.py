"""A job as a decorator or `add` describes it. Every option is checked here, when it is declared."""

# pyright: reportTypedDictNotRequiredAccess=false
# `complete` has added every default, which a TypedDict for keyword arguments cannot express.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from functools import lru_cache
from typing import Any

from solocron.duration import parse_duration
from solocron.errors import InvalidError, ScheduleError
from solocron.jobs.checks import (
    check_backoff,
    check_choice,
    check_hand_over,
    check_isolation,
    check_limit,
    check_name,
    check_owner,
    check_payload,
    check_routing,
    check_runbook,
    check_shards,
    check_span,
    check_tags,
    check_whole,
)
from solocron.jobs.options import AddOptions, CronOptions, Dst, JobOptions, complete
from solocron.model._fast.values import replace
from solocron.model.documents.definition import Definition
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.schedules import RULES, Bounded, Cron, Schedule, dump, spread
from solocron.schedules.bounded import bound_text, unbounded
from solocron.schedules.calendar import check_movable
from solocron.schedules.native import Native
from solocron.schedules.shorthand import uses_hash
from solocron.size import parse_size

__all__ = ["Declaration"]

_BACKOFF = Backoff()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The checked options of a job; `define` turns them into a definition once the job's name is known."""

    when: Schedule | str
    """A schedule, or a cron expression whose `H` and `spread` wait for the job's name."""
    name: str | None
    tz: str | tzinfo
    dst: Dst | None
    spread: timedelta | None
    starts: str | None
    ends: str | None
    calendar: str | None
    on_holiday: str
    on_retry: Callable[..., Any] | None
    """Lives in the code alone: a store keeps names, never functions."""
    options: Definition

    @classmethod
    def make(
        cls, when: Schedule | str, options: CronOptions | JobOptions | AddOptions, *, name: str | None = None
    ) -> Declaration:
        """Check every option; nothing is registered when one is wrong."""
        given = complete(options)
        name = name if name is not None else given["name"]
        if name is not None:
            check_name(name)
        _check(given)
        calendar, spread_by, backoff, payload = given["calendar"], given["spread"], given["backoff"], given["payload"]
        made = cls(
            when=when,
            name=name,
            tz=given["tz"],
            dst=given["dst"],
            spread=None if spread_by is None else parse_duration(spread_by, what="spread"),
            starts=None if given["starts"] is None else bound_text(given["starts"], "starts"),
            ends=None if given["ends"] is None else bound_text(given["ends"], "ends"),
            calendar=None if calendar is None else check_name(calendar, "calendar"),
            on_holiday=given["on_holiday"] or "skip",
            on_retry=given["on_retry"],
            options=_shared(
                Definition(
                    handler="",
                    schedule=None,
                    pool=check_name(given["pool"], "pool"),
                    payload=None if payload is None else check_payload(payload, whose=name or "the job"),
                    timeout=check_span("timeout", given["timeout"]),
                    retries=given["retries"],
                    backoff=_BACKOFF if backoff is None else check_backoff(backoff),
                    on_crash=given["on_crash"],
                    on_lost=given["on_lost"],
                    on_stuck=given["on_stuck"],
                    overlap=Overlap.parse(given["overlap"]),
                    catch_up=CatchUp.parse(given["catch_up"]),
                    start_within=check_span("start_within", given["start_within"]),
                    run_in=given["run_in"],
                    hand_over=check_hand_over(
                        given["run_in"],
                        given["hand_over"],
                        limit=given["limit"],
                        nodes=given["nodes"],
                        prefer=given["prefer"],
                    ),
                    pause_after=given["pause_after"],
                    memory=None if given["memory"] is None else parse_size(given["memory"], what="memory"),
                    cpu=given["cpu"],
                    enabled=bool(given["enabled"]),
                    shards=check_shards(given["shards"]),
                    nodes=given["nodes"],
                    prefer=given["prefer"],
                    limit=check_limit(given["limit"]),
                    tags=check_tags(given["tags"]),
                    owner=check_owner(given["owner"]),
                    runbook=check_runbook(given["runbook"]),
                )
            ),
        )
        # A bad expression or zone is refused where it is declared, and so is a schedule that cannot be moved.
        made.define(name or "any", "any")
        return made

    def schedule_for(self, name: str) -> Schedule:
        """Return the schedule of the job of that name: `H` and `spread` follow from it, on every node alike."""
        if not isinstance(self.when, str):
            schedule = self.when
        elif self.dst is None and isinstance(self.tz, str) and not uses_hash(self.when):
            schedule = _plain_cron(self.when, self.tz)
        else:
            dst = None if self.dst is None else {rule: str(choice) for rule, choice in self.dst.items()}
            schedule = Cron(self.when, tz=self.tz, dst=dst, seed=name)
        schedule = schedule if self.spread is None else spread(schedule, self.spread, name)
        return schedule if self.starts is self.ends is None else self._bounded(schedule)

    def _bounded(self, schedule: Schedule) -> Schedule:
        """Return the schedule between its bounds; without a slot there it is refused, as a date that never comes is."""
        bounded = Bounded(schedule, self.starts, self.ends)
        if bounded.after_us(bounded.starts_us - 1) is None:
            raise ScheduleError(f"there is no slot in it: {bounded.describe()}. Nothing was registered.")
        return bounded

    def define(self, name: str, handler: str) -> tuple[Definition, Schedule]:
        """Return the definition under a name, and the schedule itself: a user's own class lives only in code."""
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
                check_movable(unbounded(schedule))
            spec = {**spec, "calendar": self.calendar, "on_holiday": self.on_holiday}
        return replace(self.options, handler=handler, schedule=spec), schedule


def _check(given: CronOptions) -> None:
    """Check the options that are kept as they are, and those that depend on each other."""
    check_whole("retries", given["retries"], 0, 10_000)
    if given["pause_after"] is not None:
        check_whole("pause_after", given["pause_after"], 1, 10_000)
    if given["on_retry"] is not None and not callable(given["on_retry"]):
        raise InvalidError(f"on_retry={given['on_retry']!r:.80} is not a function of the run. Nothing was registered.")
    if given["on_holiday"] is not None:
        check_choice("on_holiday", given["on_holiday"], RULES)
        if given["calendar"] is None:
            raise InvalidError(f"on_holiday={given['on_holiday']!r} needs a calendar=; nothing was registered.")
    check_choice("on_crash", given["on_crash"], ("retry", "fail"))
    check_choice("on_lost", given["on_lost"], ("cancel", "finish"))
    check_choice("on_stuck", given["on_stuck"], ("hold", "abandon"))
    check_isolation(given["run_in"], given["memory"], given["cpu"], given["on_lost"])
    check_routing(given["nodes"], given["prefer"], given["shards"])


@lru_cache(maxsize=4096)
def _plain_cron(expression: str, tz: str) -> Schedule:
    """Share one schedule among all jobs that say the same and do not depend on their names."""
    return Cron(expression, tz=tz)


def _shared_schedule(schedule: Schedule) -> tuple[Schedule, Mapping[str, Any]]:
    """Share one schedule, and its stored form, among equal ones: a program may have thousands of jobs."""
    return _one_schedule(schedule) if isinstance(schedule, Native) else (schedule, dump(schedule))


@lru_cache(maxsize=4096)
def _one_schedule(schedule: Native) -> tuple[Schedule, Mapping[str, Any]]:
    return schedule, dump(schedule)


def _shared(options: Definition) -> Definition:
    """Share one object among equal options; a payload and the options of a carrier may be anything."""
    return _one_definition(options) if options.payload is None and options.hand_over is None else options


@lru_cache(maxsize=256)
def _one_definition(options: Definition) -> Definition:
    return options
