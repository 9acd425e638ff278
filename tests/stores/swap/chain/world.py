"""Clients of a chain in memory whose clocks are set by hand, and that can be hurt between two calls."""

from __future__ import annotations

from collections.abc import Callable

from solocron.clock import SECOND
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.objects import MemoryObjects, SharedObjects
from solocron.stores.swap.chain.state import ChainPace
from solocron.stores.swap.key_store import Swapped

__all__ = ["PACE", "ChainWorld", "HurtObjects", "at_once"]

PACE = ChainPace(commits=5)
Before = Callable[[str, Callable[[], object]], object]


class Over:
    """Something that has ended."""

    def is_alive(self) -> bool:
        return False

    def join(self) -> None:
        pass


def at_once(body: Callable[[], None]) -> Over:
    """Do it here and now."""
    body()
    return Over()


class HurtObjects(MemoryObjects):
    """`hurt` gets the next creation or reading whose name begins with `on`, and makes it, or something else."""

    on = ""
    hurt: Before | None = None
    calls = 0

    def create(self, name: str, content: bytes) -> bool:
        return self._call("create", name, lambda: super(HurtObjects, self).create(name, content))  # type: ignore[return-value]

    def get(self, name: str) -> bytes | None:
        return self._call("get", name, lambda: super(HurtObjects, self).get(name))  # type: ignore[return-value]

    def _call(self, verb: str, name: str, act: Callable[[], object]) -> object:
        self.calls += 1
        if self.hurt is not None and f"{verb} {name}".startswith(self.on):
            hurt, self.hurt = self.hurt, None
            return hurt(name, act)
        return act()


class ChainWorld:
    """One folder of objects, the time of its service, and the boot clock that all clients share."""

    def __init__(self, pace: ChainPace = PACE) -> None:
        self.pace = pace
        self.time = 1_790_000_000.0
        self.shared = SharedObjects(lambda: int(self.time * SECOND))
        self.clients: list[HurtObjects] = []

    def client(self, *, behind: int = 0) -> tuple[ChainKeys, HurtObjects]:
        objects = HurtObjects(self.shared, behind=behind)
        keys = ChainKeys(objects, pace=self.pace, boot=lambda: self.time, pause=lambda seconds: None, aside=at_once)
        return keys, objects

    def names(self, kind: str) -> list[str]:
        return sorted(name for name in self.shared.objects if name.startswith(f"d/default/{kind}/"))


def write(keys: ChainKeys, times: int, name: str = "w") -> int:
    """Make so many commits to one key; return the mark of the last one."""
    mark = 0
    for i in range(times):
        reply = keys.commit({}, {name: str(i)})
        assert isinstance(reply, Swapped)
        mark = reply.marks[name]  # type: ignore[assignment]
    return mark


def go_on(world: ChainWorld, keys: ChainKeys) -> None:
    """Make roots, let their hour pass, and make more, so that everything before is deleted."""
    for _ in range(3):
        write(keys, 2 * world.pace.commits)
        world.time += 2 * world.pace.kept
