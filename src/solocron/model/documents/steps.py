"""The steps of one run, in one document with a fence of its own.

An attempt first raises the fence, then reads; a save with another fence is refused. So a frozen predecessor can no
longer save, and what it saved before is a finished step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from solocron.model.change import Absent, Change, Kind, SmallDocument

__all__ = ["TOTAL", "Finished", "enter", "finished", "prune", "save"]

TOTAL = 1024 * 1024
"""Maximum bytes of all results of one run."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A step whose result is saved."""

    value: Any
    at: int


def finished(doc: SmallDocument | Absent) -> dict[str, Finished]:
    """Return the saved steps, in the order in which they were saved."""
    if isinstance(doc, Absent):
        return {}
    return {name: Finished(value, at) for name, value, at in doc.body["steps"]}


def _note(name: str, fence: int, steps: list[list[Any]], *, now: int) -> SmallDocument:
    return SmallDocument(kind=Kind.STEP, name=name, body={"fence": fence, "steps": steps, "at": now})


def enter(doc: SmallDocument | Absent, *, fence: int, now: int) -> Change | None:
    """Raise the fence; the answer is what is saved. None: a later attempt has raised it further, this one is stale."""
    if isinstance(doc, Absent):
        return Change(_note(doc.name, fence, [], now=now), answer={})
    if doc.body["fence"] > fence:
        return None
    if doc.body["fence"] == fence:
        return Change(doc, answer=finished(doc))
    return Change(_note(doc.name, fence, doc.body["steps"], now=now), answer=finished(doc))


def save(doc: SmallDocument | Absent, *, step: str, value: Any, fence: int, now: int) -> Change | None:
    """Save a result under the fence; the answer is the saved result. None: the fence is stale, nothing is saved.

    A step has one result forever: a repeated save returns the first.
    """
    if isinstance(doc, Absent) or doc.body["fence"] != fence:
        return None
    known = finished(doc).get(step)
    if known is not None:
        return Change(doc, answer=known)
    steps = [*doc.body["steps"], [step, value, now]]
    return Change(replace(doc, body={"fence": fence, "steps": steps, "at": now}), answer=Finished(value, now))


def prune(doc: SmallDocument | Absent, *, before: int, unfinished: Mapping[str, object]) -> Change | None:
    """Remove the steps of a run that has not been touched since then and is neither running nor waiting."""
    if isinstance(doc, Absent) or doc.body["at"] >= before or doc.name in unfinished:
        return None
    return Change(None)
