"""The layout of a namespace: which keys there are and what they hold, as two numbers under the key `layout`.

The first number is the newest layout that was applied, the second the oldest layout whose code still works with it. An
upgrade adds first and removes in a later release, so that old and new nodes share a namespace while they are replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from solocron.errors import StoreRefused
from solocron.stores.redis.caller import Caller

__all__ = ["Layout", "apply_layout", "newest", "read_layout"]

STEPS: tuple[Callable[[Caller], None], ...] = ()
"""The upgrades: the first makes layout 2 of layout 1. Each only adds, and may be repeated: several nodes may run it at
once, and a node may die in the middle of it."""
COMPATIBLE = 1
"""The oldest layout whose code works with the newest one."""
_TRIES = 8


class Layout(NamedTuple):
    """The mark of a namespace."""

    applied: int
    compatible: int

    def __str__(self) -> str:
        return f"{self.applied} {self.compatible}"


def newest() -> Layout:
    """Return the layout that this code writes."""
    return Layout(1 + len(STEPS), COMPATIBLE)


def apply_layout(caller: Caller, where: str) -> None:
    """Bring a namespace to the newest layout; any number of nodes, also of other releases, may do so at once."""
    mark = _read(caller)
    for _ in range(_TRIES):
        found = _parsed(mark, where)
        if found is not None and found.applied >= newest().applied:
            return
        # An empty namespace has nothing to upgrade, but is marked like any other: nodes start on it at once.
        for step in STEPS[(found.applied if found else 1) - 1 :]:
            step(caller)
        mark = caller.run("layout", (mark, str(newest()))).decode(errors="replace")
    raise StoreRefused(f"{where}: its layout changes with every look; nothing else was written. Try again.")


def read_layout(caller: Caller, where: str) -> Layout | None:
    """Return the layout of a namespace, None where it has none; refuse one that this code is too old for."""
    return _parsed(_read(caller), where)


def _parsed(mark: str, where: str) -> Layout | None:
    if not mark:
        return None
    applied, _, compatible = mark.partition(" ")
    if not (applied.isdecimal() and compatible.isdecimal()):
        raise StoreRefused(
            f"{where}: the key 'layout' holds {mark[:16]!r}, which no release of Solocron has written. "
            "Nothing was changed; use another namespace."
        )
    found = Layout(int(applied), int(compatible))
    if found.compatible > newest().applied:
        raise StoreRefused(
            f"the layout of {where} ({found.applied}) is newer than this Solocron can work with ({newest().applied}); "
            "nothing was written. Upgrade: pip install -U solocron."
        )
    return found


def _read(caller: Caller) -> str:
    """Return the mark; read before it is written, so that a full server can be opened, read and pruned."""
    return (caller.command("GET", caller.key("layout")) or b"").decode(errors="replace")
