"""Turn a refusal of the model into the error that the caller sees."""

from __future__ import annotations

from collections.abc import Mapping

from solocron.errors import ConflictError, InvalidError, NotFoundError, SolocronError
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.refusals import Refusal, Refused
from solocron.model.transitions.backfill import AT_ONCE, MOST

__all__ = ["error_of"]

_ERRORS: Mapping[Refused, tuple[type[SolocronError], str]] = {
    Refused.DISABLED: (ConflictError, "{job} is disabled, so {undone}; enable it where it is declared."),
    Refused.DECLARED: (
        ConflictError,
        "{job} is declared in code, so {undone}; change it there, or choose another name.",
    ),
    Refused.NO_SHARD: (
        InvalidError,
        "{job} has no shard {shard!r}, so {undone}; `solocron show {job}` lists those that it has.",
    ),
    Refused.EACH_SHARD: (InvalidError, "{job} has shards, so {undone}; name one of them with shard=."),
    Refused.BUSY: (
        ConflictError,
        "{job} runs at this moment, as often as its overlap= allows, so {undone}; wait for its end or cancel it.",
    ),
    Refused.PAUSED: (
        ConflictError,
        "{job} is under a pause that keeps back what is requested too, so {undone}; see `solocron status`.",
    ),
    Refused.QUEUE_FULL: (
        ConflictError,
        f"{QUEUE_LIMIT} runs of {{job}} wait already, so {{undone}}; see `solocron runs {{job}}`.",
    ),
    Refused.UNFINISHED: (
        ConflictError,
        "{job} {slot} still runs or waits, so it was not asked for again; wait for it or cancel it.",
    ),
    Refused.NO_SLOTS: (NotFoundError, "the schedule of {job} has no slot there; {undone}."),
    Refused.TOO_MANY_SLOTS: (
        InvalidError,
        f"{{job}} has {{count}} slots there, more than {MOST}; {{undone}}. Narrow it, or give limit=.",
    ),
    Refused.TOO_MANY_BACKFILLS: (ConflictError, f"{AT_ONCE} backfills of {{job}} are under way already; {{undone}}."),
    Refused.BACKFILL_OVER: (ConflictError, "this backfill of {job} is over; ask for a new one."),
    Refused.UNKNOWN_SCHEDULE: (
        InvalidError,
        "{job} has a schedule of its own class, which only its code knows; ask a program that has it.",
    ),
}


def error_of(
    refusal: Refusal, job: str, *, undone: str, slot: str | None = None, shard: int | str | None = None
) -> SolocronError:
    """Return the error for a refusal; `undone` says what was left as it was."""
    kind, text = _ERRORS[refusal.reason]
    return kind(text.format(job=job, undone=undone, count=refusal.count, slot=slot, shard=shard))
