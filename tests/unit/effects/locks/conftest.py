"""A store of each kind, and several processes' worth of schedulers on it; time passes by shifting the clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.clock import SECOND
from solocron.effects.locks.held import HELD

STORES = ("memory", "sqlite", "postgres", "mariadb", "redis")
numbers = itertools.count(1)


def fresh_url(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """The URL of a store that was never used."""
    if kind == "memory":
        return f"memory://locks-{next(numbers)}"
    if kind == "sqlite":
        return f"sqlite:///{folder / 'locks.db'}"
    server = request.getfixturevalue("redis_server" if kind == "redis" else kind)
    return str(server.fresh_url())


class Crowd:
    """Schedulers on one store that know nothing of each other, like processes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.members: list[Scheduler] = []

    def join(self, name: str, **settings: object) -> Scheduler:
        member = Scheduler(self.url, node=name, enabled=True, **settings)  # type: ignore[arg-type]
        member.open()  # so that the clock of the store can be shifted
        self.members.append(member)
        return member

    def later(self, seconds: float) -> None:
        """Let the store's time pass for every client: a store may shift each client, or all of them at once."""
        by = round(seconds * SECOND)
        first, *others = [member.open().store for member in self.members]
        first.shift_clock(by)
        for store in others:
            if first.clock() - store.clock() > by // 2:
                store.shift_clock(by)

    def close(self) -> None:
        for member in self.members:
            member.stop("1s")


@pytest.fixture(autouse=True)
def nothing_held() -> Iterator[None]:
    """What a test has taken and not released is not held by the next one."""
    before = HELD.set(())
    yield
    HELD.reset(before)


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_url(request.param, request, tmp_path)


@pytest.fixture
def crowd(url: str) -> Iterator[Crowd]:
    made = Crowd(url)
    yield made
    made.close()


@pytest.fixture
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Crowd]]:
    """A crowd on memory alone, for what does not depend on the store."""
    made: list[Crowd] = []

    def make() -> Crowd:
        made.append(Crowd(f"memory://room-{next(numbers)}"))
        return made[-1]

    yield make
    for crowd in made:
        crowd.close()
