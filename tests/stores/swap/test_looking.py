"""A command that only looks makes nothing, also where nothing is there yet."""

from __future__ import annotations

from contextlib import closing

import pytest

from solocron.errors import EmptyStore
from solocron.model.change import Kind
from solocron.stores.contract import All
from solocron.stores.swap.dynamodb import DynamoStore
from solocron.stores.swap.etcd import EtcdStore
from solocron.stores.swap.memory import MemoryKeys, SharedKeys
from solocron.stores.swap.mongodb import MongoStore
from solocron.stores.swap.nats import NatsStore
from solocron.stores.swap.store import SwapStore
from solocron.stores.swap.zookeeper import ZooStore
from solocron.stores.url import parse
from solocron.testing.conformance.kit import job, names, put
from tests.servers import DynamoDB, Etcd, MongoDB, Nats, ZooKeeper


def looks(store: SwapStore) -> None:
    with pytest.raises(EmptyStore):
        store.open(read_only=True)
    assert store.checks()


def test_looking_makes_no_key() -> None:
    shared = SharedKeys()
    with closing(SwapStore(MemoryKeys(shared))) as store:
        looks(store)
    assert shared.worlds["default"].items == {}


def test_looking_makes_no_key_in_etcd(etcd: Etcd) -> None:
    url = etcd.fresh_url()
    with closing(EtcdStore(parse(url))) as store:
        looks(store)
        assert store.namespaces() == []


def test_looking_makes_no_stream_in_nats(nats: Nats) -> None:
    url = nats.fresh_url()
    with closing(NatsStore(parse(url))) as store:
        looks(store)
        assert store.namespaces() == []


def test_looking_makes_no_node_in_zookeeper(zookeeper: ZooKeeper) -> None:
    url = zookeeper.fresh_url()
    with closing(ZooStore(parse(url))) as store:
        looks(store)
        assert store.namespaces() == []


def test_looking_makes_no_item_in_dynamodb(dynamodb: DynamoDB) -> None:
    url = dynamodb.fresh_url()
    with closing(DynamoStore(parse(url))) as store:
        looks(store)
        assert store.namespaces() == []


@pytest.mark.long
def test_looking_makes_no_document_in_mongodb(mongodb: MongoDB) -> None:
    url = mongodb.fresh_url()
    with closing(MongoStore(parse(url))) as store:
        looks(store)
        assert store.namespaces() == []


@pytest.mark.parametrize("kind", ["etcd", "nats", "zookeeper", "dynamodb"])
def test_a_reader_reads_what_a_writer_wrote(kind: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(kind)
    url = server.fresh_url()
    make = {"etcd": EtcdStore, "nats": NatsStore, "zookeeper": ZooStore, "dynamodb": DynamoStore}[kind]
    with closing(make(parse(url))) as reader, closing(make(parse(url))) as writer:
        with pytest.raises(EmptyStore):
            reader.open(read_only=True)
        put(writer, job("j"))
        reader.open(read_only=True)
        sent = reader.statements["commit"]
        assert names(reader.read(All(Kind.JOB))) == ["j"]
        assert reader.statements["commit"] == sent == 0
