"""Three members of one store, each a private server: on the loopback interface, or each in a network of its own."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from types import TracebackType
from typing import ClassVar, Self

from solocron.errors import StoreError
from solocron.stores.swap.nats import NatsStore
from solocron.stores.swap.nats.keys import NatsKeys
from solocron.stores.url import parse
from solocron.testing.fleet import wait_until
from tests.servers.base import Server, free_port
from tests.servers.etcd import Etcd
from tests.servers.mongodb import MongoDB
from tests.servers.nats import Nats
from tests.servers.seats import LOOPBACK, Seat
from tests.servers.zookeeper import ZooKeeper

__all__ = ["CLUSTERS", "Cluster", "EtcdCluster", "MongoCluster", "NatsCluster", "ZooCluster"]

_PATIENCE = 60.0
MEMBERS = 3


def _patience() -> float:
    """Return the seconds to wait for what a quiet machine does in two or three."""
    return _PATIENCE * max(1.0, os.getloadavg()[0] / 4)


class Cluster(ABC):
    """All members run within the block."""

    name: ClassVar[str]
    kind: ClassVar[type[Server]]
    election: ClassVar[float]
    """Seconds within which the others notice that the leader is gone, and have another one, by the settings here."""

    _numbers = itertools.count(1)

    def __init__(self, seats: Sequence[Seat] = (LOOPBACK,) * MEMBERS) -> None:
        self.members = self.make(seats)
        for member, seat in zip(self.members, seats, strict=True):
            member.seat = seat
        self._stack = ExitStack()

    @abstractmethod
    def make(self, seats: Sequence[Seat]) -> Sequence[Server]:
        """Return the members, which do not run yet."""

    def leader(self, url: str) -> Server:
        """Return the member that leads what a store URL names; wait until one does."""

        def look() -> Server | None:
            for member in self.members:
                with suppress(OSError, KeyError):
                    if isinstance(member, _Joins) and member.leads:
                        return member
            return None

        return wait_until(look, within=_patience(), what="a leader")

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member)
            self.settle()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def settle(self) -> None:
        """Wait until each member answers."""
        for member in self.members:
            if isinstance(member, _Joins):
                member.joined = True
            wait_until(lambda: _answers(member), within=_patience(), what=f"{member.name} of a cluster")  # noqa: B023

    @property
    def hosts(self) -> str:
        """The members, as a URL names them."""
        return ",".join(f"{member.seat.host}:{member.port}" for member in self.members)

    def fresh_url(self) -> str:
        """A prefix that no test has used."""
        return f"{self.name}://{self.hosts}/p{os.getpid()}-{next(self._numbers)}"


class _Joins(Server):
    """A member that counts as ready at once when first started: none serves before a majority is there."""

    joined = False

    @property
    def leads(self) -> bool:
        raise NotImplementedError


class _EtcdMember(_Joins, Etcd):
    def __init__(self, number: int, peers: Sequence[tuple[Seat, int]]) -> None:
        cluster = ",".join(f"m{i}=http://{seat.peer}:{port}" for i, (seat, port) in enumerate(peers))
        times = {"heartbeat-interval": "50", "election-timeout": "500"}
        super().__init__(settings={"name": f"m{number}", "initial-cluster": cluster, **times})
        self._peer = peers[number][1]

    def prepare(self) -> None:
        self.peer_port = self._peer

    def ask(self) -> None:
        if self.joined:
            super().ask()

    @property
    def leads(self) -> bool:
        status = self.call("/v3/maintenance/status", {})
        return bool(status.get("leader") == status["header"]["member_id"])


class _ZooMember(_Joins, ZooKeeper):
    def __init__(self, number: int, peers: Sequence[tuple[Seat, int, int]]) -> None:
        members = {f"server.{i}": f"{seat.peer}:{a}:{b}" for i, (seat, a, b) in enumerate(peers, 1)}
        super().__init__(settings={"initLimit": "20", "syncLimit": "4", "tickTime": "200", **members})
        self._number = number

    def prepare(self) -> None:
        data = self.folder / "data"
        data.mkdir()
        (data / "myid").write_text(f"{self._number}\n")

    def ask(self) -> None:
        if self.joined:
            super().ask()

    @property
    def leads(self) -> bool:
        return "Mode: leader" in self.told()


class _NatsMember(Nats):
    def __init__(self, number: int, peers: Sequence[tuple[Seat, int]]) -> None:
        routes = ", ".join(f"nats://{seat.peer}:{port}" for seat, port in peers)
        seat, port = peers[number]
        cluster = f'{{ name: c, listen: "{seat.peer}:{port}", routes: [{routes}] }}'
        self.title = f"m{number}"
        self.monitor = free_port()
        http = f'"{seat.host}:{self.monitor}"'
        super().__init__(settings={"server_name": self.title, "cluster": cluster, "http": http})


class _MongoMember(_Joins, MongoDB):
    """Replies before the set is made, and then as soon as it knows of a primary."""

    def ask(self) -> None:
        from pymongo.errors import PyMongoError

        try:
            with self.client() as client:
                told = client.admin.command("hello")
        except PyMongoError as error:
            raise AssertionError(str(error)) from None
        assert not self.joined or "primary" in told, "no primary yet"

    @property
    def leads(self) -> bool:
        from pymongo.errors import PyMongoError

        try:
            with self.client() as client:
                return bool(client.admin.command("hello")["isWritablePrimary"])
        except PyMongoError:
            return False


class EtcdCluster(Cluster):
    name = "etcd"
    kind = Etcd
    election = 1.0

    def make(self, seats: Sequence[Seat]) -> Sequence[Server]:
        peers = [(seat, free_port()) for seat in seats]
        return [_EtcdMember(number, peers) for number in range(len(seats))]


class ZooCluster(Cluster):
    name = "zookeeper"
    kind = ZooKeeper
    election = 2.0

    def make(self, seats: Sequence[Seat]) -> Sequence[Server]:
        peers = [(seat, free_port(), free_port()) for seat in seats]
        return [_ZooMember(number, peers) for number in range(1, len(seats) + 1)]


class NatsCluster(Cluster):
    name = "nats"
    kind = Nats
    election = 10.0

    def make(self, seats: Sequence[Seat]) -> Sequence[Server]:
        peers = [(seat, free_port()) for seat in seats]
        return [_NatsMember(number, peers) for number in range(len(seats))]

    def fresh_url(self) -> str:
        ports = ",".join(str(member.monitor) for member in self.members if isinstance(member, _NatsMember))
        return f"{super().fresh_url()}?replicas={MEMBERS}&monitor={ports}"

    def leader(self, url: str) -> Server:
        """Return the member that leads the stream."""

        def look() -> Server | None:
            with closing(NatsStore(parse(url))) as store, suppress(StoreError):
                store.open()
                keys = store._keys
                assert isinstance(keys, NatsKeys)
                title = keys._stream.api(f"STREAM.INFO.{keys._stream.name}", {}).get("cluster", {}).get("leader")
                return next((one for one in self.members if isinstance(one, _NatsMember) and one.title == title), None)
            return None

        return wait_until(look, within=_patience(), what="a leader of the stream")


class MongoCluster(Cluster):
    """A replica set; its members know each other by the addresses of their clients, as MongoDB wants it."""

    name = "mongodb"
    kind = MongoDB
    election = 4.0
    _made = False

    def make(self, seats: Sequence[Seat]) -> Sequence[Server]:
        return [_MongoMember() for _ in seats]

    def settle(self) -> None:
        if not self._made:
            self._made = True
            first = self.members[0]
            assert isinstance(first, _MongoMember)
            config = first.members()
            config["members"] = [
                {"_id": i, "host": f"{one.seat.host}:{one.port}"} for i, one in enumerate(self.members)
            ]
            with first.client() as client:
                client.admin.command("replSetInitiate", config)
        super().settle()

    def fresh_url(self) -> str:
        return f"mongodb://{self.hosts}/solocron?replicaSet=rs0&collection=p{os.getpid()}-{next(self._numbers)}"


CLUSTERS: dict[str, type[Cluster]] = {one.name: one for one in (EtcdCluster, ZooCluster, NatsCluster, MongoCluster)}


def _answers(member: Server) -> bool:
    try:
        member.ask()
    except (OSError, AssertionError):
        return False
    return True
