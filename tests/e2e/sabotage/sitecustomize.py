"""Breaks the claim on purpose in every process that has this folder on its path: a claim is now and then not written.

Python imports a module of this name by itself when it starts; nothing of the shipped code knows of it.
"""

from __future__ import annotations

from typing import Any

from solocron import scheduler
from solocron.stores import url
from solocron.stores.contract import Applied, ChangeFn, Due, Result, Store, Verdict, Which

_make_store = url.make_store


class CarelessStore:
    """Answers a few claims without having written them, as a store without compare-and-swap would."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claims = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def update(self, which: Which, change: ChangeFn, *, session: str | None = None) -> Applied:
        if isinstance(which, Due):
            self._claims += 1
            if self._claims in (3, 6, 9):  # the first of them may find nothing due
                return self._claim_without_writing(which, change)
        return self._store.update(which, change, session=session)

    def _claim_without_writing(self, which: Due, change: ChangeFn) -> Applied:
        now = self._store.clock()
        results = []
        for doc in self._store.read(which):
            made = change(doc, now)
            if made is not None:
                results.append(Result(doc.name, Verdict.APPLIED, made.doc, made.answer))
        return Applied(results=tuple(results), now=now, next_due=now)


def make_careless_store(*args: Any, **kwargs: Any) -> CarelessStore:
    return CarelessStore(_make_store(*args, **kwargs))


setattr(scheduler, "make_store", make_careless_store)  # noqa: B010 - not an attribute that the module exports
