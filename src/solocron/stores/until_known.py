"""Repeat an update until the outcome of every document is known.

A store answers *contended* where others were faster and *unknown* where its reply was lost. Every change that goes
through here can be repeated: the document itself shows whether an earlier try of it was applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from solocron.errors import StoreUnavailable
from solocron.stores.contract import All, Applied, ChangeFn, Gate, HeldBy, Named, Result, Store, Verdict

__all__ = ["OPEN_OUTCOMES", "TRIES", "Again", "a_few_times", "update_until_known"]

TRIES = 16
"""Tries of an update at most, unless the caller decides by itself. Losing so many races in a row has a cause."""

OPEN_OUTCOMES = (Verdict.CONTENDED, Verdict.UNKNOWN)
"""The verdicts after which an update is worth repeating."""


class Again(Protocol):
    """Whether to try once more: after `tries` tries, the last of which had this reply, or failed with this error.

    May wait before it returns True, and may raise instead of returning.
    """

    def __call__(self, tries: int, applied: Applied | None, error: StoreUnavailable | None) -> bool: ...


def a_few_times(tries: int, applied: Applied | None, error: StoreUnavailable | None) -> bool:
    """Try again at once, up to `TRIES` times. A store that is away, a shut gate and a dead session end it."""
    return applied is not None and applied.alive and not applied.shut and tries < TRIES


def update_until_known(
    store: Store,
    which: Named | HeldBy | All,
    change: ChangeFn,
    *,
    session: str | None = None,
    gate: Callable[[], Gate | None] | Gate | None = None,
    again: Again = a_few_times,
    each: Callable[[Result], None] | None = None,
) -> Applied:
    """Apply a change to each selected document, and again where the outcome is open.

    Returns the last reply, with the last result of every document. Outcomes that are still open after the last try are
    among them; what they mean is for the caller. `HeldBy` selects anew with every try: a document that was declined
    there is open too. A callable `gate` is asked before every try. `each` is called with every known result as soon as
    it is known.
    """
    known: dict[str, Result] = {}
    tries = 0
    while True:
        tries += 1
        applied, error = None, None
        try:
            applied = store.update(which, change, session=session, gate=gate() if callable(gate) else gate)
        except StoreUnavailable as unavailable:
            error = unavailable
        if applied is not None:
            if isinstance(which, HeldBy):  # what was open and is not selected any more is no longer held
                known = {name: result for name, result in known.items() if result.verdict is Verdict.APPLIED}
            known |= {result.name: result for result in applied.results}
            pending = _pending(which, applied)
            for result in applied.results:
                if each is not None and result.verdict not in OPEN_OUTCOMES:
                    each(result)
            if pending is None:
                return replace(applied, results=tuple(known.values()))
            which = pending
        if not again(tries, applied, error):
            if error is not None:
                raise error
            assert applied is not None
            return replace(applied, results=tuple(known.values()))


def _pending(which: Named | HeldBy | All, applied: Applied) -> Named | HeldBy | All | None:
    """What to select for the next try; None when nothing is open."""
    if applied.shut or not applied.alive:
        return which
    if isinstance(which, HeldBy):
        return None if all(result.verdict is Verdict.APPLIED for result in applied.results) else which
    names = tuple(result.name for result in applied.results if result.verdict in OPEN_OUTCOMES)
    return Named(which.kind, names) if names else None
