"""What `doctor` shows of every chain: how many keys a client keeps, and commits that should be deleted by now."""

from __future__ import annotations

from collections.abc import Iterator

from solocron.stores.contract import Check
from solocron.stores.swap.chain.objects import Objects
from solocron.stores.swap.chain.state import ChainState

__all__ = ["chain_checks"]

_MANY = 100_000
"""Keys that a chain should not exceed: every client keeps them in memory and reads them when it starts."""
_LEFT = 20_000
"""Commits that should have been deleted."""


def chain_checks(objects: Objects, state: ChainState, folder: str) -> Iterator[Check]:
    """Yield the lines of `doctor`."""
    keys = len(state.mirror.items)
    many = keys > _MANY
    yield Check(
        "size",
        "WARN" if many else "OK",
        f"{keys} keys after {state.number} commits; every client keeps them in memory and reads them when it starts",
        "keep less history (keep=), or take a store for more jobs" if many else None,
    )
    left = len(objects.names(f"{folder}c/", _LEFT))
    if left >= _LEFT:
        remedy = (
            "run a node: every hundred commits it deletes what is older than an hour; and give it the right to delete"
        )
        yield Check("commits", "WARN", f"{left} commits or more are not deleted yet", remedy)
