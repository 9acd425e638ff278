"""Cron fields in English: cronsim finds the words, here they become a sentence that cannot be misread."""

from __future__ import annotations

__all__ = ["sentence"]


def sentence(fields: tuple[str, ...]) -> str:
    """Describe when it runs, such as "At 02:30 every day" or "Every 15 minutes on Monday through Friday"."""
    time = _evenly(*fields[:3]) or _cronsim(f"{' '.join(fields[:3])} * * *")
    date = _date(*fields[3:])
    return f"{time.removesuffix(' every day')} {date}" if date else time


def _evenly(second: str, minute: str, hour: str) -> str | None:
    """Return plain words for even intervals; cronsim says "every 15th minute of every hour"."""
    match second, minute, hour:
        case beat, "*", "*" if beat != "0":
            return _beat(beat, 60, "second")
        case "0", beat, "*" if beat != "0":
            return _beat(beat, 60, "minute")
        case "0", "0", beat:
            return _beat(beat, 24, "hour")
    return None


def _beat(field: str, size: int, unit: str) -> str | None:
    star, _, step = field.partition("/")
    if star != "*" or size % int(step or 1):
        return None
    return f"Every {unit}" if int(step or 1) == 1 else f"Every {step} {unit}s"


def _date(day: str, month: str, weekday: str) -> str:
    if (day, month, weekday) == ("*", "*", "*"):
        return ""
    if day.startswith("*") or weekday.startswith("*"):
        return _cronsim(f"0 0 {day} {month} {weekday}").removeprefix("At 00:00 ")
    # cronsim joins the two with "and", which reads as if both had to match.
    return f"{_date(day, month, '*')} or {_date('*', month, weekday)}"


def _cronsim(expression: str) -> str:
    from cronsim.explain import explain

    return explain(expression)
