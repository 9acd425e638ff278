"""The published suite of `KeyStore`: what an adapter of the swap family must do, before a store is built on it.

    class TestMyKeys(KeyStoreConformance):
        @pytest.fixture
        def make_keys(self, server):
            prefix = server.fresh_prefix()
            return lambda namespace="default": MyKeys(server.url, prefix, namespace=namespace)

`make_keys()` returns a new client each time, all of one fresh world. Run `StoreConformance` on a `SwapStore` next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.stores.swap.key_store import ABSENT, EXISTS, Condition, Item, KeyStore, Span, Stale, Swapped
from solocron.stores.swap.layout import NOTIFY
from solocron.testing.conformance.rivals import race

__all__ = ["KeyClients", "KeyStoreConformance", "MakeKeys"]

MakeKeys = Callable[..., KeyStore]
"""Makes a new client of one world: `make_keys()`, or `make_keys(namespace="other")`."""

NAMES = ("", "a", "a b", "a!", "a/b", "a0", "b\tc\nd", "Zürich ☂", "ערב", "東京", "🎉", "' \" ` \\ % _ ; --", "a\x01b")
"""Last parts of keys that a server may fold, cut, trim or order in a way of its own."""
LONG = 30.0


class KeyClients:
    """Clients of one fresh world, opened when made, closed at the end of the test."""

    def __init__(self, make: MakeKeys) -> None:
        self._make = make
        self._all: list[KeyStore] = []

    def new(self, namespace: str = "default") -> KeyStore:
        """Return a further client, opened."""
        keys = self._make() if namespace == "default" else self._make(namespace=namespace)
        keys.open()
        self._all.append(keys)
        return keys

    def close(self) -> None:
        """Close them all."""
        for keys in self._all:
            keys.close()


class KeyStoreConformance:
    """Subclass it, supply `make_keys`."""

    @pytest.fixture
    def make_keys(self) -> MakeKeys:
        """Override this: a function that makes a new client of the test's own world."""
        raise NotImplementedError("supply a fixture `make_keys` that returns a function making clients")

    @pytest.fixture
    def clients(self, make_keys: MakeKeys) -> Iterator[KeyClients]:
        """The clients of one test."""
        clients = KeyClients(make_keys)
        yield clients
        clients.close()

    # --- values

    def test_what_was_written_is_read_by_every_client(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        values = {f"k/{name}": f"value of {name} ä🎉\n\x01" for name in NAMES}
        _done(a, values)
        found = b.fetch([*values, "k/missing"]).items
        assert {key: item.value for key, item in found.items()} == values
        assert all(item.key == key for key, item in found.items())

    def test_an_empty_value_is_a_value(self, clients: KeyClients) -> None:
        a = clients.new()
        _done(a, {"k": ""})
        assert a.fetch(["k"]).items["k"].value == ""

    def test_a_value_as_large_as_the_limit_comes_back_whole(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        large = "x" * min(a.limits.value, 1_000_000)
        _done(a, {"k": large})
        assert b.fetch(["k"]).items["k"].value == large

    def test_a_deleted_key_is_gone_and_deleting_it_again_is_no_error(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        _done(a, {"k": "v"})
        _done(b, {"k": None})
        assert "k" not in a.fetch(["k"]).items
        _done(a, {"k": None, "never there": None, "l": "v"})
        assert list(a.fetch(["k", "l"]).items) == ["l"]

    def test_namespaces_do_not_see_each_other(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new("other")
        _done(a, {"k": "mine"})
        assert b.fetch(["k"], [Span("", "\U0010ffff")]).items == {}
        _done(b, {"k": "theirs"}, {"k": ABSENT})
        assert a.fetch(["k"]).items["k"].value == "mine"

    # --- checks

    def test_each_check_holds_or_not(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        mark = _done(a, {"there": "1", "other": "1"}).marks["there"]
        cases: tuple[tuple[dict[str, Condition], bool], ...] = (
            ({"there": EXISTS}, True),
            ({"there": mark}, True),
            ({"missing": ABSENT}, True),
            ({"there": EXISTS, "missing": ABSENT, "other": EXISTS}, True),
            ({"there": ABSENT}, False),
            ({"missing": EXISTS}, False),
            ({"missing": mark}, False),
        )
        for number, (checks, holds) in enumerate(cases):
            written = f"w{number}"
            reply = b.commit(checks, {written: "x"})
            assert isinstance(reply, Swapped if holds else Stale), checks
            assert (written in a.fetch([written]).items) is holds, checks
        _done(b, {"there": "2"})
        assert isinstance(a.commit({"there": mark}, {"there": "3"}), Stale)
        assert b.fetch(["there"]).items["there"].value == "2"

    def test_a_key_is_checked_and_written_in_one_commit(self, clients: KeyClients) -> None:
        a = clients.new()
        first = _done(a, {"k": "1"}, {"k": ABSENT}).marks["k"]
        second = _done(a, {"k": "2"}, {"k": first}).marks["k"]
        _done(a, {"k": "3"}, {"k": EXISTS})
        assert isinstance(a.commit({"k": second}, {"k": "4"}), Stale)
        assert isinstance(a.commit({"k": ABSENT}, {"k": "4"}), Stale)
        third = a.fetch(["k"]).items["k"].mark
        _done(a, {"k": None}, {"k": third})
        assert isinstance(a.commit({"k": third}, {"k": None}), Stale)

    def test_one_stale_check_stops_every_write(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        marks = _done(a, {f"k{i}": "old" for i in range(5)}).marks
        _done(b, {"k3": "new"})
        checks = {key: marks[key] for key in marks} | {"k9": ABSENT}
        reply = a.commit(checks, {f"k{i}": "mine" for i in range(5)} | {"k9": "mine"})
        assert isinstance(reply, Stale)
        assert reply.keys in (None, frozenset({"k3"}))
        found = b.fetch([*(f"k{i}" for i in range(5)), "k9"]).items
        assert {item.value for item in found.values()} == {"old", "new"}
        assert "k9" not in found

    def test_every_stale_key_is_named_where_the_server_tells(self, clients: KeyClients) -> None:
        a = clients.new()
        marks = _done(a, {"i": "1", "j": "1", "k": "1"}).marks
        _done(a, {"i": "2", "k": None})
        reply = a.commit({**marks, "j": ABSENT, "m": ABSENT, "n": EXISTS}, {"x": "1"})
        assert isinstance(reply, Stale)
        assert reply.keys in (None, frozenset({"i", "j", "k", "n"}))

    def test_a_commit_without_checks_writes_over_whatever_is_there(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        _done(a, {"k": "1"})
        _done(b, {"k": "2"})
        assert a.fetch(["k"]).items["k"].value == "2"

    # --- marks

    def test_no_mark_comes_a_second_time(self, clients: KeyClients) -> None:
        """Not for equal values, and not after a deletion: a client may sleep through both."""
        a, b = clients.new(), clients.new()
        marks = []
        for i in range(6):
            keys = a if i % 2 else b
            marks.append(_done(keys, {"k": "same"}).marks["k"])
            assert b.fetch(["k"]).items["k"].mark == marks[-1]
            if i % 3 == 2:
                _done(keys, {"k": None})
        assert len(set(marks)) == 6
        for mark in marks:
            assert isinstance(a.commit({"k": mark}, {"k": "late"}), Stale)

    def test_a_mark_stays_while_the_key_is_not_written(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        mark = _done(a, {"k": "v", "l": "v"}).marks["k"]
        _done(b, {"l": "w"}, {"k": EXISTS})
        _done(b, {"m": "w"}, {"k": mark})
        assert a.fetch(["k"]).items["k"].mark == mark
        assert a.fetch((), [Span("k", "l")]).pages[0][0].mark == mark

    # --- spans

    def test_a_span_is_half_open_and_in_the_order_of_code_points(self, clients: KeyClients) -> None:
        a = clients.new()
        keys = sorted(f"s/{name}" for name in NAMES)
        _done(a, dict.fromkeys([*keys, "r/x", "t/x", "s", "s0"], "v"))
        (page,) = a.fetch((), [Span.below("s/")]).pages
        assert _keys(page) == keys
        for low, high in ((0, 0), (0, 1), (3, 4), (3, len(keys) - 1), (len(keys) - 2, len(keys) - 1)):
            (page,) = a.fetch((), [Span(keys[low], keys[high])]).pages
            assert _keys(page) == keys[low:high]
        (page,) = a.fetch((), [Span.below("s/", after=keys[4], limit=2)]).pages
        assert _keys(page) == keys[5:7]

    def test_a_span_backwards_begins_at_its_upper_end(self, clients: KeyClients) -> None:
        a = clients.new()
        keys = sorted(f"s/{name}" for name in NAMES)
        _done(a, dict.fromkeys([*keys, "r/x", "t/x"], "v"))
        (page,) = a.fetch((), [Span("s/", "s0", reverse=True)]).pages
        assert _keys(page) == keys[::-1]
        (page,) = a.fetch((), [Span(keys[2], keys[7], 3, reverse=True)]).pages
        assert _keys(page) == keys[6:3:-1]

    def test_spans_and_keys_come_in_one_reply(self, clients: KeyClients) -> None:
        a = clients.new()
        _done(a, {"p/1": "a", "p/2": "b", "q/1": "c", "k": "d"})
        found = a.fetch(["k", "none"], [Span.below("q/"), Span.below("p/", limit=1), Span.below("none/")])
        assert [[item.value for item in page] for page in found.pages] == [["c"], ["a"], []]
        assert {key: item.value for key, item in found.items.items()} == {"k": "d"}

    def test_a_bare_span_has_the_keys(self, clients: KeyClients) -> None:
        a = clients.new()
        _done(a, {"p/1": "a", "p/2": "b"})
        (page,) = a.fetch((), [Span.below("p/", bare=True)]).pages
        assert _keys(page) == ["p/1", "p/2"]

    def test_a_long_span_comes_whole(self, clients: KeyClients) -> None:
        """However many round trips that takes; `limit` cuts it exactly."""
        a = clients.new()
        keys = [f"p/{i:04}" for i in range(1_300)]
        size = min(a.limits.keys, 100)
        for start in range(0, len(keys), size):
            _done(a, dict.fromkeys(keys[start : start + size], "v"))
        (page,) = a.fetch((), [Span.below("p/")]).pages
        assert _keys(page) == keys
        (page,) = a.fetch((), [Span("p/", "p0", 1_201, reverse=True)]).pages
        assert _keys(page) == keys[:98:-1]

    # --- limits and races

    def test_a_commit_as_large_as_the_limit_is_written(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        most = min(a.limits.keys, 1_000)
        written = {f"k{i:04}": "v" for i in range(most - most // 4)}
        checks = {f"c{i:04}": ABSENT for i in range(most // 4)} | dict.fromkeys(list(written)[:10], ABSENT)
        _done(a, written, checks)
        (page,) = b.fetch((), [Span("k", "l", bare=True)]).pages
        assert _keys(page) == list(written)
        _done(b, dict.fromkeys(written), dict.fromkeys(list(written)[:10], EXISTS))
        assert a.fetch((), [Span("k", "l")]).pages[0] == []

    def test_of_twenty_writers_one_wins(self, clients: KeyClients) -> None:
        many = [clients.new() for _ in range(20)]
        mark = _done(many[0], {"k": "free"}).marks["k"]

        def take(me: int) -> bool:
            return isinstance(many[me].commit({"k": mark}, {"k": str(me), f"own/{me}": "1"}), Swapped)

        won = race([partial(take, i) for i in range(20)])
        assert won.count(True) == 1
        winner = str(won.index(True))
        found = many[0].fetch(["k"], [Span.below("own/")])
        assert found.items["k"].value == winner
        assert _keys(found.pages[0]) == [f"own/{winner}"]

    def test_a_check_is_as_strong_as_a_write(self, clients: KeyClients) -> None:
        """Of two commits that each check what the other deletes, one is refused: no write skew."""
        a, b = clients.new(), clients.new()
        for i in range(20):
            _done(a, {"x": "1", "y": "1"})
            replies = race(
                [
                    lambda: a.commit({"x": EXISTS}, {"y": None}),
                    lambda: b.commit({"y": EXISTS}, {"x": None}),
                ][:: 1 if i % 2 else -1]
            )
            assert sorted(type(reply).__name__ for reply in replies) == ["Stale", "Swapped"]
            assert len(a.fetch(["x", "y"]).items) == 1

    def test_a_commit_looks_for_a_prefix(self, clients: KeyClients) -> None:
        a = clients.new()
        assert _done(a, {"k": "1"}, look="p/").found in (False, None)
        _done(a, {"p/1": "v"})
        assert _done(a, {"k": "2"}, look="p/").found in (True, None)
        assert _done(a, {"k": "3"}, look="p").found in (True, None)
        assert _done(a, {"k": "4"}, look="p/2").found in (False, None)

    def test_a_commit_reads_a_key_on_the_way(self, clients: KeyClients) -> None:
        """The reply has the key as of the commit or later; a server that does not read it says so."""
        a, b = clients.new(), clients.new()
        reply = a.commit({}, {"k": "1"}, also="o")
        assert isinstance(reply, Swapped)
        assert reply.also is None
        assert reply.server in ("", a.ask_time())
        mark = _done(b, {"o": "v"}).marks["o"]
        reply = a.commit({}, {"k": "2"}, also="o", look="o")
        assert isinstance(reply, Swapped)
        assert not reply.server or reply.also == Item("o", "v", mark)
        assert isinstance(a.commit({"k": ABSENT}, {"k": "3"}, also="o"), Stale)

    # --- time and server

    def test_time_counts_microseconds_and_never_goes_back(self, clients: KeyClients) -> None:
        a, b = clients.new(), clients.new()
        times = []
        for _ in range(20):
            for keys in (a, b):
                keys.ask_time()
                times.append(keys.now())
        assert times == sorted(times)
        assert 2**50 < times[0] < 2**52
        assert times[-1] - times[0] < 60 * SECOND

    def test_every_client_sees_one_server(self, clients: KeyClients) -> None:
        a, b, other = clients.new(), clients.new(), clients.new("other")
        server = a.ask_time()
        assert server == b.ask_time() == other.ask_time() == a.fetch([]).server
        assert 0 < len(server) <= 80
        assert " " not in server

    def test_a_commit_that_is_meant_for_another_server_writes_nothing(self, clients: KeyClients) -> None:
        a = clients.new()
        reply = a.commit({}, {"k": "v"}, server="another")
        assert isinstance(reply, Stale)
        assert reply.moved
        assert a.fetch(["k"]).items == {}
        assert isinstance(a.commit({}, {"k": "v"}, server=a.ask_time()), Swapped)

    # --- notifications

    def test_a_notification_is_heard_from_where_the_client_left_off(self, clients: KeyClients) -> None:
        a, b = _notifying(clients), _notifying(clients)
        place = a.position()
        _done(b, {NOTIFY: "b 1"})
        _done(b, {"k": "v", NOTIFY: "b 2"})
        heard: list[str | None] = []
        while not {"b 2", None} & set(heard):
            place, values = a.wait(place, LONG)
            assert values, "nothing was heard"
            heard += values
        assert heard in (["b 1", "b 2"], [None, "b 2"], ["b 2"]) or None in heard
        assert a.wait(place, 0.0)[1] in ([], ())

    def test_a_waiting_client_is_woken(self, clients: KeyClients) -> None:
        a, b = _notifying(clients), _notifying(clients)
        place = a.position()
        heard, _ = race([partial(_heard, a, place), partial(_notified, b)])
        assert heard

    def test_closing_ends_a_wait(self, clients: KeyClients) -> None:
        a = _notifying(clients)
        place = a.position()
        heard, _ = race([partial(_heard, a, place), partial(_closed, a)])
        assert heard == []
        a.open()
        assert a.fetch(["k"]).items == {}

    def test_it_says_what_it_is(self, clients: KeyClients) -> None:
        a = clients.new()
        _done(a, {"k": "v"})
        assert "://" in a.url
        assert a.capabilities.why
        assert all(check.remedy for check in a.checks() if check.level != "OK")
        assert "default" in a.namespaces()


def _done(
    keys: KeyStore,
    writes: Mapping[str, str | None],
    checks: Mapping[str, Condition] | None = None,
    *,
    look: str | None = None,
) -> Swapped:
    reply = keys.commit(checks or {}, writes, look=look)
    assert isinstance(reply, Swapped), reply
    return reply


def _keys(page: Sequence[Item]) -> list[str]:
    return [item.key for item in page]


def _notifying(clients: KeyClients) -> KeyStore:
    keys = clients.new()
    if not keys.capabilities.notifies:
        pytest.skip("this key store says that it cannot notify")
    return keys


def _heard(keys: KeyStore, place: Any) -> list[str | None]:
    return list(keys.wait(place, LONG)[1])


def _notified(keys: KeyStore) -> list[str | None]:
    _done(keys, {NOTIFY: "b 1"})
    return []


def _closed(keys: KeyStore) -> list[str | None]:
    keys.close()
    return []
