"""ZooKeeper stands the fault suite; and what only it does: sessions that expire, users, rights, TLS."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta

import pytest

from solocron.errors import ConfigurationError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import Store, Verdict
from solocron.stores.swap.key_store import ABSENT, Lost, Stale, Swapped
from solocron.stores.swap.zookeeper import ZooStore, jute
from solocron.stores.swap.zookeeper.keys import ZooKeys
from solocron.stores.url import make_store, parse
from solocron.testing.conformance.kit import get, job, patience, put
from solocron.testing.faults import StoreFaults, Victim
from solocron.testing.faults.victim import PASSWORD
from tests.servers import ZooKeeper
from tests.servers.base import free_port
from tests.servers.fixtures import StartServer

LEASE = timedelta(seconds=15)


class ZooVictim(Victim):
    def __init__(self, server: ZooKeeper) -> None:
        self.server = server
        self.url = server.fresh_url()

    def make(self, url: str, *, lease: timedelta) -> Store:
        return ZooStore(parse(url), lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        """The server always knows the user; here it also refuses clients without one."""
        self.server.restart(settings={"sessionRequireClientSASLAuth": "true"})
        try:
            yield self.url.replace("://", f"://canary:{PASSWORD}@")
        finally:
            del self.server.settings["sessionRequireClientSASLAuth"]
            self.server.restart()

    def refused(self, guarded: str) -> list[str]:
        return [guarded.replace("canary:", "unknown:"), guarded.replace(PASSWORD, f"{PASSWORD}wrong"), self.url]

    def broken(self, guarded: str) -> list[str]:
        user, path = guarded.rpartition("@")[0], guarded.rpartition("/")[2]
        return [f"{user}@127.0.0.1:1/{path}", f"{user}@no.such.host.invalid:2181/{path}"]


class TestZooKeeperFaults(StoreFaults):
    """Every document bears the token of its commit, and one that has not arrived is called off."""

    lost_reply = Verdict.APPLIED
    lost_request = Verdict.APPLIED

    @pytest.fixture
    def victim(self, zookeeper: ZooKeeper) -> Victim:
        return ZooVictim(zookeeper)


@contextmanager
def opened(url: str, lease: timedelta = LEASE) -> Iterator[ZooStore]:
    with closing(ZooStore(parse(url), lease=lease)) as store:
        store.open()
        yield store


def _keys(store: ZooStore) -> ZooKeys:
    assert isinstance(store._keys, ZooKeys)
    return store._keys


def test_a_key_that_was_made_anew_has_another_mark_although_its_version_is_the_same(zookeeper: ZooKeeper) -> None:
    with opened(zookeeper.fresh_url()) as store:
        keys = _keys(store)
        first = keys.commit({"k": ABSENT}, {"k": "1"})
        assert isinstance(first, Swapped)
        keys.commit({}, {"k": None})
        second = keys.commit({"k": ABSENT}, {"k": "1"})
        assert isinstance(second, Swapped)
        versions = {str(reply.marks["k"]).rpartition(".")[2] for reply in (first, second)}
        assert versions == {"0"}
        assert keys.commit({"k": first.marks["k"]}, {"k": "late"}) == Stale(frozenset({"k"}))
        assert keys.fetch(["k"]).items["k"].value == "1"


def test_a_session_that_ends_on_the_way_loses_nothing(zookeeper: ZooKeeper) -> None:
    """The server ends it after the commit was sent: the reply is lost, and the next call has another session."""
    with opened(zookeeper.fresh_url()) as store:
        put(store, job("j"))
        keys = _keys(store)
        connection = keys._tree.connection()
        connection._send(b"\0\0\0\0" + jute.CLOSE.to_bytes(4, "big", signed=True))
        connection.broken.wait(10)
        put(store, job("k"))
        assert keys._tree.connection() is not connection
        assert {get(store, Kind.JOB, name).name for name in ("j", "k")} == {"j", "k"}


def test_a_commit_without_a_reply_is_lost_and_not_repeated(zookeeper: ZooKeeper) -> None:
    with opened(zookeeper.fresh_url(), timedelta(seconds=3)) as store:
        keys = _keys(store)
        keys.commit({}, {"k": "1"})
        zookeeper.freeze()
        try:
            with pytest.raises(Lost):
                keys.commit({}, {"k": "2"})
        finally:
            zookeeper.thaw()
        for _ in patience():
            with suppress(StoreUnavailable):
                assert keys.fetch(["k"]).items["k"].value in ("1", "2")
                break


def test_the_nodes_of_a_user_are_open_to_no_other_client(zookeeper: ZooKeeper) -> None:
    url = zookeeper.fresh_url()
    mine = url.replace("://", f"://canary:{PASSWORD}@")
    with opened(mine) as store:
        put(store, job("j"))
        assert "rights" not in {check.name for check in store.checks()}
    with closing(ZooStore(parse(url))) as other, pytest.raises(StoreRefused, match=r"has not the rights.*cdrwa"):
        other.open()
    with opened(mine) as store:
        assert get(store, Kind.JOB, "j") == job("j")


def test_a_digest_user_is_known_by_the_rights_of_its_nodes(zookeeper: ZooKeeper) -> None:
    url = zookeeper.fresh_url().replace("://", "://jobs:word@") + "?login=digest"
    with opened(url) as store:
        put(store, job("j"))
    with (
        closing(ZooStore(parse(url.replace("word", "wrong")))) as other,
        pytest.raises(StoreRefused, match="has not the rights") as refused,
    ):
        other.open()
    assert "wrong" not in str(refused.value)


def test_an_open_folder_and_a_single_member_are_told_by_doctor(zookeeper: ZooKeeper) -> None:
    with opened(zookeeper.fresh_url()) as store:
        put(store, job("j"))
        levels = {check.name: check.level for check in store.checks()}
        assert levels["rights"] == levels["members"] == "WARN"
        assert levels["server"] == "OK"


def test_of_several_members_one_that_replies_is_taken(zookeeper: ZooKeeper) -> None:
    url = zookeeper.fresh_url().replace("127.0.0.1:", f"127.0.0.1:{free_port()},localhost:")
    with opened(url) as store:
        put(store, job("j"))
        assert get(store, Kind.JOB, "j") == job("j")


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("zookeeper:///folder", "no host is named"),
        ("zookeeper://host:none/folder", "name:port"),
        ("zookeeper://host/folder?ca=file", "option 'ca' is not known"),
        ("zookeeper://host/folder?login=plain", "'sasl' or 'digest'"),
        ("zookeeper://user@host/folder", "comes with a password"),
        ("zookeeper://host/a.b", "the folder of all nodes"),
        ("zookeepers://host/folder?ca=/no/such/file", "cannot be read"),
        ("zk://host/folder", "Did you mean zookeeper://"),
    ],
)
def test_a_url_with_a_mistake_is_refused(url: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_store(url)


class TlsZooKeeper(ZooKeeper):
    """With a certificate of its own, which no public authority has signed."""

    def prepare(self) -> None:
        self.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
                *("-days", "2", "-subj", "/CN=zoo.example", "-addext", "subjectAltName=DNS:zoo.example,IP:127.0.0.1"),
                *("-keyout", "key.pem", "-out", "certificate.pem"),
            ]
        )
        both = "".join((self.folder / name).read_text() for name in ("key.pem", "certificate.pem"))
        (self.folder / "both.pem").write_text(both)
        self.secure_port = free_port()
        self.settings |= {
            "secureClientPort": str(self.secure_port),
            "secureClientPortAddress": "127.0.0.1",
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.keyStore.location": f"{self.folder}/both.pem",
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": f"{self.folder}/certificate.pem",
            "ssl.trustStore.type": "PEM",
            "ssl.clientAuth": "none",
        }

    def ask(self) -> None:
        """The secure port opens a moment after the plain one."""
        super().ask()
        socket.create_connection((self.seat.host, self.secure_port), timeout=5).close()


@pytest.mark.usefixtures("openssl")
def test_the_certificate_is_verified_unless_the_url_says_otherwise(start_server: StartServer) -> None:
    server = start_server(TlsZooKeeper)
    url = f"zookeepers://127.0.0.1:{server.secure_port}/secure"
    with closing(ZooStore(parse(url))) as store, pytest.raises(StoreRefused, match="certificate is not trusted"):
        store.open()
    plain = ZooStore(parse(f"zookeepers://127.0.0.1:{server.port}/secure?insecure_tls=1"))
    with closing(plain), pytest.raises(StoreUnavailable, match="wants the secureClientPort"):
        plain.open()
    for _ in patience():  # once, the server closed the first connection that had passed the handshake
        with suppress(StoreUnavailable), opened(f"{url}?ca={server.folder}/certificate.pem") as trusted:
            put(trusted, job("j"))
            break
    with opened(f"{url}?ca={server.folder}/certificate.pem") as trusted:
        assert "encryption" not in {check.name for check in trusted.checks()}
    with opened(f"{url}?insecure_tls=1") as careless:
        assert get(careless, Kind.JOB, "j") == job("j")
        assert {check.level for check in careless.checks() if check.name == "encryption"} == {"WARN"}
