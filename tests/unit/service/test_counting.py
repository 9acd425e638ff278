"""The first page after a start: it does not wait for the count of a day, says how far it is, and follows by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from solocron.client.hour_counts import HOUR
from solocron.errors import StoreUnavailable
from solocron.service.board.changes import told
from tests.unit.service.browsing import Browser
from tests.unit.service.kit import World
from tests.unit.service.kit import world as open_world


class SlowCount:
    """A store whose counts wait until a test lets them go on."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counted: list[tuple[int, int]] = []
        self.go = threading.Event()
        store = world.service._clients.reading().store
        self._tally = store.tally_by_time
        monkeypatch.setattr(store, "tally_by_time", self)

    def __call__(self, since: int, until: int, bucket: int, **more: Any) -> Any:
        self.go.wait(20)
        self.counted.append((since, until))
        return self._tally(since, until, bucket, **more)


@pytest.fixture
def own() -> Iterator[World]:
    made = open_world()
    yield made
    made.service._board.close()


def test_the_first_page_says_what_is_being_counted_and_other_pages_are_there(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solocron.service.board.glance._WAITS", 0.05)
    slow, browser = SlowCount(own, monkeypatch), Browser(own)
    own.service.watcher.look()
    position = own.service.watcher.changes.position
    shown = browser.text("/")
    assert "The last 24 hours are being counted" in shown
    assert "0 of 24 hours" in shown
    assert "tier A" in shown, "the frame is not made again when the page goes on by itself"
    assert "being counted" in browser.text("/accounting")
    for address, words in {
        "/jobs": "invoices",
        "/jobs/invoices": "Runs",
        "/nodes?state=ended": "kitchen",
        "/runs": "broken",
    }.items():
        assert words in browser.text(address), address
    assert "how many are well is being counted" in browser.text("/jobs")
    assert slow.counted == []
    slow.go.set()
    own.service._board._count._thread.join(60)  # type: ignore[union-attr]
    assert "slots came due" in browser.text("/")
    changes, _ = own.service.watcher.changes.since(position)
    assert told(changes or (), frozenset(["alarms"])) == {"topics": ["alarms"], "runs": []}, "open pages follow"


def test_hours_that_take_long_are_counted_one_at_a_time_the_newest_first(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, browser = SlowCount(own, monkeypatch), Browser(own)
    monkeypatch.setattr("solocron.service.board.counting._AT_ONCE", -1.0)
    slow.go.set()
    assert "slots came due" in browser.text("/")
    hours = [since for since, until in slow.counted if until - since == HOUR]
    assert len(hours) >= 23
    assert hours[:23] == sorted(hours[:23], reverse=True)


def test_a_count_that_fails_is_told_and_begun_anew(own: World, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser(own)

    def away(*args: Any, **more: Any) -> Any:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(own.service._clients.reading().store, "tally_by_time", away)
        assert browser.get("/").status == 503
    assert "slots came due" in browser.text("/")
