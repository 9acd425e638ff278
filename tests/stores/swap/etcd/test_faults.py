"""etcd stands the fault suite; and what only etcd does: compaction, a full quota, a missing gateway, TLS."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from proof.chaos.date_relay import DateRelay
from solocron.client.facade import Client
from solocron.errors import ConfigurationError, StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import All, Check, Store, Verdict
from solocron.stores.swap.etcd import EtcdStore
from solocron.stores.swap.layout import NOTIFY
from solocron.stores.url import make_store, parse
from solocron.testing.conformance.kit import get, job, note, put
from solocron.testing.faults import StoreFaults, Victim
from solocron.testing.faults.victim import PASSWORD
from tests.servers import Etcd
from tests.servers.base import free_port
from tests.servers.fixtures import StartServer

LEASE = timedelta(seconds=15)


class EtcdVictim(Victim):
    def __init__(self, server: Etcd) -> None:
        self.server = server
        self.url = server.fresh_url()

    def make(self, url: str, *, lease: timedelta) -> Store:
        return EtcdStore(parse(url), lease=lease)

    def kill(self) -> None:
        """Kill it after a write of another client: etcd 3.5.1 alone may reply to the last one before its log has it."""
        self.server.call("/v3/kv/put", {"key": base64.b64encode(b"last").decode()})
        self.server.kill9()

    def restart(self) -> None:
        self.server.restart()

    @contextmanager
    def guarded(self) -> Iterator[str]:
        call, prefix = self.server.call, self.url.rpartition("/")[2]
        low, high = (base64.b64encode(text.encode()).decode() for text in (f"{prefix}/", f"{prefix}0"))
        for user in ("root", "canary"):
            call("/v3/auth/user/add", {"name": user, "password": PASSWORD})
            call("/v3/auth/role/add", {"name": user})
            call("/v3/auth/user/grant", {"user": user, "role": user})
        right = {"permType": "READWRITE", "key": low, "range_end": high}
        call("/v3/auth/role/grant", {"name": "canary", "perm": right})
        call("/v3/auth/enable", {})
        try:
            yield self.url.replace("://", f"://canary:{PASSWORD}@")
        finally:
            token = call("/v3/auth/authenticate", {"name": "root", "password": PASSWORD})["token"]
            call("/v3/auth/disable", {}, token=token)
            for user in ("root", "canary"):
                call("/v3/auth/user/delete", {"name": user})
                call("/v3/auth/role/delete", {"role": user})

    def refused(self, guarded: str) -> list[str]:
        return [
            guarded.replace("canary:", "unknown:"),
            guarded.replace(PASSWORD, f"{PASSWORD}wrong"),
            f"{guarded}-of-another",
            self.url,
        ]

    def broken(self, guarded: str) -> list[str]:
        user, path = guarded.rpartition("@")[0], guarded.rpartition("/")[2]
        return [f"{user}@127.0.0.1:1/{path}", f"{user}@no.such.host.invalid:2379/{path}"]


class TestEtcdFaults(StoreFaults):
    """Every document bears the token of its commit, and one that has not arrived is called off."""

    lost_reply = Verdict.APPLIED
    lost_request = Verdict.APPLIED

    @pytest.fixture
    def victim(self, etcd: Etcd) -> Victim:
        return EtcdVictim(etcd)


@contextmanager
def opened(url: str, lease: timedelta = LEASE) -> Iterator[EtcdStore]:
    store = EtcdStore(parse(url), lease=lease)
    try:
        store.open()
        yield store
    finally:
        store.close()


def test_what_was_compacted_under_a_watch_counts_as_a_notification(etcd: Etcd) -> None:
    with opened(etcd.fresh_url()) as store:
        keys = store._keys
        place = keys.position()
        for i in range(3):
            keys.commit({}, {NOTIFY: f"other {i}"})
        etcd.call("/v3/kv/compaction", {"revision": str(keys.position()), "physical": True})
        place, values = keys.wait(place, 10.0)
        assert values == [None]
        keys.commit({}, {NOTIFY: "other 9"})
        assert keys.wait(place, 10.0)[1][-1] == "other 9"  # the last one before the compaction may come again


def test_a_full_server_takes_no_writes_and_says_what_to_do(start_server: StartServer) -> None:
    server = start_server(Etcd, settings={"quota-backend-bytes": "1000000"})
    with opened(server.fresh_url()) as store:
        put(store, job("j"))
        with pytest.raises(StoreRefused, match="auto-compaction-retention"):
            _fill(store)
        assert get(store, Kind.JOB, "j") == job("j")
        levels = {check.name: check.level for check in store.checks()}
        assert levels["alarms"] == "FAIL"


def test_doctor_warns_and_fails_long_before_the_server_takes_no_writes(start_server: StartServer) -> None:
    """By the server's own quota: against the default of 2 GB a smaller one was never near, and the cluster stopped."""
    quota = 2_000_000
    server = start_server(Etcd, settings={"quota-backend-bytes": str(quota), "auto-compaction-retention": "0"})
    with opened(server.fresh_url()) as store:
        assert _space(store).level == "OK"
        seen: dict[str, int] = {}
        with pytest.raises(StoreRefused, match="auto-compaction-retention"):
            _grow(store, server, seen)
        assert list(seen) == ["OK", "WARN", "FAIL"]
        assert seen["WARN"] < 0.4 * quota
        assert seen["FAIL"] < 0.9 * quota
        told = _space(store)
        assert "its quota is 2 MB; no old revision was ever removed" in told.detail
        assert "--auto-compaction-retention=5m" in str(told.remedy)


