"""MongoDB stands the fault suite; and what only it does: write skew, standalone servers, places that are forgotten."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pymongo.client_session import ClientSession
from pymongo.errors import AutoReconnect, ServerSelectionTimeoutError
from pymongo.errors import ConfigurationError as DriverRefuses

from solocron.clock import SECOND
from solocron.errors import ConfigurationError, StoreRefused, StoreUnavailable
from solocron.model.change import Change, Kind
from solocron.model.documents.session import begin, bury
from solocron.stores.contract import All, ChangeFn, HeldBy, Store, Tier, Verdict
from solocron.stores.swap.key_store import ABSENT, EXISTS, Lost, Stale, Swapped
from solocron.stores.swap.mongodb import MongoStore
from solocron.stores.swap.mongodb.keys import MongoKeys
from solocron.stores.url import make_store, parse
from solocron.testing.conformance.kit import everything, get, job, patience, put, write
from solocron.testing.conformance.rivals import race
from solocron.testing.faults import StoreFaults, Victim
from solocron.testing.faults.victim import MINE, PASSWORD, claim
from tests.servers import MongoDB
from tests.servers.fixtures import StartServer

needs_server = pytest.mark.long
"""The server comes with Wine: `make test-mongodb`."""


class MongoVictim(Victim):
    def __init__(self, server: MongoDB) -> None:
        self.server = server
        self.url = server.fresh_url()

    def make(self, url: str, *, lease: timedelta) -> Store:
        return MongoStore(parse(url), lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        database = parse(self.url).path.strip("/")
        role = {"role": "readWrite", "db": database}
        with self.server.client() as client:
            client.get_database(database).command("createUser", "canary", pwd=PASSWORD, roles=[role])
        self.server.restart(settings={"auth": "", "keyFile": str(self.server.folder / "keyfile")})
        try:
            yield self.url.replace("://", f"://canary:{PASSWORD}@")
        finally:
            for name in ("auth", "keyFile"):
                del self.server.settings[name]
            self.server.restart()
            with self.server.client() as client:
                client.get_database(database).command("dropUser", "canary")

    @contextmanager
    def hurt_at_commit(self, fault: Callable[[], None], change: ChangeFn) -> Iterator[ChangeFn]:
        """The commit is a message of its own, after those of the writes."""
        real, faults = MongoKeys._apply, [fault]

        def hurt(keys: MongoKeys, collection: Any, compared: Any, free: Any, session: Any) -> None:
            real(keys, collection, compared, free, session)
            while session is not None and faults:
                faults.pop()()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MongoKeys, "_apply", hurt)
            yield change

    def refused(self, guarded: str) -> list[str]:
        return [guarded.replace("canary:", "unknown:"), guarded.replace(PASSWORD, f"{PASSWORD}wrong"), self.url]

    def broken(self, guarded: str) -> list[str]:
        user = guarded.rpartition("@")[0]
        return [f"{user}@127.0.0.1:1/db?directConnection=true", f"{user}@no.such.host.invalid/db?directConnection=true"]


@needs_server
class TestMongoDBFaults(StoreFaults):
    """The commit of a transaction is asked for again until its outcome is known."""

    lost_reply = Verdict.APPLIED
    lost_request = Verdict.APPLIED

    @pytest.fixture
    def victim(self, mongodb: MongoDB) -> Victim:
        return MongoVictim(mongodb)


@pytest.fixture
def store(mongodb: MongoDB) -> Iterator[MongoStore]:
    with closing(MongoStore(parse(mongodb.fresh_url()))) as store:
        store.open()
        yield store


def _keys(store: MongoStore) -> MongoKeys:
    assert isinstance(store._keys, MongoKeys)
    return store._keys


@needs_server
@pytest.mark.invariant("I5: no slot is lost")
def test_of_two_hundred_claims_none_is_committed_after_the_burial(mongodb: MongoDB) -> None:
    """Snapshots alone would let a claim and the burial of its session both commit: each reads what the other writes."""
    url = mongodb.fresh_url()
    with closing(MongoStore(parse(url))) as mine, closing(MongoStore(parse(url))) as sweeper:
        put(mine, *(job(f"j{i:03}", due_at=mine.clock() - SECOND) for i in range(200)))
        sweeper.open()
        for number in range(5):
            session = replace(MINE, name=f"s{number}")
            write(mine, Kind.SESSION, session.name, lambda doc, now, session=session: begin(doc, session, now=now))

            def sweep(name: str = session.name) -> None:
                write(sweeper, Kind.SESSION, name, lambda doc, now: bury(doc, now=now, reason="test"))
                sweeper.update(HeldBy(name), lambda doc, now: Change(replace(doc, active=())))

            def claims(name: str = session.name) -> None:
                while mine.update(everything(limit=1), claim, session=name).alive:
                    pass

            race([claims, sweep])
            assert sweeper.read(HeldBy(session.name)) == ()
        assert sweeper.holders() <= {"s"}


@needs_server
def test_a_key_that_is_only_checked_keeps_its_mark_and_its_value(store: MongoStore) -> None:
    keys = _keys(store)
    first = keys.commit({}, {"k": "v", "l": "v"})
    assert isinstance(first, Swapped)
    keys.commit({"k": EXISTS, "missing": ABSENT}, {"m": "1"})
    keys.commit({"k": first.marks["k"]}, {"m": "2", "n": "2"})
    found = keys.fetch(["k", "m", "missing"]).items
    assert (found["k"].value, found["k"].mark) == ("v", first.marks["k"])
    assert "missing" not in found
    assert found["m"].value == "2"


@needs_server
def test_a_commit_that_is_cut_off_before_its_end_did_nothing(
    store: MongoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = _keys(store)
    keys.commit({}, {"k": "1", "l": "1"})
    real = keys._apply

    def cut(*arguments: Any) -> None:
        real(*arguments)
        raise AutoReconnect("cut")

    monkeypatch.setattr(keys, "_apply", cut)
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        keys.commit({"k": EXISTS}, {"k": "2", "l": "2"})
    monkeypatch.undo()
    assert {item.value for item in keys.fetch(["k", "l"]).items.values()} == {"1"}
    assert isinstance(keys.commit({"k": ABSENT}, {"k": "3"}), Stale)


@needs_server
@pytest.mark.parametrize(
    "later",
    [
        ServerSelectionTimeoutError("no primary"),
        DriverRefuses("Sessions are not supported by this MongoDB deployment"),
    ],
)
def test_a_commit_that_was_sent_stays_unknown_whatever_the_next_try_says(
    store: MongoStore, monkeypatch: pytest.MonkeyPatch, later: Exception
) -> None:
    """It was told as "nothing was written" although it was, when no member was left to ask."""
    keys = _keys(store)
    real, tries = ClientSession.commit_transaction, 0

    def cut(session: ClientSession) -> None:
        nonlocal tries
        tries += 1
        if tries > 1:
            raise later
        real(session)
        raise AutoReconnect("cut")

    monkeypatch.setattr(ClientSession, "commit_transaction", cut)
    with pytest.raises(Lost, match=r"cut|Sessions"):
        keys.commit({"k": ABSENT}, {"k": "1", "l": "1"})
    monkeypatch.undo()
    assert tries > 1
    assert keys.fetch(["k"]).items["k"].value == "1"


@needs_server
def test_a_transaction_that_cannot_be_called_off_hides_no_error(
    store: MongoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that has just started has no sessions, which ended a loop of the node with an error of the driver."""
    keys = _keys(store)

    def cut(*arguments: Any) -> None:
        raise AutoReconnect("cut")

    def refuse(session: ClientSession) -> None:
        raise DriverRefuses("Sessions are not supported by this MongoDB deployment")

    monkeypatch.setattr(keys, "_apply", cut)
    monkeypatch.setattr(ClientSession, "abort_transaction", refuse)
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        keys.commit({"k": ABSENT}, {"k": "1", "l": "1"})


