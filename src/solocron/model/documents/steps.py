"""The steps of one run, in one document with a fence of its own.

An attempt first raises the fence, then reads; a save with another fence is refused. So a predecessor that was frozen
can no longer save, and what it saved before that is simply a finished step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from solocron.model.change import Absent, Change, Kind, SmallDocument

__all__ = ["TOTAL", "Finished", "enter", "finished", "prune", "save"]

TOTAL = 1024 * 1024
"""Bytes that the results of one run may have together."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A step whose result is saved."""

    value: Any
    at: int


def finished(doc: SmallDocument | Absent) -> dict[str, Finished]:
    """What is saved, in the order in which it was."""
    if isinstance(doc, Absent):
        return {}
    return {name: Finished(value, at) for name, value, at in doc.body["steps"]}


def _note(name: str, fence: int, steps: list[list[Any]], *, now: int) -> SmallDocument:
    return SmallDocument(kind=Kind.STEP, name=name, body={"fence": fence, "steps": steps, "at": now})


def enter(doc: SmallDocument | Absent, *, fence: int, now: int) -> Change | None:
    """Raise the fence; answers what is saved. None: a later attempt has been here, this one is stale."""
    if isinstance(doc, Absent):
        return Change(_note(doc.name, fence, [], now=now), answer={})
    if doc.body["fence"] > fence:
        return None
    if doc.body["fence"] == fence:
        return Change(doc, answer=finished(doc))
    return Change(_note(doc.name, fence, doc.body["steps"], now=now), answer=finished(doc))


def save(doc: SmallDocument | Absent, *, step: str, value: Any, fence: int, now: int) -> Change | None:
    """Save a result under the fence; answers the one that is saved. None: the fence is stale, nothing is saved.

    A step has one result for ever: a repeated save is answered with the first.
    """
    if isinstance(doc, Absent) or doc.body["fence"] != fence:
        return None
    known = finished(doc).get(step)
    if known is not None:
        return Change(doc, answer=known)
    steps = [*doc.body["steps"], [step, value, now]]
    return Change(replace(doc, body={"fence": fence, "steps": steps, "at": now}), answer=Finished(value, now))


def prune(doc: SmallDocument | Absent, *, before: int, unfinished: Mapping[str, object]) -> Change | None:
    """Remove the steps of a run that has not been touched since then, and is neither running nor waiting."""
    if isinstance(doc, Absent) or doc.body["at"] >= before or doc.name in unfinished:
        return None
    return Change(None)
