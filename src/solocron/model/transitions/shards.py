"""Slices: a slot of a sliced job becomes several runs, one for each slice. What waits stands for a row of them.

The slot is cut when the first slice is taken, by the definition as it is then; from there on each slice carries what
it was cut into, so that a deploy that changes the slices neither loses nor doubles one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solocron.clock import MILLISECOND
from solocron.model._fast.values import replace
from solocron.model.documents.job import Owed
from solocron.model.documents.run import Shards, group_of, slice_of

__all__ = ["SHARDS", "SPREAD", "count", "cut", "each", "labels", "rest_of", "without"]

SHARDS = 1_000
"""How many slices a slot may have."""
SPREAD = 50 * MILLISECOND
"""How long a node that took a slice lets the others go first before it takes the next one of the same slot."""


def labels(shards: Shards) -> Sequence[int | str]:
    """What the slices are called."""
    return range(shards) if isinstance(shards, int) else shards


def count(shards: Shards | None) -> int:
    """How many runs a slot is."""
    return 1 if shards is None else len(labels(shards))


def cut(owed: Owed, shards: Shards | None) -> Owed:
    """What waits as a row of slices, if the job has them and it has not been cut before.

    One that was asked for a single slice stays that one.
    """
    if owed.shards is not None or shards is None or owed.attempt > 1:
        return owed
    if owed.shard is not None:
        return replace(owed, shards=shards)
    return replace(owed, run=f"{owed.run}#0", shard=labels(shards)[0], shards=shards, more=count(shards) - 1)


def rest_of(owed: Owed) -> Owed | None:
    """The row without its first slice; None where that was the last."""
    return _at(owed, int(slice_of(owed.run) or 0) + 1, owed.more - 1) if owed.more else None


def each(owed: Owed) -> Iterator[Owed]:
    """Every slice of a row by itself; what is no row is itself."""
    if not owed.more:
        yield owed
        return
    first = int(slice_of(owed.run) or 0)
    for index in range(first, first + owed.more + 1):
        yield _at(owed, index, 0)


def without(owed: Owed, run: str) -> tuple[tuple[Owed, ...], tuple[Owed, ...]]:
    """What is left of an entry when a run, or all the slices of a slot, are taken out; and what was."""
    if run in (owed.run, group_of(owed.run)) and (not owed.more or run != owed.run):
        return (), tuple(each(owed))
    gone = next((one for one in each(owed) if one.run == run), None)
    if gone is None:
        return (owed,), ()
    first, index = int(slice_of(owed.run) or 0), int(slice_of(run) or 0)
    before = (replace(owed, more=index - first - 1),) if index > first else ()
    after = (_at(owed, index + 1, first + owed.more - index - 1),) if index < first + owed.more else ()
    return (*before, *after), (gone,)


def _at(owed: Owed, index: int, more: int) -> Owed:
    """The row that begins with that slice."""
    assert owed.shards is not None, "only what was cut is a row"
    return replace(owed, run=f"{group_of(owed.run)}#{index}", shard=labels(owed.shards)[index], more=more)
