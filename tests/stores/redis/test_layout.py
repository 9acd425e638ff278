"""The layout of a Redis namespace: made once, upgraded under old nodes, refused by code that is too old for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis

from solocron.errors import StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import All
from solocron.stores.redis import layout
from solocron.stores.redis.caller import Caller
from solocron.stores.redis.store import RedisStore
from solocron.testing.conformance.rivals import processes
from tests.servers import Redis
from tests.stores.redis.test_faults import PREFIX

MARK = f"{PREFIX}layout"


@pytest.fixture
def url(redis_server: Redis) -> str:
    return redis_server.fresh_url()


@pytest.fixture
def raw(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        yield client


@contextmanager
def opened(url: str, namespace: str = "default") -> Iterator[RedisStore]:
    store = RedisStore(url, namespace=namespace)
    try:
        store.open()
        yield store
    finally:
        store.close()


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Become a release with so many upgrades; return the list in which they note that they ran."""

    def become(number: int, *, compatible: int = 1) -> list[int]:
        ran: list[int] = []
        steps = tuple(lambda caller, to=to: ran.append(to) for to in range(2, number + 1))
        monkeypatch.setattr(layout, "STEPS", steps)
        monkeypatch.setattr(layout, "COMPATIBLE", compatible)
        return ran

    return become


def test_five_processes_mark_an_empty_namespace_at_once(url: str, raw: redis.Redis) -> None:
    def start() -> int:
        with opened(url) as store:
            return store.layout() == (1, 1)

    assert processes([start] * 5) == [True] * 5
    assert raw.get(MARK) == "1 1"


def test_the_next_release_upgrades_it_and_nodes_of_this_one_go_on(url: str, release: Callable[..., list[int]]) -> None:
    with opened(url) as old:
        ran = release(3)
        with opened(url) as new:
            assert new.layout() == (3, 1)
        assert ran == [2, 3]
        release(1)
        assert old.read(All(Kind.JOB)) == ()
    with opened(url) as again:
        assert again.layout() == (3, 1), "a node of this release leaves the mark of a later one"


def test_an_upgrade_that_broke_off_is_done_again(
    url: str, raw: redis.Redis, release: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(url):
        pass

    def dies(caller: Caller) -> None:
        raise ConnectionError("the node died here")

    monkeypatch.setattr(layout, "STEPS", (dies,))
    with pytest.raises(ConnectionError), opened(url):
        pass
    assert raw.get(MARK) == "1 1"
    ran = release(2)
    with opened(url):
        pass
    assert (ran, raw.get(MARK)) == ([2], "2 1")


def test_a_slow_upgrade_does_not_take_back_the_mark_of_a_later_release(
    url: str, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two releases upgrade at once, and the later one is done first."""
    with opened(url):
        pass
    monkeypatch.setattr(layout, "STEPS", (lambda caller: raw.set(MARK, "3 1"),))
    with opened(url) as slow:
        assert slow.layout() == (3, 1)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_node_that_is_too_old_is_refused_in_one_sentence(url: str, raw: redis.Redis, read_only: bool) -> None:
    raw.set(MARK, "3 2")
    store = RedisStore(url)
    with pytest.raises(
        StoreRefused, match=r"\(3\) is newer than this Solocron can work with \(1\); nothing was written"
    ):
        store.open(read_only=read_only)
    store.close()
    assert raw.keys() == [MARK]
    with opened(url, "other") as other:
        assert other.read(All(Kind.JOB)) == ()


@pytest.mark.parametrize("mark", ["99", "x 1", "1 -1", "1 1 1"])
def test_a_mark_that_no_release_wrote_is_refused(url: str, raw: redis.Redis, mark: str) -> None:
    raw.set(MARK, mark)
    with pytest.raises(StoreRefused, match="no release of Solocron has written"), opened(url):
        pass
    assert raw.get(MARK) == mark
