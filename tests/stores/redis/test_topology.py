"""Sentinel and Cluster: the store finds the server that takes writes, says what a failover costs, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest
import redis
from redis.crc import key_slot

from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.stores.contract import All, Tier
from solocron.stores.redis import RedisStore
from solocron.testing.conformance.kit import job, names, patience, put
from tests.servers import Redis
from tests.servers.base import free_port
from tests.servers.fixtures import StartServer

LEASE = timedelta(seconds=6)
SLOT = key_slot(b"{solocron:default}")


class SentinelServer(Redis):
    """Watches the primary `main`, alone: its own vote is enough."""

    name = "sentinel"

    def prepare(self) -> None:
        watched = self.settings.pop("watched")
        (self.folder / "sentinel.conf").write_text(
            f"sentinel monitor main 127.0.0.1 {watched} 1\n"
            "sentinel down-after-milliseconds main 1000\n"
            "sentinel failover-timeout main 2000\n"
        )

    def command(self) -> list[str]:
        program = self.binary()
        assert program is not None
        return [
            *(str(program), str(self.folder / "sentinel.conf"), "--sentinel", "--port", str(self.port)),
            *("--bind", "127.0.0.1", "--dir", str(self.folder)),
        ]


@contextmanager
def closing(url: str, namespace: str = "default") -> Iterator[RedisStore]:
    store = RedisStore(url, namespace=namespace, lease=LEASE)
    try:
        yield store
    finally:
        store.close()


def test_sentinel_names_the_primary_and_a_failover_is_followed(start_server: StartServer) -> None:
    primary = start_server(Redis)
    replica = start_server(Redis, settings={"replicaof": f"127.0.0.1 {primary.port}", "repl-diskless-sync-delay": "0"})
    watching = start_server(SentinelServer, settings={"watched": str(primary.port)})
    url = f"redis://127.0.0.1:{watching.port}/0?sentinel=main"
    with closing(url) as store, redis.Redis.from_url(replica.url) as second:
        store.open()
        assert store.capabilities.tier is Tier.C
        assert "failover may lose acknowledged writes" in store.capabilities.why
        (line,) = [check for check in store.checks() if check.name == "topology"]
        assert (line.level, line.detail.split(":")[0]) == ("WARN", "Sentinel")
        put(store, job("j"))
        for _ in patience():
            if second.exists("{solocron:default}:job:j"):
                break
        with redis.Redis(port=watching.port) as sentinel:
            for _ in patience():
                if len(sentinel.execute_command("SENTINEL", "REPLICAS", "main")) == 1:
                    break
        primary.kill9()
        for _ in patience():
            with suppress(StoreError):
                put(store, job("k"))
                break
        assert names(store.read(All(Kind.JOB))) == ["j", "k"]
        assert second.info("replication")["role"] == "master"


def test_sentinels_that_do_not_answer_are_a_store_that_is_away(start_server: StartServer) -> None:
    primary = start_server(Redis)
    with (
        closing(f"redis://127.0.0.1:{primary.port}/0?sentinel=main") as store,
        pytest.raises(StoreError, match=r"(?i)cannot be reached|refused"),
    ):
        store.open()


def test_a_cluster_keeps_a_namespace_on_one_node_and_is_followed_when_it_moves(start_server: StartServer) -> None:
    nodes = [_cluster_node(start_server) for _ in range(2)]
    clients = [redis.Redis(port=node.port, decode_responses=True) for node in nodes]
    first, second = clients
    try:
        ids = [client.execute_command("CLUSTER", "MYID") for client in clients]
        first.execute_command("CLUSTER", "ADDSLOTS", *(slot for slot in range(16384) if slot != SLOT))
        second.execute_command("CLUSTER", "ADDSLOTS", SLOT)
        first.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, nodes[1].settings["cluster-port"])
        for client in clients:
            for _ in patience():
                if "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")):
                    break
        seeds = f"127.0.0.1:{free_port()},127.0.0.1:{nodes[0].port}"  # the first one does not answer
        with closing(f"redis://{seeds}?cluster=yes") as store:
            store.open()  # at the first try: a command makes no second one
            assert store.capabilities.tier is Tier.C
            (line,) = [check for check in store.checks() if check.name == "topology"]
            assert (line.level, line.detail.split(":")[0]) == ("WARN", "Redis Cluster")
            put(store, job("j"))
            assert first.dbsize() == 0
            assert second.dbsize() > 0
            with closing(f"redis://127.0.0.1:{nodes[0].port}?cluster=yes", "other") as other:
                put(other, job("j"))
            assert first.dbsize() > 0
            assert store.namespaces() == {"default", "other"}, "every node is asked"
            _read_in_turn(nodes[0].url)
            first.flushall()
            # An operator moves the slot, empty, to the other node.
            second.flushall()
            for client in clients:
                client.execute_command("CLUSTER", "SETSLOT", SLOT, "NODE", ids[0])
            put(store, job("k"))
            assert first.dbsize() > 0
            assert names(store.read(All(Kind.JOB))) == ["k"]
            store.signal()
            assert store.wait(30.0) is True
    finally:
        for client in clients:
            client.close()


def test_a_plain_url_to_a_node_of_a_cluster_says_what_it_is(start_server: StartServer) -> None:
    node = _cluster_node(start_server)
    with redis.Redis(port=node.port) as client:
        client.execute_command("CLUSTER", "ADDSLOTS", *range(16384))
        for _ in patience():
            if "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")):
                break
    with closing(node.url) as store:
        store.open()
        assert store.capabilities.tier is Tier.C
        assert "Redis Cluster" in store.capabilities.why


def _read_in_turn(url: str) -> None:
    """Namespaces of one process whose URL hides that it is a cluster: neither gets connections to the other's node."""
    with closing(url) as here, closing(url, "other") as there:
        for store in (here, there):
            store.read(All(Kind.JOB))
        before = here.statements.total() + there.statements.total()
        for store in (here, there, here, there):
            assert names(store.read(All(Kind.JOB))) == ["j"]
        assert here.statements.total() + there.statements.total() == before + 4, "no call was sent to the wrong node"


def _cluster_node(start_server: StartServer) -> Redis:
    # The usual port of the bus, 10,000 above the other, may lie among those that the kernel hands out.
    return start_server(Redis, settings={"cluster-enabled": "yes", "cluster-port": str(free_port())})
