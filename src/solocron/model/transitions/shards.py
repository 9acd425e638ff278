"""Shards: a slot of a sharded job becomes several runs, one for each shard. One waiting entry stands for a row of them.

The slot is cut when the first shard is claimed, by the definition at that time. From then on each shard carries the
shards of its slot, so that a deploy that changes the shards neither loses nor doubles one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solocron.clock import MILLISECOND
from solocron.model._fast.values import replace
from solocron.model.documents.job import WaitingRun
from solocron.model.documents.run import Shards, group_of, shard_of

__all__ = ["SHARDS", "SPREAD", "count", "cut", "each", "labels", "rest_of", "without"]

SHARDS = 1_000
"""Maximum number of shards of a slot."""
SPREAD = 50 * MILLISECOND
"""How long a node that took a shard lets other nodes go first before it takes the next one of the same slot."""


def labels(shards: Shards) -> Sequence[int | str]:
    """Return the names of the shards."""
    return range(shards) if isinstance(shards, int) else shards


def count(shards: Shards | None) -> int:
    """Return the number of runs of a slot."""
    return 1 if shards is None else len(labels(shards))


def cut(waiting_run: WaitingRun, shards: Shards | None) -> WaitingRun:
    """Return a waiting run as a row of shards, if the job has shards and it has not been cut before.

    A request for a single shard stays that one.
    """
    if waiting_run.shards is not None or shards is None or waiting_run.attempt > 1:
        return waiting_run
    if waiting_run.shard is not None:
        return replace(waiting_run, shards=shards)
    return replace(
        waiting_run, run=f"{waiting_run.run}#0", shard=labels(shards)[0], shards=shards, more=count(shards) - 1
    )


def rest_of(waiting_run: WaitingRun) -> WaitingRun | None:
    """Return the row without its first shard; None if that was the last."""
    return _at(waiting_run, int(shard_of(waiting_run.run) or 0) + 1, waiting_run.more - 1) if waiting_run.more else None


def each(waiting_run: WaitingRun) -> Iterator[WaitingRun]:
    """Yield every shard of a row by itself; an entry without shards as it is."""
    if not waiting_run.more:
        yield waiting_run
        return
    first = int(shard_of(waiting_run.run) or 0)
    for index in range(first, first + waiting_run.more + 1):
        yield _at(waiting_run, index, 0)


def without(waiting_run: WaitingRun, run: str) -> tuple[tuple[WaitingRun, ...], tuple[WaitingRun, ...]]:
    """Take a run, or all shards of a slot, out of an entry. Return what is left, and what was taken out."""
    if run in (waiting_run.run, group_of(waiting_run.run)) and (not waiting_run.more or run != waiting_run.run):
        return (), tuple(each(waiting_run))
    gone = next((one for one in each(waiting_run) if one.run == run), None)
    if gone is None:
        return (waiting_run,), ()
    first, index = int(shard_of(waiting_run.run) or 0), int(shard_of(run) or 0)
    before = (replace(waiting_run, more=index - first - 1),) if index > first else ()
    after = (
        (_at(waiting_run, index + 1, first + waiting_run.more - index - 1),) if index < first + waiting_run.more else ()
    )
    return (*before, *after), (gone,)


def _at(waiting_run: WaitingRun, index: int, more: int) -> WaitingRun:
    """Return the row that begins with that shard."""
    assert waiting_run.shards is not None, "only what was cut is a row"
    return replace(
        waiting_run, run=f"{group_of(waiting_run.run)}#{index}", shard=labels(waiting_run.shards)[index], more=more
    )
