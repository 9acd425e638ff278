"""Redis stands the fault suite; and what only Redis does: forgotten scripts, a full memory, foreign keys, no disk.

Every test says what is in the store afterwards: the whole of a commit or nothing of it, and once.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import redis

from solocron.clock import SECOND
from solocron.errors import StoreRefused, StoreUnavailable
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import renew
from solocron.stores.contract import All, HeldBy, Named, Store, Verdict
from solocron.stores.redis import RedisStore
from solocron.testing.conformance.kit import (
    add_hold,
    everything,
    get,
    hold,
    job,
    log,
    names,
    note,
    patience,
    put,
    record,
    session,
    take,
    verdicts,
    write,
)
from solocron.testing.conformance.rivals import processes
from solocron.testing.faults import StoreFaults, Victim
from solocron.testing.faults.victim import PASSWORD, claim, finish, once
from solocron.testing.proxy import ChaosProxy
from tests.servers import Redis
from tests.servers.fixtures import StartServer
from tests.servers.opening import opened_as

opened_store = partial(opened_as, RedisStore)
SHORT = timedelta(seconds=1.2)
"""A lease whose calls give up after 0.2 s."""
PREFIX = "{solocron:default}:"


@pytest.fixture
def url(redis_server: Redis) -> str:
    return redis_server.fresh_url()


@pytest.fixture
def raw(url: str) -> Iterator[redis.Redis]:
    """Redis itself, without the store."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        yield client


@pytest.fixture
def store(url: str) -> Iterator[RedisStore]:
    with opened_store(url) as store:
        yield store


@pytest.fixture
def proxy(url: str) -> Iterator[ChaosProxy]:
    with ChaosProxy.for_url(url) as proxy:
        yield proxy


