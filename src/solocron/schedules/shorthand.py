"""Expand what people write into the six plain fields that a cron parser knows.

`@daily` and friends, `?`, and `H`, the hash of a job's name, are ours; they are gone after this. Cost is linear in the
string, and strings are short: anything over 200 characters is refused unread.
"""

from __future__ import annotations

import re

from solocron.errors import ScheduleError
from solocron.schedules.field import FIELDS, Field
from solocron.schedules.spread import stable_number

__all__ = ["resolve", "tidy", "uses_hash"]

_LONGEST = 200
_MOST_ITEMS = 64

_NAMED = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}

_HASHED = re.compile(r"H(?:\(([0-9]{1,2})-([0-9]{1,2})\))?(?:/([0-9]{1,2}))?")
_HASH_ITEM = re.compile(r"(?:^|[\s,])H(?:$|[\s,(/])", re.IGNORECASE)


def tidy(expression: str) -> str:
    """Return the expression with single spaces; refuse what is not a string, too long, or fits no field."""
    if not isinstance(expression, str):
        raise ScheduleError(f"{expression!r:.80} is not a cron expression; give a string such as '0 9 * * MON-FRI'.")
    if len(expression) > _LONGEST:
        raise ScheduleError(f"{len(expression)} characters are too long; at most {_LONGEST}. Use ranges and steps.")
    if not expression.isascii():
        raise ScheduleError("only ASCII letters, digits and , - * / ? # ( ) may stand in it.")
    text = " ".join(expression.split())
    if not text:
        raise ScheduleError("it is empty; give five fields: minute, hour, day of month, month, day of week.")
    return text


def uses_hash(text: str) -> bool:
    """True if the expression depends on the job's name."""
    return _HASH_ITEM.search(text) is not None


def resolve(text: str, seed: str | None) -> tuple[str, ...]:
    """Return second, minute, hour, day of month, month and day of week, each as cronsim reads it."""
    fields = _split(text.upper())
    return tuple(_plain(field, written, seed) for field, written in zip(FIELDS, fields, strict=True))


def _split(text: str) -> list[str]:
    if text.startswith("@"):
        if text == "@REBOOT":
            raise ScheduleError(
                "@reboot is not a time: replicas start at any moment. Call the function at start instead."
            )
        if text.startswith("@EVERY "):
            raise ScheduleError(f"it is an interval and no cron expression; write every({text[7:].lower()!r}).")
        if text not in _NAMED:
            raise ScheduleError("unknown name; known are " + ", ".join(_NAMED).lower() + ".")
        text = _NAMED[text]
    fields = text.split()
    if len(fields) == 5:
        return ["0", *fields]
    if len(fields) == 7:
        raise ScheduleError("7 fields: a year field is not supported; leave it out, or use `at` for a single date.")
    if len(fields) != 6:
        raise ScheduleError(
            f"{len(fields)} field{'s' * (len(fields) != 1)}; give five (minute, hour, day of month, month, "
            "day of week), or six with seconds first."
        )
    return fields


def _plain(field: Field, written: str, seed: str | None) -> str:
    items = written.split(",")
    if len(items) > _MOST_ITEMS:
        raise ScheduleError(
            f"{field.shown(written)} lists {len(items)} items, at most {_MOST_ITEMS}; use ranges or steps."
        )
    if written == "?" and field.is_day:
        return "*"
    if "?" in written:
        raise ScheduleError(f"{field.shown(written)}: ? means 'any' and stands alone in a day field; use * here.")
    return ",".join(_unhashed(field, item, seed) if item.startswith("H") else item for item in items)


def _unhashed(field: Field, item: str, seed: str | None) -> str:
    """Return `H` as a number, `H(a-b)` as one from that range, `H/n` as every n-th from a number below n on."""
    match = _HASHED.fullmatch(item)
    if match is None:
        raise ScheduleError(f"{field.shown(item)}: H is written H, H(a-b), H/n or H(a-b)/n.")
    if not seed:
        raise ScheduleError(
            f"{field.shown(item)}: H needs a job's name, from which it is made (on the command line: --name)."
        )
    low, high, step = (None if part is None else int(part) for part in match.groups())
    if low is None or high is None:
        low, high = field.hashed
    if not field.low <= low <= high <= field.high:
        raise ScheduleError(f"{field.shown(item)}: H takes a range that rises, within {field.low}-{field.high}.")
    width = high - low + 1
    if step is None:
        return str(low + stable_number(seed, field.name, width))
    if not 1 <= step <= width:
        raise ScheduleError(f"{field.shown(item)}: the step must be from 1 to {width}, the width of the range.")
    return f"{low + stable_number(seed, field.name, step)}-{high}/{step}"
