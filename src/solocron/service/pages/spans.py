"""Spans of the picture of a job's slots: those that fit its rhythm, and that one request may read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["SPAN_NAMES", "SlotsSpan"]

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_SPANS = {
    "10m": _HOUR / 6,
    "1h": _HOUR,
    "6h": 6 * _HOUR,
    "24h": _DAY,
    "3d": 3 * _DAY,
    "7d": 7 * _DAY,
    "24d": 24 * _DAY,
    "60d": 60 * _DAY,
    "1y": 365 * _DAY,
    "4y": 4 * 365 * _DAY,
}
SPAN_NAMES = tuple(_SPANS)
_AHEAD = (
    (timedelta(seconds=50), timedelta(minutes=1)),
    (timedelta(minutes=50), _HOUR),
    (timedelta(hours=20), _DAY / 2),
    (6 * _DAY, 7 * _DAY),
    (timedelta.max, 60 * _DAY),
)
"""How far ahead the picture goes, for a slot more often than the first."""
_MOST = 1_900
"""Slots of a span, a few less than one request may read."""
_FEW = 20
_USUAL = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsSpan:
    """The chosen span, and the others that fit."""

    name: str
    back: timedelta
    ahead: timedelta
    """How far the picture shows slots to come."""
    names: tuple[str, ...]

    @classmethod
    def chosen(cls, name: str | None, rhythm: timedelta | None) -> SlotsSpan:
        """Choose a span for a job with a slot every `rhythm`; one that does not fit is replaced by the usual one."""
        every = rhythm or _DAY
        fitting = [one for one, long in _SPANS.items() if long / every <= _MOST]
        names = [one for one in fitting if _SPANS[one] / every >= _FEW][-3:] or fitting[-1:] or ["1h"]
        usual = [one for one in names if _SPANS[one] / every <= _USUAL]
        if name not in names:
            name = usual[-1] if usual else names[-1]
        ahead = next(one for limit, one in _AHEAD if every < limit)
        return cls(name=name, back=_SPANS[name], ahead=ahead, names=tuple(names))


def shown_span(name: str) -> str:
    """Return a span as a choice shows it: `24 h`."""
    return f"{name[:-1]} {name[-1]}"