@needs_server
def test_a_commit_to_a_frozen_server_ends_within_a_third_of_the_lease(start_server: StartServer) -> None:
    """Calling its transaction off had no bound: it waited until the driver gave the server up."""
    if MongoDB.binary() is None:
        pytest.skip(MongoDB.hint)
    server = start_server(MongoDB)
    with closing(MongoStore(parse(server.fresh_url()), lease=timedelta(seconds=6))) as store:
        put(store, job("j"))
        keys = _keys(store)
        real = keys._apply

        def freeze(*arguments: Any) -> None:
            real(*arguments)
            server.freeze()
            raise AutoReconnect("cut")

        keys._apply = freeze  # type: ignore[method-assign]
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            keys.commit({"k": ABSENT}, {"k": "1", "l": "1"})
        took = time.monotonic() - began
        server.thaw()
    assert took < 2.0


@needs_server
def test_the_server_tells_its_version(mongodb: MongoDB) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", mongodb.version())


@needs_server
def test_the_keys_of_a_commit_whose_client_died_are_free_again_when_the_server_ends_it(mongodb: MongoDB) -> None:
    """A connection that breaks does not end a transaction; only its lifetime does, which is a minute by default."""
    with (
        closing(MongoStore(parse(mongodb.fresh_url()), lease=timedelta(seconds=30))) as store,
        mongodb.client() as client,
    ):
        put(store, job("j"))
        assert {check.name: check.level for check in store.checks()}["transactions"] == "WARN"
        client.admin.command({"setParameter": 1, "transactionLifetimeLimitSeconds": 10})
        try:
            assert {check.name: check.level for check in store.checks()}["transactions"] == "OK"
            with mongodb.client() as victim:
                # As by a node that is killed: this session stays open.
                session = victim.start_session()
                session.start_transaction()
                collection = _keys(store)._link.collection
                theirs = victim.get_database(collection.database.name).get_collection(collection.name)
                theirs.update_one({"_id": "default/d/job/j"}, {"$set": {"w": "theirs"}}, session=session)
                session._server_session = None  # closing the client would end it
            with pytest.raises(StoreUnavailable, match="too many commits under way"):
                put(store, job("j", due_at=SECOND))
            for _ in patience():
                with suppress(StoreUnavailable):
                    put(store, job("j", due_at=SECOND))
                    break
            assert get(store, Kind.JOB, "j") == job("j", due_at=SECOND)
        finally:
            client.admin.command({"setParameter": 1, "transactionLifetimeLimitSeconds": 60})


