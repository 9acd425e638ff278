"""NATS stands the fault suite; and what only NATS does: half a batch, a stream that goes back, no JetStream, TLS."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from solocron.errors import ConfigurationError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import All, Store, Tier, Verdict
from solocron.stores.swap.key_store import ABSENT, Stale, Swapped
from solocron.stores.swap.nats import NatsStore
from solocron.stores.swap.nats.checks import capabilities_of
from solocron.stores.swap.nats.connection import NatsConnection, _packed
from solocron.stores.swap.nats.keys import NatsKeys
from solocron.stores.url import make_store, parse
from solocron.testing.conformance.kit import get, job, put
from solocron.testing.faults import StoreFaults, Victim
from solocron.testing.faults.victim import PASSWORD
from tests.servers import Nats
from tests.servers.base import free_port
from tests.servers.fixtures import StartServer

LEASE = timedelta(seconds=15)


class NatsVictim(Victim):
    def __init__(self, server: Nats) -> None:
        self.server = server
        self.url = server.fresh_url()

    def make(self, url: str, *, lease: timedelta) -> Store:
        return NatsStore(parse(url), lease=lease)

    def kill(self) -> None:
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        self.server.restart(settings={"authorization": f'{{ user: canary, password: "{PASSWORD}" }}'})
        try:
            yield self.url.replace("://", f"://canary:{PASSWORD}@")
        finally:
            del self.server.settings["authorization"]
            self.server.restart()

    def refused(self, guarded: str) -> list[str]:
        return [guarded.replace("canary:", "unknown:"), guarded.replace(PASSWORD, f"{PASSWORD}wrong"), self.url]

    def broken(self, guarded: str) -> list[str]:
        user, path = guarded.rpartition("@")[0], guarded.rpartition("/")[2]
        return [f"{user}@127.0.0.1:1/{path}", f"{user}@no.such.host.invalid:4222/{path}"]


class TestNatsFaults(StoreFaults):
    """Every document bears the token of its commit, and one that has not arrived is called off."""

    lost_reply = Verdict.APPLIED
    lost_request = Verdict.APPLIED

    @pytest.fixture
    def victim(self, nats: Nats) -> Victim:
        return NatsVictim(nats)


@contextmanager
def opened(url: str, lease: timedelta = LEASE) -> Iterator[NatsStore]:
    store = NatsStore(parse(url), lease=lease)
    try:
        store.open()
        yield store
    finally:
        store.close()


def _keys(store: NatsStore) -> NatsKeys:
    assert isinstance(store._keys, NatsKeys)
    return store._keys


def test_half_a_batch_leaves_nothing(nats: Nats) -> None:
    with opened(nats.fresh_url()) as store:
        put(store, job("j"))
        stream = _keys(store)._stream
        messages, _ = _keys(store)._batch({}, {"a": "1", "b": "2", "c": "3"})
        connection = stream.connection()
        connection._send(b"".join(_packed(one, "") for one in messages[:2]))
        assert _keys(store).fetch(["a", "b", "c"]).items == {}
        put(store, job("k"))
        assert _keys(store).fetch(["a", "b", "c"]).items == {}


def test_a_stream_that_goes_back_is_noticed(nats: Nats) -> None:
    """As after the crash of a server that had not synced what it acknowledged."""
    with opened(nats.fresh_url()) as store:
        put(store, job("i"), job("j"))
        stream = _keys(store)._stream
        stream.api(f"STREAM.DELETE.{stream.name}", {})
        with pytest.raises(StoreUnavailable, match="is gone"):
            store.read(All(Kind.JOB))
        assert store.read(All(Kind.JOB)) == ()
        assert {check.name: check.level for check in store.checks()}["kept writes"] == "FAIL"


def test_a_deletion_that_the_server_has_forgotten_lets_the_key_be_made_again(nats: Nats) -> None:
    with opened(nats.fresh_url()) as store:
        keys = _keys(store)
        keys.commit({}, {"k": "1"})
        keys.commit({}, {"k": None})
        keys.fetch(["k"])
        stream = keys._stream
        stream.api(f"STREAM.PURGE.{stream.name}", {"filter": stream.subject("k")})
        put(store, job("j"))
        assert isinstance(keys.commit({"k": ABSENT}, {"k": "2"}), Swapped)
        assert isinstance(keys.commit({"k": ABSENT}, {"k": "3"}), Stale)


def test_a_server_without_jetstream_is_refused(start_server: StartServer) -> None:
    class Bare(Nats):
        def command(self) -> list[str]:
            program = self.binary()
            return [str(program), "-a", "127.0.0.1", "-p", str(self.port)]

    server = start_server(Bare)
    store = NatsStore(parse(server.url))
    with pytest.raises(StoreRefused, match="without JetStream"):
        store.open()
    store.close()


def test_of_several_servers_one_that_replies_is_taken(nats: Nats) -> None:
    url = nats.fresh_url().replace("127.0.0.1:", f"127.0.0.1:{free_port()},localhost:")
    with opened(url) as store:
        put(store, job("j"))
        assert get(store, Kind.JOB, "j") == job("j")


@pytest.mark.parametrize(("always", "told"), [(True, True), (False, False)])
def test_a_monitored_server_tells_whether_it_syncs(start_server: StartServer, always: bool, told: bool) -> None:
    class Monitored(Nats):
        def prepare(self) -> None:
            self.monitor = free_port()
            sync = ", sync_interval: always" if always else ""
            self.settings |= {"http": f'"127.0.0.1:{self.monitor}"'}
            self.settings["jetstream"] = f'{{ store_dir: "{self.folder}/data"{sync} }}'

    server = start_server(Monitored)
    url = f"{server.fresh_url()}?monitor="
    with opened(f"{url}{server.monitor}") as store:
        assert _keys(store)._stream.synced is told
        three = {"storage": "file", "num_replicas": 3}
        found = capabilities_of(three, synced=_keys(store)._stream.synced)
        assert found.tier is (Tier.B if told else Tier.C)
    with opened(f"{url}{free_port()}") as store:
        assert _keys(store)._stream.synced is None


RIGHTS = ("$JS.API.>", "solocron_.>", "solocron_default.>")
"""What a user may publish to, as the page on NATS says."""


class GuardedNats(Nats):
    """With a user `app` that may do what `may` and `hears` say."""

    may: tuple[str, ...] = RIGHTS
    hears = "_INBOX.>"

    def prepare(self) -> None:
        rights = f"publish: [{', '.join(map(repr, self.may))}], subscribe: [{self.hears!r}]"
        user = f"{{ user: app, password: '{PASSWORD}', permissions: {{ {rights} }} }}"
        self.settings["authorization"] = f"{{ users: [{user}] }}"

    @property
    def url(self) -> str:
        return f"nats://app:{PASSWORD}@127.0.0.1:{self.port}/solocron"


def test_the_rights_of_the_page_are_enough(start_server: StartServer) -> None:
    with opened(start_server(GuardedNats).url) as store:
        put(store, job("j"))
        assert get(store, Kind.JOB, "j") == job("j")
        assert list(store.namespaces()) == ["default"]


@pytest.mark.parametrize(
    ("may", "hears", "lacks"),
    [
        (("solocron_.>", "solocron_default.>"), "_INBOX.>", r"Publish to .\$JS.API.STREAM.INFO.solocron_default"),
        (("$JS.API.>", "solocron_default.>"), "_INBOX.>", "Publish to .solocron_.identity"),
        (("$JS.API.>", "solocron_.>"), "_INBOX.>", "Publish to .solocron_default.k."),
        (RIGHTS, "other.>", "Subscription to ._INBOX"),
    ],
)
def test_a_missing_right_is_told_at_once(
    start_server: StartServer, may: tuple[str, ...], hears: str, lacks: str
) -> None:
    """NATS replies to nothing that it forbids: the caller waited for the timeout and took the server for away."""
    kind = type("Lacking", (GuardedNats,), {"may": may, "hears": hears})
    store = NatsStore(parse(start_server(kind).url), lease=timedelta(hours=1))
    with pytest.raises(StoreRefused, match=rf"has not the rights.*{lacks}.*nothing was written. Let it publish"):
        store.open()
    store.close()


def test_a_server_before_2_12_is_refused_and_nothing_is_written() -> None:
    """Played by a socket: a release without atomic batches says who it is before anything else."""
    said: list[bytes] = []

    def serve(listening: socket.socket) -> None:
        client, _ = listening.accept()
        with client:
            client.sendall(b'INFO {"server_id":"N","version":"2.11.9","jetstream":true,"headers":true}\r\n')
            while data := client.recv(4_096):
                said.append(data)
                if b"PING" in data:
                    client.sendall(b"PONG\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve, args=(listening,))
        serving.start()
        store = NatsStore(parse(f"nats://127.0.0.1:{listening.getsockname()[1]}/old"))
        with pytest.raises(
            StoreRefused, match=r"is NATS 2.11.9, which has no atomic batches; nothing was written. Upgr"
        ):
            store.open()
        store.close()
        serving.join()
    assert not [data for data in said if b"PUB " in data]


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("nats:///prefix", "no host is named"),
        ("nats://host:none/prefix", "name:port"),
        ("nats://host/prefix?replica=3", "did you mean 'replicas'"),
        ("nats://host/prefix?replicas=2", "1, 3 or 5"),
        ("nats://host/prefix?monitor=http", "the port at which the servers are monitored"),
        ("nats://h1,h2,h3/prefix?monitor=8222,8223", "or one for each host"),
        ("nats://host/a.b", "names the streams"),
        ("tls://host/prefix?ca=/no/such/file", "cannot be read"),
    ],
)
def test_a_url_with_a_mistake_is_refused(url: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_store(url)


class TlsNats(Nats):
    """With a certificate of its own, which no public authority has signed."""

    def prepare(self) -> None:
        self.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
                *("-days", "2", "-subj", "/CN=nats.example", "-addext", "subjectAltName=DNS:nats.example,IP:127.0.0.1"),
                *("-keyout", "key.pem", "-out", "certificate.pem"),
            ]
        )
        folder = self.folder
        self.settings["tls"] = f'{{ cert_file: "{folder}/certificate.pem", key_file: "{folder}/key.pem" }}'


@pytest.mark.usefixtures("openssl")
def test_the_certificate_is_verified_unless_the_url_says_otherwise(start_server: StartServer) -> None:
    server = start_server(TlsNats)
    url = f"tls://127.0.0.1:{server.port}/secure"
    store = NatsStore(parse(url))
    with pytest.raises(StoreRefused, match="certificate is not trusted"):
        store.open()
    plain = NatsStore(parse(url.replace("tls:", "nats:")))
    with pytest.raises(StoreRefused, match="demands TLS"):
        plain.open()
    with opened(f"{url}?ca={server.folder}/certificate.pem") as trusted:
        put(trusted, job("j"))
        assert "encryption" not in {check.name for check in trusted.checks()}
    with opened(f"{url}?insecure_tls=1") as careless:
        assert get(careless, Kind.JOB, "j") == job("j")
        assert {check.level for check in careless.checks() if check.name == "encryption"} == {"WARN"}


def test_a_read_over_a_connection_that_was_reset_is_sent_again(nats: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call after a server had been silent failed when the reset came with the sending."""
    store = NatsStore(parse(nats.fresh_url()))
    store.open()
    put(store, job("j"))
    send, resets = NatsConnection._send, [ConnectionResetError(104, "Connection reset by peer")]

    def reset(self: NatsConnection, packed: bytes) -> None:
        if resets:
            self.close()
            raise self._away(resets.pop())
        send(self, packed)

    monkeypatch.setattr(NatsConnection, "_send", reset)
    assert [doc.name for doc in store.read(All(Kind.JOB))] == ["j"]
    assert not resets
    store.close()
