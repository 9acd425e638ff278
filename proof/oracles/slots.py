"""The promises of the policies, worked out the slow way: one slot after the other, without the machine's own code.

Slots of a simulated world are multiples of a period, or times of the day in a zone whose rule fits into two lines, so
that they can be counted by hand.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from proof.oracles.workdays import Slots, Workdays, instant_of
from solocron.duration import parse_duration, to_us
from solocron.model._fast.values import replace
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.run import Origin
from solocron.model.policy import QUEUE_LIMIT

__all__ = ["Between", "Daily", "Even", "fate_of", "fate_through", "slots_of"]

_MINUTES = {"* * * * *": 1, "*/2 * * * *": 2, "*/30 * * * *": 30, "0 * * * *": 60}
"""Zones of whole hours: what goes by the minute of the hour is even also over clock changes."""

_DAILY = re.compile(r"(?P<minute>\d+) (?P<hour>\d+) \* \* (?P<day>\*|[0-6])")

_DAY = 86_400_000_000

Revision = Callable[[str, int], Mapping[str, Any]]
"""From a calendar's name and revision to what was written down under them."""


class Even:
    """Every whole multiple of a period since 1970."""

    def __init__(self, period: int) -> None:
        self.period = period

    def count(self, after: int, until: int) -> int:
        return max(0, until // self.period - after // self.period)

    def between(self, after: int, until: int) -> list[int]:
        first = (after // self.period + 1) * self.period
        return list(range(first, until + 1, self.period))


class Daily:
    """A time of the day in central Europe: once each day, the first time if it comes twice, right after a gap.

    With `weekday`, as cron counts them from Sunday, on such days only.
    """

    def __init__(self, hour: int, minute: int, weekday: int | None = None) -> None:
        self._time = timedelta(hours=hour, minutes=minute)
        self._weekday = weekday

    def count(self, after: int, until: int) -> int:
        return len(self.between(after, until))

    def between(self, after: int, until: int) -> list[int]:
        days = range(after // _DAY - 1, until // _DAY + 2) if until > after else ()
        slots = [self._on(day) for day in days if self._weekday is None or (day + 4) % 7 == self._weekday]
        return slots[bisect_right(slots, after) : bisect_right(slots, until)]

    def _on(self, day: int) -> int:
        return instant_of(datetime.fromtimestamp(day * 86_400, UTC) + self._time, europe=True)


class Between:
    """The slots of another schedule from a first to a last instant; None leaves that side open."""

    def __init__(self, slots: Slots, starts: str | None, ends: str | None) -> None:
        self._slots = slots
        self._starts = None if starts is None else _instant(starts)
        self._ends = None if ends is None else _instant(ends)

    def count(self, after: int, until: int) -> int:
        return self._slots.count(*self._within(after, until))

    def between(self, after: int, until: int) -> list[int]:
        return self._slots.between(*self._within(after, until))

    def _within(self, after: int, until: int) -> tuple[int, int]:
        low = after if self._starts is None else max(after, self._starts - 1)
        high = until if self._ends is None else min(until, self._ends)
        return low, max(low, high)


def _instant(text: str) -> int:
    """Return the instant of a bound; in simulated worlds none is a date."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def slots_of(spec: Mapping[str, Any] | None, known: dict[str, Slots | None], revision: Revision) -> Slots | None:
    """The slots of a schedule as a document has it; None where this oracle cannot tell."""
    if spec is None:
        return None
    text = str(spec.get("period") or spec.get("expression"))
    calendar = spec.get("calendar")
    if calendar is not None:
        text = f"{text} {calendar} {spec['calendar_revision']} {spec['on_holiday']}"
    bounds = (spec.get("starts"), spec.get("ends"))
    text = text if bounds == (None, None) else f"{text} from {bounds}"
    if text not in known:
        made = _made(spec)
        if made is not None and calendar is not None:
            body = revision(calendar, spec["calendar_revision"])
            made = Workdays(made, body, spec["on_holiday"], europe=spec["kind"] == "cron")
        if made is not None and bounds != (None, None):
            made = Between(made, *bounds)
        known[text] = made
    return known[text]


def _made(spec: Mapping[str, Any]) -> Slots | None:
    if spec["kind"] == "every":
        return Even(to_us(parse_duration(spec["period"])))
    expression = spec.get("expression", "")
    minutes = _MINUTES.get(expression)
    if minutes:
        return Even(minutes * 60_000_000)
    daily = _DAILY.fullmatch(expression)
    if daily is None:
        return None
    return Daily(int(daily["hour"]), int(daily["minute"]), None if daily["day"] == "*" else int(daily["day"]))


def fate_of(job: Job, slots: Slots, *, now: int, late_for: int) -> dict[int, str]:
    """Return the fate of each slot that a job has not decided by now: waiting, missed, skipped or dropped."""
    fates: dict[int, str] = {}
    cursor = job.cursor
    pause = job.paused
    if pause is not None and pause.until is not None and pause.until <= now:
        for slot in slots.between(cursor, pause.until):
            fates[slot] = "skipped"
        cursor = max(cursor, pause.until)
    elif pause is not None:
        return {}
    if job.removed or not job.definition.enabled:
        return {}
    policy = job.definition
    open_slots = slots.between(cursor, now)
    late = [slot for slot in open_slots if _is_late(slot, policy, now=now, late_for=late_for)]
    missed = [slot for slot in open_slots if slot not in set(late)]
    caught_up = set(_caught_up(missed, policy, now=now))
    for slot in missed:
        fates[slot] = "waiting" if slot in caught_up else "missed"
    if policy.overlap.kind == "replace" and late:
        # The newest replaces whatever came before it, what was to be caught up included.
        fates |= dict.fromkeys(caught_up, "skipped") | dict.fromkeys(late, "skipped") | {late[-1]: "waiting"}
        return fates
    # What is caught up at a rate of its own stands aside: it is not in the queue.
    return fates | _overlapping(job, late, 0 if policy.catch_up.pace else len(caught_up), now)


def fate_through(
    job: Job, slots: Slots, pauses: list[tuple[int, int | None]], *, now: int, late_for: int
) -> dict[int, str]:
    """Return the same where many jobs were paused at once in these intervals.

    Slots within are skipped. The others fare as usual if all of them come before the pauses, or all of them after;
    where some wait from before one, and so stand in the way of those after it, this oracle says nothing of them.
    """
    over = [(at, until) for at, until in pauses if at < now and (until is None or until > job.cursor)]
    own = job.paused
    if over and own is not None and own.until is not None and own.until <= now:  # its own pause is over: one more
        job, over = replace(job, paused=None), [*over, (job.cursor, own.until)]
    if not over or job.paused is not None or job.removed or not job.definition.enabled:
        return fate_of(job, slots, now=now, late_for=late_for)
    open_slots = slots.between(job.cursor, now)
    skipped = [s for s in open_slots if any(at < s and (until is None or s <= until) for at, until in over)]
    others = [s for s in open_slots if s not in set(skipped)]
    fates = dict.fromkeys(skipped, "skipped")
    if not others or (not skipped and len(over) > 1):
        return fates
    begins, ends = min(at for at, _ in over), max(now if until is None else until for _, until in over)
    if others[0] > ends:
        return fates | fate_of(replace(job, cursor=max(job.cursor, ends)), slots, now=now, late_for=late_for)
    if others[-1] <= begins and job.definition.start_within is None:
        return fates | fate_of(job, slots, now=begins, late_for=late_for)
    return fates


def _is_late(slot: int, policy: Definition, *, now: int, late_for: int) -> bool:
    """Late, and not yet missed."""
    within = policy.start_within
    return slot > now - late_for and (within is None or slot >= now - within)


def _caught_up(missed: list[int], policy: Definition, *, now: int) -> list[int]:
    choice = policy.catch_up
    if choice.kind == "skip":
        return []
    if choice.kind == "latest":
        chosen = missed[-1:]
    else:
        chosen = [slot for slot in missed if choice.within is None or slot >= now - choice.within]
        chosen = chosen if choice.limit is None else chosen[-choice.limit :]
    return [slot for slot in chosen if policy.start_within is None or slot >= now - policy.start_within]


def _queue(job: Job) -> int:
    """Length of the queue; a run whose message is awaited is with its carrier, and not in it."""
    waiting = {o.run.partition("#")[0] for o in job.waiting_runs if o.offer is None or o.offer.until is None}
    return len(waiting) + sum(s.count for s in job.waiting_ranges if s.pace is None)


def _is_begun(one: WaitingRun) -> bool:
    """Whether it counts as running: for its retry, for another shard of its slot, or because a carrier has it."""
    return one.tries > 0 or one.shards is not None or one.offer is not None


def _overlapping(job: Job, late: list[int], more: int, now: int) -> dict[int, str]:
    """Late slots beside what runs already; a run that waits for its retry counts as running."""
    kind, most = job.definition.overlap.kind, job.definition.overlap.most
    past = Origin.BACKFILL  # its runs count for nothing here
    begun = [o.run for o in job.waiting_runs if _is_begun(o) and o.origin is not past]
    begun += [hold.run for hold in job.active if hold.origin is not past]
    line = 0
    if job.definition.limit is not None:  # slots that wait for a permit count, or the line would only get longer
        line = more + sum(s.count for s in job.waiting_ranges if s.origin is Origin.SCHEDULE and not s.pace)
        line += sum(1 for o in job.waiting_runs if o.origin is Origin.SCHEDULE and not o.tries and o.shards is None)
    free = len({run.partition("#")[0] for run in begun}) < most
    taken: list[Hold | WaitingRun] = [
        *job.active,
        *(o for o in job.waiting_runs if o.offer is not None and o.offer.until is not None),
    ]
    behind = free and len({one.run.partition("#")[0] for one in taken}) >= most
    if free and not behind and line < most:
        return dict.fromkeys(late, "waiting")
    if behind and kind in ("skip", "allow"):
        kind = "queue"  # a backfill is in the way: one waits for its end
    if kind == "queue-all":
        room = max(0, QUEUE_LIMIT - _queue(job) - more)
        return dict.fromkeys(late[:room], "waiting") | dict.fromkeys(late[room:], "dropped")
    fates = dict.fromkeys(late, "skipped")
    queued = (
        more
        or any(s.pace is None for s in job.waiting_ranges)
        or any(not _is_begun(waiting_run) and waiting_run.ready_at <= now for waiting_run in job.waiting_runs)
    )
    if kind == "queue" and late and not queued:
        fates[late[0]] = "waiting"
    return fates