@needs_server
def test_a_standalone_server_is_refused_in_one_sentence(start_server: StartServer) -> None:
    class Alone(MongoDB):
        def command(self) -> list[str]:
            words = super().command()
            at = words.index("--replSet")
            return words[:at] + words[at + 2 :]

        def ask(self) -> None:
            with self.client() as client:
                client.admin.command("hello")

    if MongoDB.binary() is None:
        pytest.skip(MongoDB.hint)
    server = start_server(Alone)
    alone = MongoStore(parse(server.url))
    with closing(alone), pytest.raises(StoreRefused, match=r"standalone.*--replSet"):
        alone.open()


@needs_server
def test_doctor_shows_the_server_and_that_it_is_alone(store: MongoStore) -> None:
    put(store, job("j"))
    levels = {check.name: check.level for check in store.checks()}
    assert (levels["server"], levels["members"]) == ("OK", "WARN")
    assert store.capabilities.tier is Tier.A
    assert [one.name for one in store.read(All(Kind.JOB))] == [get(store, Kind.JOB, "j").name]


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("mongodb:///database", "no host is named"),
        ("mongodb://host/data.base", "names the database"),
        ("mongodb://host:none/database", "the driver refuses"),
        ("mongo://host/database", "Did you mean mongodb://"),
    ],
)
def test_a_url_with_a_mistake_is_refused(url: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_store(url)
