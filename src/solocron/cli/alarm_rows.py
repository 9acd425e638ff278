"""Rows of alarms: one for each alarm where a person asks for all, one for each kind where they are one fact of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from solocron.cli.moments import utc
from solocron.model.documents.alarm_text import about, whom_to_ask

if TYPE_CHECKING:
    from solocron.views import AlarmView

__all__ = ["grouped", "single"]

_STATES = ("told", "untold", "silenced", "information")


def single(alarm: AlarmView) -> Sequence[str]:
    """Return the row of one alarm."""
    return alarm.kind, _state(alarm), alarm.subject, utc(alarm.since), _why(alarm)


def grouped(alarms: Iterable[AlarmView]) -> list[Sequence[str]]:
    """Return a row for all alarms of a kind and state; what is wrong comes first."""

    def place(alarm: AlarmView) -> tuple[int, str]:
        return _STATES.index(alarm.state), alarm.kind

    rows: list[Sequence[str]] = []
    for _, found in groupby(sorted(alarms, key=place), key=place):
        some = sorted(found, key=lambda alarm: alarm.since)
        first = some[0]
        why = _why(first) if len(some) == 1 else "`solocron alarms` lists them"
        names = about(first.kind, len(some), [one.subject for one in some])
        rows.append((first.kind, _state(first) if len(some) == 1 else first.state, names, utc(first.since), why))
    return rows


def _why(alarm: AlarmView) -> str:
    return f"{alarm.detail}{whom_to_ask(alarm.owner, alarm.runbook)}"


def _state(alarm: AlarmView) -> str:
    return alarm.state if alarm.silenced_until is None else f"silenced until {utc(alarm.silenced_until)}"