def _grow(store: EtcdStore, server: Etcd, seen: dict[str, int]) -> None:
    """Write one document until the server takes no more; the sizes at which doctor first said each word."""
    for _ in range(1_000):
        put(store, note(Kind.STEP, "n", {"x": "y" * 30_000}))
        size = int(server.call("/v3/maintenance/status", {})["dbSize"])
        seen.setdefault(_space(store).level, size)


def test_doctor_sees_that_the_server_compacts(start_server: StartServer) -> None:
    server = start_server(Etcd, settings={"quota-backend-bytes": "4000000"})
    with opened(server.fresh_url()) as store:
        put(store, job("j"))
        assert "no old revision was ever removed" in _space(store).detail
        server.call("/v3/kv/compaction", {"revision": str(store._keys.position()), "physical": True})
        assert "no old revision" not in _space(store).detail


@pytest.mark.parametrize(("seconds", "level"), [(5, "WARN"), (-5, "WARN"), (0, "OK")])
def test_doctor_compares_the_clocks_of_the_members(etcd: Etcd, seconds: float, level: str) -> None:
    """The second member is a relay before the first that shifts the time in its replies."""
    with DateRelay("127.0.0.1", etcd.port, seconds) as relay:
        place, _, prefix = etcd.fresh_url().rpartition("/")
        with opened(f"{place},127.0.0.1:{relay.port}/{prefix}") as store:
            (clocks,) = (check for check in store.checks() if check.name == "clocks")
    assert clocks.level == level
    assert ("differ by" in clocks.detail) == (level == "WARN")


def test_one_member_has_no_clocks_to_compare(etcd: Etcd) -> None:
    with opened(etcd.fresh_url()) as store:
        assert "clocks" not in {check.name for check in store.checks()}


def _space(store: EtcdStore) -> Check:
    (found,) = (check for check in store.checks() if check.name == "space")
    return found


def _fill(store: Store) -> None:
    for i in range(40):
        put(store, note(Kind.STEP, f"n{i}", {"x": "y" * 60_000}))


