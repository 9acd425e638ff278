"""DynamoDB stands the fault suite; and what only it does: conflicts, throttling, replies in parts, tables of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError

from solocron.errors import ConfigurationError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import Store, Tier, Verdict
from solocron.stores.swap.dynamodb import DynamoStore
from solocron.stores.swap.dynamodb import link as links
from solocron.stores.swap.dynamodb.keys import DynamoKeys
from solocron.stores.swap.key_store import ABSENT, Lost, Span, Swapped
from solocron.stores.url import make_store, parse
from solocron.testing.conformance.kit import get, job, put
from solocron.testing.conformance.rivals import race
from solocron.testing.faults import StoreFaults, Victim
from solocron.testing.faults.victim import PASSWORD
from tests.servers import DynamoDB
from tests.servers.dynamodb import REGION


class DynamoVictim(Victim):
    """Its URLs name host and port where a proxy can be put; the store's have them in `endpoint`."""

    def __init__(self, server: DynamoDB) -> None:
        self.server = server
        table = parse(server.fresh_url()).path.strip("/")
        self.url = f"dynamodb://canary:{PASSWORD}@127.0.0.1:{server.port}/{table}"

    def make(self, url: str, *, lease: timedelta) -> Store:
        parts = urlsplit(url)
        user, _, place = parts.netloc.rpartition("@")
        return DynamoStore(parse(f"dynamodb://{user}@{REGION}{parts.path}?endpoint=http://{place}"), lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        """The local server takes any access key."""
        yield self.url

    def refused(self, guarded: str) -> list[str]:
        return [f"{guarded}-of-another"]

    def broken(self, guarded: str) -> list[str]:
        user, path = guarded.rpartition("@")[0], guarded.rpartition("/")[2]
        return [f"{user}@127.0.0.1:1/{path}", f"{user}@no.such.host.invalid:8000/{path}"]


class TestDynamoDBFaults(StoreFaults):
    """A transaction is repeated with its token; a document bears the token of its commit."""

    lost_reply = Verdict.APPLIED
    lost_request = Verdict.APPLIED

    @pytest.fixture
    def victim(self, dynamodb: DynamoDB) -> Victim:
        return DynamoVictim(dynamodb)

    @pytest.mark.long
    def test_a_restart_is_not_noticed_by_callers(self, victim: Victim, near: Store) -> None:
        super().test_a_restart_is_not_noticed_by_callers(victim, near)

    @pytest.mark.long
    def test_kill_9_of_the_server_between_claim_and_finish_loses_nothing(self, victim: Victim, near: Store) -> None:
        """Each start of the local server takes seconds; a server that is away and comes back is the short form."""
        super().test_kill_9_of_the_server_between_claim_and_finish_loses_nothing(victim, near)


@pytest.fixture
def store(dynamodb: DynamoDB) -> Iterator[DynamoStore]:
    with closing(DynamoStore(parse(dynamodb.fresh_url()))) as store:
        store.open()
        yield store


def _keys(store: DynamoStore) -> DynamoKeys:
    assert isinstance(store._keys, DynamoKeys)
    return store._keys


class Hurt:
    """Stands before the client of a store: `faults` are raised or given instead of a call, one each."""

    def __init__(self, store: DynamoStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real = links._client(_keys(store)._address)
        self.users = self._real.users
        self.calls = self
        self.faults: list[tuple[str, Any]] = []
        self.made: list[str] = []
        monkeypatch.setattr(links, "_client", lambda address: self)

    def __getattr__(self, verb: str) -> Any:
        return partial(self._call, verb)

    def _call(self, verb: str, **arguments: Any) -> Any:
        self.made.append(verb)
        if self.faults and self.faults[0][0] == verb:
            fault = self.faults.pop(0)[1]
            if isinstance(fault, Exception):
                raise fault
            return fault(partial(getattr(self._real.calls, verb), **arguments))
        return getattr(self._real.calls, verb)(**arguments)


@pytest.fixture
def hurt(store: DynamoStore, monkeypatch: pytest.MonkeyPatch) -> Hurt:
    put(store, job("first"))
    return Hurt(store, monkeypatch)


def _error(code: str, status: int = 400, **more: Any) -> ClientError:
    reply = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}, **more}
    return ClientError(reply, "call")


def test_twenty_clients_that_write_one_document_repeat_and_lose_nothing(dynamodb: DynamoDB) -> None:
    """Transactions under way at the same time refuse each other, which is no conflict with a check."""
    url = dynamodb.fresh_url()
    stores = [DynamoStore(parse(url)) for _ in range(20)]
    try:
        replies = race([partial(_keys(one).commit, {}, {"k": str(i), f"own/{i}": "1"}) for i, one in enumerate(stores)])
        assert all(isinstance(reply, Swapped) for reply in replies)
        found = _keys(stores[0]).fetch(["k"], [Span.below("own/")])
        assert len(found.pages[0]) == 20
        assert found.items["k"].mark in {reply.marks["k"] for reply in replies if isinstance(reply, Swapped)}
    finally:
        for one in stores:
            one.close()


