"""Breaks the claim on purpose in every process that has this folder on its path: a claim is handed out twice.

Python imports a module of this name by itself when it starts; nothing of the shipped code knows of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solocron.model.documents.job import Hold
from solocron.scheduler import core
from solocron.stores import url
from solocron.stores.contract import Applied, ChangeFn, Due, Gate, Result, Store, Which

_make_store = url.make_store


class CarelessStore:
    """Answers every claim with two holds of one attempt, as a store without compare-and-swap gives two nodes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        applied = self._store.update(which, change, session=session, gate=gate)
        if not isinstance(which, Due):
            return applied
        return replace(applied, results=tuple(two for one in applied.results for two in (one, *_again(one))))


def _again(result: Result) -> list[Result]:
    hold = result.answer
    return [replace(result, answer=replace(hold, fence=hold.fence - 1))] if isinstance(hold, Hold) else []


def make_careless_store(*args: Any, **kwargs: Any) -> CarelessStore:
    return CarelessStore(_make_store(*args, **kwargs))


setattr(core, "make_store", make_careless_store)  # noqa: B010 - not an attribute that the module exports