class RedisVictim(Victim):
    def __init__(self, server: Redis, url: str) -> None:
        self.server = server
        self.url = url

    def make(self, url: str, *, lease: timedelta) -> Store:
        return RedisStore(url, lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        with redis.Redis.from_url(self.url) as client:
            client.acl_setuser("canary", enabled=True, passwords=[f"+{PASSWORD}"], keys="*", channels="*",
                               categories=["+@all"])  # fmt: skip
            try:
                yield self.url.replace("://", f"://canary:{PASSWORD}@")
            finally:
                client.acl_deluser("canary")

    def refused(self, guarded: str) -> list[str]:
        return [guarded.replace("canary:", "nobody:"), guarded.replace(PASSWORD, f"{PASSWORD}wrong")]

    def broken(self, guarded: str) -> list[str]:
        user, path = guarded.rpartition("@")[0], guarded.rpartition("/")[2]
        return [f"{user}@127.0.0.1:1/{path}", f"{user}@no.such.host.invalid/{path}"]


class TestRedis(StoreFaults):
    """Every request has a number: what became of it can be asked, and one that never arrived be called off."""

    lost_reply = Verdict.APPLIED
    lost_request = Verdict.APPLIED

    @pytest.fixture
    def victim(self, redis_server: Redis, url: str) -> Victim:
        return RedisVictim(redis_server, url)


class TestReplies:
    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_a_reply_that_is_lost_after_the_commit_is_asked_for_again(
        self, url: str, store: RedisStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND), job("k", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            applied = far.update(everything(), once(lambda: proxy.cut_after(0, "replies"), claim))
            assert {r.name: (r.verdict, r.answer) for r in applied.results} == {
                "j": (Verdict.APPLIED, "mine"),
                "k": (Verdict.APPLIED, "mine"),
            }
            assert (far.statements["swap"], far.statements["ask"]) == (1, 1)
        assert get(store, Kind.JOB, "j").fence == get(store, Kind.JOB, "k").fence == 1
        assert sorted(r.run for r in log(store)) == ["j@0", "k@0"]

    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_a_request_that_never_arrived_is_called_off_and_made_again(
        self, url: str, store: RedisStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url)) as far:
            applied = far.update(everything(), once(lambda: proxy.cut_after(0, "requests"), claim))
            assert verdicts(applied) == {"j": Verdict.APPLIED}
            assert (far.statements["swap"], far.statements["ask"]) == (2, 1)
        assert get(store, Kind.JOB, "j").fence == 1
        assert [r.run for r in log(store)] == ["j@0"]

    def test_an_outcome_that_cannot_be_learnt_is_unknown(self, url: str, store: RedisStore, proxy: ChaosProxy) -> None:
        """Replies vanish for longer than the client may wait: it must not say yes, and it must not say no."""
        put(store, job("j", due_at=store.clock() - SECOND))
        with opened_store(proxy.through(url), lease=SHORT) as far:
            applied = far.update(everything(), once(proxy.drop_replies, claim))
            assert verdicts(applied) == {"j": Verdict.UNKNOWN}
            assert applied.alive
            proxy.heal()
            assert get(far, Kind.JOB, "j").fence == 1  # here it had arrived
            assert names(far.read(HeldBy("s"))) == ["j"]  # which is how its node will learn of it

    def test_of_a_renewal_that_was_not_answered_no_time_is_told(
        self, url: str, store: RedisStore, proxy: ChaosProxy
    ) -> None:
        beat = lambda doc, now: renew(doc, now=now)  # noqa: E731 - reads as what it is
        put(store, session("s", expires_at=store.clock() + SECOND))
        with opened_store(proxy.through(url), lease=SHORT) as far:
            write(far, Kind.SESSION, "s", beat)
            proxy.drop_replies()
            applied = write(far, Kind.SESSION, "s", beat)
            assert (verdicts(applied), applied.now) == ({"s": Verdict.UNKNOWN}, 0)

    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_a_request_that_was_called_off_does_nothing_however_late_it_arrives(
        self, store: RedisStore, raw: redis.Redis
    ) -> None:
        put(store, job("j"))
        (row,) = store._access.fetch_named(Kind.JOB, ["j"], "").rows
        late = ["", "job", "0", "1", "", "", "", "delete", "j", row.mark, "0", "0"]
        assert store._caller.run("ask", ("node.1", "7", "60000")) == b"void"
        assert store._caller.run("swap", ("node.1", "7", "60000", *late)) == b"void"
        assert store._caller.run("swap", ("node.1", "6", "60000", *late)) == b"void"
        assert get(store, Kind.JOB, "j") is not None
        assert store._caller.run("swap", ("node.1", "8", "60000", *late)).startswith(b"a ")
        assert get(store, Kind.JOB, "j") is None

    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_the_same_request_twice_has_one_effect_and_one_answer(self, store: RedisStore) -> None:
        request = (
            "node.1",
            "1",
            "60000",
            "",
            "key",
            "0",
            "1",
            "",
            "",
            "",
            "small",
            "n",
            "",
            "0",
            "{}",
            '{"body":{}}',
            "",
            "",
            "0",
        )
        first = store._caller.run("swap", request)
        assert first.startswith(b"a ")
        assert store._caller.run("swap", request) == first
        assert store._caller.run("ask", ("node.1", "1", "60000")) == first

    def test_a_read_whose_connection_is_cut_is_simply_made_again(
        self, url: str, store: RedisStore, proxy: ChaosProxy
    ) -> None:
        put(store, job("j"))
        with opened_store(proxy.through(url)) as far:
            proxy.cut()
            assert get(far, Kind.JOB, "j") == job("j")
            proxy.cut_after(0, "replies")
            assert get(far, Kind.JOB, "j") == job("j")

    def test_a_silent_server_costs_less_than_a_third_of_the_lease(self, url: str, proxy: ChaosProxy) -> None:
        with opened_store(proxy.through(url), lease=SHORT) as far:
            assert 2 * far._link.timeout <= SHORT.total_seconds() / 3
            proxy.blackhole()
            with pytest.raises(StoreUnavailable):
                far.read(All(Kind.JOB))
            proxy.heal()
            assert far.read(All(Kind.JOB)) == ()

    def test_what_was_done_before_the_server_went_silent_is_told(
        self, url: str, store: RedisStore, proxy: ChaosProxy
    ) -> None:
        """Of two portions the first is in; the second is worth repeating, and the update must not seem complete."""
        many = [f"n{i:03}" for i in range(400)]
        put(store, *(note(Kind.KEY, name) for name in many))
        seen: list[str] = []

        def change(doc: Any, now: int) -> Change:
            seen.append(doc.name)
            if len(seen) == 300:
                proxy.blackhole()
            return Change(note(Kind.KEY, doc.name, {"x": 1}))

        with opened_store(proxy.through(url), lease=SHORT) as far:
            applied = far.update(All(Kind.KEY), change)
            found = list(verdicts(applied).values())
            assert found == [Verdict.APPLIED] * 250 + [Verdict.UNKNOWN] * 150
            proxy.heal()

    def test_what_could_not_even_be_fetched_is_not_forgotten(
        self, url: str, store: RedisStore, proxy: ChaosProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A sweep that reached only some of a dead session's holds must not look like one that reached all."""
        many = [f"n{i:03}" for i in range(400)]
        put(store, *(note(Kind.LOCK, name, by="dead") for name in many))
        with opened_store(proxy.through(url), lease=SHORT) as far:
            swap = far._access.swap

            def swap_and_go_silent(*args: Any, **more: Any) -> str | None:
                answer = swap(*args, **more)
                proxy.blackhole()
                return answer

            monkeypatch.setattr(far._access, "swap", swap_and_go_silent)
            applied = far.update(HeldBy("dead", Kind.LOCK), lambda doc, now: Change(None))
            assert list(verdicts(applied).values()) == [Verdict.APPLIED] * 250 + [Verdict.CONTENDED] * 150
            proxy.heal()
        assert names(store.read(HeldBy("dead", Kind.LOCK))) == many[250:]

    def test_a_call_that_is_interrupted_before_its_reply_is_read_discards_its_connection(
        self, url: str, proxy: ChaosProxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with opened_store(proxy.through(url)) as far:
            put(far, note(Kind.KEY, "first", {"mine": 1}), note(Kind.KEY, "second", {"mine": 2}))
            proxy.delay(0.2)
            with monkeypatch.context() as patched:
                patched.setattr(redis.Connection, "read_response", raise_interrupt)
                with pytest.raises(Interrupt):
                    get(far, Kind.KEY, "first")
            assert get(far, Kind.KEY, "second").body == {"mine": 2}

    @pytest.mark.usefixtures("store")
    def test_an_interrupted_call_discards_its_connection(self, url: str, proxy: ChaosProxy) -> None:
        """A reply that no call waited for must not become the answer to the next question."""
        with opened_store(proxy.through(url)) as far:
            put(far, note(Kind.KEY, "first", {"mine": 1}), note(Kind.KEY, "second", {"mine": 2}))
            proxy.delay(0.3)
            with interrupted_after(0.05), pytest.raises(Interrupt):
                get(far, Kind.KEY, "first")
            proxy.delay(0)
            for _ in range(5):
                assert get(far, Kind.KEY, "second").body == {"mine": 2}
                assert get(far, Kind.KEY, "first").body == {"mine": 1}


class TestTheServer:
    def test_scripts_that_the_server_forgot_are_sent_again(self, store: RedisStore, raw: redis.Redis) -> None:
        put(store, job("j", due_at=store.clock() - SECOND))
        applied = store.update(everything(), once(raw.script_flush, claim))
        assert verdicts(applied) == {"j": Verdict.APPLIED}
        raw.script_flush()
        assert names(store.read(HeldBy("s"))) == ["j"]

    def test_a_signal_to_a_server_that_is_away_is_no_error(self, start_server: StartServer) -> None:
        server = start_server(Redis)
        with opened_store(server.url, lease=SHORT) as store:
            server.kill9()
            store.signal()
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                store.read(All(Kind.JOB))

    def test_without_an_append_only_file_kill_9_loses_everything_and_it_is_noticed(
        self, start_server: StartServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = start_server(Redis, settings={"appendonly": "no"})
        with opened_store(server.url) as store:
            assert store.capabilities.tier == "C"
            assert "loses every write since the last snapshot" in caplog.text
            put(store, session("s", expires_at=store.clock() + 60 * SECOND), job("j", due_at=store.clock() - SECOND))
            (before,) = store.update(everything(), claim, session="s").results
            server.kill9()
            server.restart()
            caplog.clear()
            # The claim is gone, and so is the session: its holder is told, and starts nothing more.
            assert store.update(everything(), claim, session="s").alive is False
            assert get(store, Kind.JOB, "j") is None
            (line,) = [line for line in caplog.records if line.levelno == logging.ERROR]
            assert "lost everything" in line.getMessage()
            (found,) = [check for check in store.checks() if check.name == "kept writes"]
            assert (found.level, bool(found.remedy)) == ("FAIL", True)
            # It goes on with what the nodes declare anew.
            put(store, job("j", due_at=store.clock() - SECOND))
            assert take(store, "s2") == ["j"]
            assert before.verdict is Verdict.APPLIED

    def test_without_an_append_only_file_kill_9_goes_back_to_the_snapshot_and_it_is_noticed(
        self, start_server: StartServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = start_server(Redis, settings={"appendonly": "no"})
        with opened_store(server.url) as store:
            put(store, job("j"))
            with redis.Redis.from_url(server.url) as client:
                client.save()
            for fence in range(1, 4):
                write(store, Kind.JOB, "j", lambda doc, now, fence=fence: Change(replace(doc, fence=fence)))
            server.kill9()
            server.restart()
            assert get(store, Kind.JOB, "j").fence == 0
            assert "lost at least 3 commits" in caplog.text


class TestAFullServer:
    def test_it_says_so_once_and_nothing_is_half_written(self, start_server: StartServer) -> None:
        server = start_server(Redis)
        with (
            opened_store(server.url) as store,
            redis.Redis.from_url(server.url, decode_responses=True) as raw,
        ):
            put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(20)))
            put(store, job("old"), records=(record("old@1", at=1, status=Status.LOST),))
            put(store, job("held", active=(hold("held@1", "s"),)), records=(record("held@1", at=2),))
            before = everything_in(raw)
            raw.config_set("maxmemory", "1mb")
            for which, change in ((everything(), claim), (Named(Kind.JOB, ("held",)), finish), (All(Kind.JOB), gone)):
                with pytest.raises(StoreRefused, match=r"is full .* nothing was written"):
                    store.update(which, change)
                assert everything_in(raw) == before
            assert names(store.read(HeldBy("s"))) == ["held"]
            assert store.prune(before=2, limit=10) == 1, "making room must be possible where there is none"
            raw.config_set("maxmemory", "0")
            assert len(take(store, "s")) == 20


class TestForeignKeys:
    """Someone else wrote under our hash tag: the call says which key, and nothing is half written."""

    @pytest.mark.parametrize(
        "key",
        ["job:b", "run:b@1 00000001", "log:b", "due:7:default:h", "heads:default", "held:job:s", "status:succeeded"],
    )
    def test_a_spoiled_key_of_one_document_blocks_that_document_alone(
        self, store: RedisStore, raw: redis.Redis, key: str
    ) -> None:
        mine = ("due", "heads", "held", "status")
        put(store, job("a", handler="other", pool="other"), job("b", due_at=store.clock() - SECOND))
        raw.delete(PREFIX + key)
        raw.xadd(PREFIX + key, {"foreign": "1"})
        before = everything_in(raw)
        written = "a" if key.startswith(mine) else "c"
        if written == "c":
            put(store, job("c"))
            before = everything_in(raw)

        def change(doc: Any, now: int) -> Change:
            if doc.name != "b":
                return Change(doc)
            ended = record("b@1", status=Status.SUCCEEDED, at=now)
            return Change(replace(doc, active=(hold("b@1", "s"),), due_at=None), (ended,))

        applied = store.update(Named(Kind.JOB, ("b", written)), change)
        found = {r.name: r for r in applied.results}
        assert found[written].verdict is Verdict.APPLIED
        assert found["b"].verdict is Verdict.BLOCKED
        assert "WRONGTYPE" in (found["b"].error or "") or "already" in (found["b"].error or "")
        # Being set aside is all that happened to it.
        aside = {f"{PREFIX}blocked", f"{PREFIX}job:b", f"{PREFIX}due:7:default:h", f"{PREFIX}heads:default"}
        counters = {f"{PREFIX}commits"}
        now = everything_in(raw)
        assert {k: v for k, v in now.items() if k not in aside | counters} == {
            k: v for k, v in before.items() if k not in aside | counters
        }

    @pytest.mark.parametrize(
        "key", ["names:job", "commits", "notifications", "blocked", "holders", "reservations", "spans"]
    )
    def test_a_spoiled_key_of_the_namespace_refuses_the_whole_call(
        self, store: RedisStore, raw: redis.Redis, key: str
    ) -> None:
        put(store, job("a", due_at=store.clock() - SECOND))
        raw.delete(PREFIX + key)
        raw.xadd(PREFIX + key, {"foreign": "1"})
        before = everything_in(raw)
        with pytest.raises(StoreRefused, match="WRONGTYPE"):
            store.update(Named(Kind.JOB, ("a",)), lambda doc, now: Change(replace(doc, due_at=None)))
        assert everything_in(raw) == before


class TestBeginnings:
    def test_five_processes_may_begin_at_once_on_an_empty_server(self, url: str) -> None:
        def begin(number: int) -> list[str]:
            with opened_store(url) as store:
                mine = session(f"s{number}", expires_at=store.clock() + 60 * SECOND)
                put(store, mine)
                for name in ("a", "b", "c"):
                    write(store, Kind.JOB, name, lambda doc, now: define_once(doc, number))
                return sorted(doc.name for doc in store.read(All(Kind.JOB)))

        made = processes([lambda number=number: begin(number) for number in range(5)])
        assert made == [["a", "b", "c"]] * 5
        with opened_store(url) as store:
            assert names(store.read(All(Kind.SESSION))) == [f"s{i}" for i in range(5)]
            for name in ("a", "b", "c"):
                assert get(store, Kind.JOB, name).fence == 1, "one of the five defined it"

    def test_offered_documents_are_passed_over_and_come_back(self, url: str, store: RedisStore) -> None:
        put(store, *(job(f"j{i}", due_at=store.clock() - SECOND) for i in range(4)))
        which = replace(everything(), limit=2)
        with opened_store(url) as other:
            rival: list[list[str]] = []

            def change(doc: Any, now: int) -> Change | None:
                if not rival:
                    rival.append(take(other, "other", which))
                return add_hold("s")(doc, now)

            assert names_of(store.update(which, change)) == ["j0", "j1"]
            assert rival == [["j2", "j3"]]
            # A client that dies with documents in its hands does not keep them from others for long.
            put(store, job("k", due_at=store.clock() - SECOND))
            store._access.fetch_due(everything(), "", reserve=True)
            first = other.update(everything(), claim)
            assert first.results == ()
            assert first.next_due is not None
            assert 0 < first.next_due - first.now <= SECOND // 4
            for _ in patience():
                if names_of(other.update(everything(), claim)) == ["k"]:
                    break


# --- helpers


class Interrupt(BaseException):
    """Ctrl-C, or a cancelled thread."""


def raise_interrupt(*args: object, **more: object) -> None:
    raise Interrupt


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """An interrupt in the middle of whatever the main thread then does."""

    def raise_it(number: int, frame: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def gone(doc: Any, now: int) -> Change:
    return Change(None)


def define_once(doc: Job | Absent, number: int) -> Change | None:
    return Change(job(doc.name, fence=1, payload=number)) if isinstance(doc, Absent) else None


def names_of(applied: Any) -> list[str]:
    return [result.name for result in applied.results if result.verdict is Verdict.APPLIED]


def everything_in(raw: redis.Redis) -> dict[str, Any]:
    """Every key of the database with its value, but for the answers that are kept for a while."""
    found: dict[str, Any] = {}
    for key in raw.scan_iter():
        match raw.type(key):
            case "string":
                found[key] = raw.get(key)
            case "hash":
                found[key] = raw.hgetall(key)
            case "zset":
                found[key] = raw.zrange(key, 0, -1, withscores=True)
            case "set":
                found[key] = raw.smembers(key)
            case other:
                found[key] = other
    return {key: value for key, value in found.items() if ":client:" not in key and ":handlers:" not in key}