def test_a_throttled_call_is_repeated_and_told_by_doctor(store: DynamoStore, hurt: Hurt) -> None:
    hurt.faults = [("put_item", _error("ProvisionedThroughputExceededException"))] * 2
    put(store, job("j"))
    assert get(store, Kind.JOB, "j") == job("j")
    levels = {check.name: check.level for check in store.checks()}
    assert levels["throttled"] == "WARN"


def test_a_table_that_stays_throttled_is_unavailable(store: DynamoStore, hurt: Hurt) -> None:
    hurt.faults = [("batch_get_item", _error("ThrottlingException"))] * 50
    with pytest.raises(StoreUnavailable, match="too much to do"):
        get(store, Kind.JOB, "first")


def test_keys_that_were_not_processed_are_asked_for_again(store: DynamoStore, hurt: Hurt) -> None:
    def in_part(call: Any) -> Any:
        (table, asked), *_ = call.keywords["RequestItems"].items()
        left = {table: {**asked, "Keys": asked["Keys"][1:]}}
        reply = call.func(RequestItems={table: {**asked, "Keys": asked["Keys"][:1]}})
        return {**reply, "UnprocessedKeys": left}

    keys = _keys(store)
    keys.commit({}, {f"k{i}": "v" for i in range(9)})
    hurt.faults = [("batch_get_item", in_part)] * 3
    assert len(keys.fetch([f"k{i}" for i in range(9)]).items) == 9


def test_a_transaction_without_a_reply_is_repeated_under_its_token(store: DynamoStore, hurt: Hurt) -> None:
    """It was made: the second one is known by its token, and counts as the first."""

    def lost(call: Any) -> Any:
        call()
        raise ReadTimeoutError(endpoint_url="table")

    hurt.faults = [("transact_write_items", lost)]
    keys = _keys(store)
    hurt.made.clear()
    reply = keys.commit({"k": ABSENT, "l": ABSENT}, {"k": "1", "l": "1"})
    assert isinstance(reply, Swapped)
    assert hurt.made.count("transact_write_items") == 2
    assert keys.fetch(["k"]).items["k"].mark == reply.marks["k"]


def test_an_error_of_the_server_is_not_taken_for_a_refusal(store: DynamoStore, hurt: Hurt) -> None:
    hurt.faults = [("put_item", _error("InternalServerError", 500))]
    with pytest.raises(Lost):
        _keys(store).commit({}, {"k": "v"})


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (_error("AccessDeniedException"), "has not the rights"),
        (_error("UnrecognizedClientException"), "refused the access key"),
        (NoCredentialsError(), "no credentials were found"),
    ],
)
def test_a_refusal_says_what_to_do(store: DynamoStore, hurt: Hurt, error: Exception, match: str) -> None:
    hurt.faults = [("batch_get_item", error)]
    with pytest.raises(StoreRefused, match=match):
        get(store, Kind.JOB, "first")


def test_a_table_that_is_missing_or_another_kind_is_refused(dynamodb: DynamoDB) -> None:
    missing = DynamoStore(parse(dynamodb.url_of("missing")))
    with closing(missing), pytest.raises(StoreRefused, match=r"no table 'missing'.*aws dynamodb create-table"):
        missing.open()
    table = parse(dynamodb.fresh_url()).path.strip("/") + "-other"
    dynamodb.create(table, id="HASH")
    other = DynamoStore(parse(dynamodb.url_of(table)))
    with closing(other), pytest.raises(StoreRefused, match="has other keys"):
        other.open()


def test_a_global_table_promises_nothing(store: DynamoStore, hurt: Hurt) -> None:
    def replicated(call: Any) -> Any:
        reply = call()
        return {"Table": {**reply["Table"], "Replicas": [{"RegionName": "us-test-1"}]}}

    assert store.capabilities.tier is Tier.B
    hurt.faults = [("describe_table", replicated)]
    assert {check.name: check.level for check in store.checks()}["table"] == "FAIL"


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("dynamodb:///table", "the host is a region"),
        ("dynamodb://eu-central-1:80/table", "the host is a region"),
        ("dynamodb://eu-central-1/", "names the table"),
        ("dynamodb://key@eu-central-1/table", "comes with its secret"),
        ("dynamodb://eu-central-1/table?endpoint=localhost", "begins with http"),
        ("dynamodb://eu-central-1/table?endpont=http://x", "did you mean 'endpoint'"),
    ],
)
def test_a_url_with_a_mistake_is_refused(url: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_store(url)