@pytest.mark.invariant("I22: no attempt starts twice although the store forgets")
def test_a_snapshot_that_was_restored_is_another_server_and_can_be_set_right(
    start_server: StartServer, tmp_path: Path
) -> None:
    """As the page on etcd says, with etcd's own tools."""
    tools = _tools()
    snapshot = tmp_path / "solocron.db"
    server = start_server(Etcd)
    with opened(f"etcd://127.0.0.1:{server.port}/jobs") as store:
        put(store, job("j"))
        before = store.identity()
        subprocess.run(
            [tools / "etcdctl", f"--endpoints=127.0.0.1:{server.port}", "snapshot", "save", snapshot],
            check=True,
            capture_output=True,
            env={"ETCDCTL_API": "3"},
        )
        put(store, job("later"))

    class Restored(Etcd):
        def prepare(self) -> None:
            super().prepare()
            peer = f"http://{self.seat.peer}:{self.peer_port}"
            cluster = [f"--initial-cluster=default={peer}", f"--initial-advertise-peer-urls={peer}"]
            words = ["snapshot", "restore", str(snapshot), "--data-dir", str(self.folder / "data"), *cluster]
            self.run([str(tools / "etcdutl"), *words])

    with opened(f"etcd://127.0.0.1:{start_server(Restored).port}/jobs") as store:
        assert store.identity() != before
        assert [one.name for one in store.read(All(Kind.JOB))] == ["j"]
        assert Client(store).restored() == 1


def _tools() -> Path:
    program = Etcd.binary()
    assert program is not None
    for tool in ("etcdctl", "etcdutl"):
        if not (program.parent / tool).exists():
            pytest.skip(f"there is no {tool} beside {program}")
        (program.parent / tool).chmod(0o755)
    return program.parent


def test_a_server_without_the_gateway_is_refused(start_server: StartServer) -> None:
    class Bare(Etcd):
        def ask(self) -> None:
            """A member without the gateway answers this all the same."""
            import urllib.request

            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as reply:
                assert b"true" in reply.read()

    server = start_server(Bare, settings={"enable-grpc-gateway": "false"})
    store = EtcdStore(parse(server.url))
    with pytest.raises(StoreRefused, match="no JSON gateway"):
        store.open()
    store.close()


def test_of_several_members_one_that_replies_is_taken(etcd: Etcd) -> None:
    url = etcd.fresh_url().replace("127.0.0.1:", f"127.0.0.1:{free_port()},localhost:")
    with opened(url) as store:
        put(store, job("j"))
        assert get(store, Kind.JOB, "j") == job("j")


def test_the_namespaces_of_a_prefix_are_listed(etcd: Etcd) -> None:
    url = etcd.fresh_url()
    for name in ("one", "two.x"):
        store = EtcdStore(parse(url), namespace=name)
        store.open()
        assert name in store.namespaces()
        store.close()


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("etcd:///prefix", "no host is named"),
        ("etcd://host:none/prefix", "name:port"),
        ("etcd://host/prefix?ca=file", "option 'ca' is not known"),
        ("etcds://host/prefix?insecure=1", "did you mean"),
        ("etcds://host/prefix?ca=/no/such/file", "cannot be read"),
    ],
)
def test_a_url_with_a_mistake_is_refused(url: str, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        make_store(url)


class TlsEtcd(Etcd):
    """With a certificate of its own, which no public authority has signed."""

    scheme = "https"

    def prepare(self) -> None:
        super().prepare()
        self.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
                *("-days", "2", "-subj", "/CN=etcd.example", "-addext", "subjectAltName=DNS:etcd.example,IP:127.0.0.1"),
                *("-keyout", "key.pem", "-out", "certificate.pem"),
            ]
        )
        self.settings |= {"cert-file": f"{self.folder}/certificate.pem", "key-file": f"{self.folder}/key.pem"}

    def ask(self) -> None:
        with opened(f"etcds://127.0.0.1:{self.port}/p?insecure_tls=1"):
            pass


@pytest.mark.usefixtures("openssl")
def test_the_certificate_is_verified_unless_the_url_says_otherwise(start_server: StartServer) -> None:
    server = start_server(TlsEtcd)
    url = f"etcds://127.0.0.1:{server.port}/tls"
    store = EtcdStore(parse(url))
    with pytest.raises(StoreRefused, match="certificate is not trusted"):
        store.open()
    with opened(f"{url}?ca={server.folder}/certificate.pem") as trusted:
        put(trusted, job("j"))
        assert "encryption" not in {check.name for check in trusted.checks()}
        assert trusted.wait(0.01) is False
    with opened(f"{url}?insecure_tls=1") as careless:
        assert get(careless, Kind.JOB, "j") == job("j")
        assert {check.level for check in careless.checks() if check.name == "encryption"} == {"WARN"}
