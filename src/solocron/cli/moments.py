"""Read instants and durations as people type them, and format them for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from solocron.clock import from_us
from solocron.duration import parse_duration, to_us
from solocron.errors import InvalidError

__all__ = ["earlier", "instant", "later", "local", "span", "utc"]

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def instant(text: str, what: str, zone: tzinfo = UTC) -> datetime:
    """Read an instant in ISO-8601; one without an offset is in `zone`."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidError(f"{what}: {text!r:.60} is not an instant; write it like 2026-03-08T02:30:00Z.") from None
    return moment if moment.utcoffset() is not None else moment.replace(tzinfo=zone)


def later(text: str, what: str, now: int) -> datetime:
    """Read an instant, or a duration such as "10m" from the store's now."""
    return _shifted(text, what, now, 1, "a time such as 10m")


def earlier(text: str, what: str, now: int) -> datetime:
    """Read an instant, or a duration such as "2h" before the store's now."""
    return _shifted(text, what, now, -1, "a time ago such as 2h")


def _shifted(text: str, what: str, now: int, sign: int, such_as: str) -> datetime:
    try:
        return from_us(now) + sign * parse_duration(text)
    except OverflowError:
        raise InvalidError(f"{what}: {text!r:.60} is too far away.") from None
    except InvalidError:
        pass
    try:
        return instant(text, what)
    except InvalidError:
        raise InvalidError(
            f"{what}: {text!r:.60} is neither an instant such as 2026-03-08T02:30:00Z nor {such_as}."
        ) from None


def local(moment: datetime) -> str:
    """Format an instant in its own zone, such as "Mon 2026-11-16 02:30 -05:00"; seconds only if they are not 0."""
    seconds = ":%S" if moment.second else ""
    offset = moment.strftime("%z")
    return f"{moment:%a} {moment.year:04}-{moment:%m-%d %H:%M{seconds}} {offset[:3]}:{offset[3:5]}"


def utc(moment: datetime | None, *, beside: datetime | None = None) -> str:
    """Format an instant in UTC to the second; the date is left out if `beside` has the same one."""
    if moment is None:
        return "-"
    there = moment.astimezone(UTC)
    if beside is not None and there.date() == beside.date():
        return f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"
    date = f"{there.year:04}-{there:%m-%d}"
    return f"{date} {there:%H:%M:%S}" if beside is None or there.second else f"{date} {there:%H:%M}"


def span(value: timedelta | float) -> str:
    """Format a duration by its two largest units: "11 h 37 m", "15 s", "1.8 ms"."""
    us = to_us(value) if isinstance(value, timedelta) else round(value * 1_000_000)
    sign, us = ("-", -us) if us < 0 else ("", us)
    if us < 1_000_000:
        return f"{sign}{us / 1_000:.3g} ms" if us else "0 s"
    if us < 10_000_000 and us % 1_000_000:
        return f"{sign}{us / 1_000_000:.1f} s"
    parts: list[str] = []
    left = round(us / 1_000_000)
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    return sign + " ".join(part for part in parts[:2] if part)
