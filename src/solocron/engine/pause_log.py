"""Reports the pauses of many jobs that concern this node: once when one begins, and once when it ends.

The node reads them anyway, for every claim tests them; a pause of a thousand jobs is one event. The pause of a single
job is in that job's own document, which no node reads while it is not due.
"""

from __future__ import annotations

from collections.abc import Iterable

from solocron.engine.node_context import NodeContext
from solocron.model.documents.scoped_pause import Reach, Scope, ScopedPause

__all__ = ["PauseLog"]


class PauseLog:
    """The pauses that this node has reported and that stand."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._reported: dict[Scope, ScopedPause] = {}

    def look(self, pauses: Iterable[ScopedPause], now: int) -> None:
        """Report what has begun or ended since the last look; one whose end has come ends by itself."""
        listed = [one for one in pauses if self._concerns(one.scope)]
        standing = {one.scope: one for one in listed if one.stands(now)}
        for scope, before in self._reported.items():
            if scope not in standing:
                after = next((one for one in listed if (one.scope, one.at) == (scope, before.at)), before)
                self._context.events.emit(
                    "pause ended", scope=str(scope), by=after.lifted_by, reason=after.lifted_note, node=self._node
                )
        for scope, pause in standing.items():
            if self._reported.get(scope) != pause:
                self._context.events.emit(
                    "pause begun",
                    scope=str(scope),
                    by=pause.by,
                    reason=pause.note,
                    since=pause.at,
                    until=pause.until,
                    node=self._node,
                )
        self._reported = standing

    @property
    def _node(self) -> str:
        return self._context.settings.node

    def _concerns(self, scope: Scope) -> bool:
        """Return whether this node might run jobs of a scope; those whose names match a pattern may be any."""
        return scope.reach is not Reach.POOL or scope.value in self._context.settings.pools
