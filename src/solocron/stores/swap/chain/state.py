"""The state of a chain in memory: keys as of a number, what has changed since the last root, and how long to trust it.

Pure: it makes no calls, and the boot time is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from solocron.stores.swap.chain.text import ChainCommit, Entries
from solocron.stores.swap.key_store import Condition
from solocron.stores.swap.layout import NOTIFY
from solocron.stores.swap.mirror import Mirror

__all__ = ["PACE", "ChainPace", "ChainState"]


@dataclass(frozen=True, slots=True)
class ChainPace:
    """How often a chain makes roots, how long it keeps commits, and for how long a client trusts its state."""

    commits: int = 100
    """Commits from one root to the next: a client that begins reads so many, or a few more."""
    kept: float = 3_600.0
    """Seconds by the service's clock for which the root exists that allows a commit to be deleted."""
    trusted: float = 60.0
    """Seconds by the boot clock after a look at the head of the chain; far fewer than `kept`."""

    def releasing(self, number: int) -> int:
        """Return the first root that allows a commit to be deleted: the second one after it."""
        return -(-number // self.commits) + 1


PACE = ChainPace()


class ChainState:
    """The keys as of commit `number`. The client's mutex guards it."""

    def __init__(self, pace: ChainPace, *, root: int, entries: Entries, seen: float) -> None:
        """`seen`: a boot time at which the commit after this state was not deleted, and could not be for `kept`."""
        self.mirror = Mirror()
        self.number = self.first = root * pace.commits
        self.root = root
        self.seen = seen
        self.deltas: dict[int, Entries] = {}
        """What the commits up to a root have changed, for each root that is not known to exist."""
        self._pace = pace
        for key, (value, mark) in entries.items():
            if value is not None:
                self.mirror.put(key, value, mark)

    def apply(self, number: int, commit: ChainCommit) -> bool:
        """Apply the next commit; False where it is another one, because a thread was quicker."""
        if number != self.number + 1:
            return False
        delta = self.deltas.setdefault(-(-number // self._pace.commits), {})
        for key, value in commit.writes.items():
            if key == NOTIFY:
                self.mirror.notify(value, number)
                continue
            delta[key] = value, number
            if value is None:
                self.mirror.delete(key, number)
            else:
                self.mirror.put(key, value, number)
        self.mirror.reach(number)
        self.number = number
        return True

    def stale(self, checks: Mapping[str, Condition]) -> frozenset[str]:
        """Return the keys whose checks do not hold."""
        return frozenset(key for key, condition in checks.items() if not self.mirror.holds(key, condition))

    def saw_head(self, at: float) -> None:
        """Note that the commit after this state, or a later one, was not there at a boot time."""
        self.seen = max(self.seen, at)

    def due_roots(self) -> list[int]:
        """Return the roots that this state has passed and that are not known to exist, the first one first."""
        return [root for root in sorted(self.deltas) if root * self._pace.commits <= self.number]

    def has_root(self, root: int) -> None:
        """Note that a root exists."""
        self.deltas.pop(root, None)
        self.root = max(self.root, root)

    def news(self, after: int, timeout: float, ended: Callable[[], bool]) -> tuple[int, Sequence[str | None]]:
        """Wait for notifications after a number; None stands for those of commits that this state did not read."""
        if after < self.first:
            return self.number, [None]
        return self.mirror.news(after, timeout, ended)
