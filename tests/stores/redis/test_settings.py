"""Each line of `doctor` about a Redis, seen right and seen wrong on a server that is really set up that way."""

from __future__ import annotations

import logging
import re
import subprocess
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

import solocron.stores.redis
from solocron.errors import InvalidError, SolocronError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.stores.contract import All, Check, Tier
from solocron.stores.redis import RedisStore
from solocron.stores.redis.scripts import script
from solocron.stores.url import Secret, make_store
from solocron.testing.conformance.kit import job, put
from solocron.testing.proxy import ChaosProxy
from tests.servers import Redis, Valkey
from tests.servers.base import free_port
from tests.servers.fixtures import StartServer

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "redis.md"
CANARY = "kanarienvogel-7x"


@contextmanager
def closing(url: str, **options: str) -> Iterator[RedisStore]:
    store = RedisStore(url, **options)  # type: ignore[arg-type]
    try:
        yield store
    finally:
        store.close()


def line(store: RedisStore, name: str) -> Check:
    (found,) = [check for check in store.checks() if check.name == name]
    return found


def set_up(server: Redis, **settings: str) -> None:
    with redis.Redis(port=server.port) as client:
        for name, value in settings.items():
            client.config_set(name.replace("_", "-"), value)


@pytest.mark.parametrize("kind", [Redis, Valkey])
def test_a_well_kept_server_is_tier_b_and_every_line_is_ok(
    start_server: StartServer, kind: type[Redis], caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server(kind)
    with closing(server.url) as store:
        assert store.capabilities.tier is Tier.C, "nothing is known before it is opened"
        store.open()
        assert store.capabilities.tier is Tier.B
        assert "synced before it is acknowledged" in store.capabilities.why
        assert store.capabilities.notifies
        assert {check.level for check in store.checks()} == {"OK"}
        assert line(store, "server").detail.startswith(kind.__name__)
        assert caplog.records == []
        set_up(server, appendfsync="everysec")
        assert line(store, "durability").detail == "append-only file on, appendfsync everysec"


@pytest.mark.parametrize(
    ("settings", "name", "says"),
    [
        ({"appendonly": "no"}, "durability", "loses every write since the last snapshot"),
        ({"appendfsync": "no"}, "durability", "a power cut may cost the writes of half a minute"),
        ({"maxmemory-policy": "allkeys-lru"}, "eviction", "silently drops jobs and their history"),
        ({"maxmemory-policy": "volatile-ttl"}, "eviction", "maxmemory-policy volatile-ttl"),
    ],
)
def test_a_setting_that_loses_writes_fails_its_line_and_costs_the_tier(
    start_server: StartServer, settings: dict[str, str], name: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server(Redis, settings=settings)
    with closing(server.url) as store:
        store.open()
        found = line(store, name)
        assert found.level == "FAIL"
        assert says in found.detail
        assert found.remedy
        assert {check.name for check in store.checks() if check.level != "OK"} == {name}
        assert store.capabilities.tier is Tier.C
        assert says in store.capabilities.why
        (warned,) = caplog.records
        assert warned.levelno == logging.WARNING
        assert "tier C" in warned.getMessage()
        assert says in warned.getMessage()
        put(store, job("j"))  # warned, not refused


def test_memory_that_runs_out_is_seen_before_and_after(start_server: StartServer) -> None:
    server = start_server(Redis)
    with closing(server.url) as store, redis.Redis(port=server.port) as client:
        put(store, job("j"))
        assert line(store, "memory").level == "OK"
        used = client.info("memory")["used_memory"]
        for limit, level in ((used * 2, "OK"), (used + used // 12, "WARN"), (used // 2, "FAIL")):
            set_up(server, maxmemory=str(limit))
            found = line(store, "memory")
            assert (found.level, bool(found.remedy)) == (level, level != "OK")
        # Even then it can be opened and read, and a write says what is wrong.
        with closing(server.url) as late:
            late.open()
            assert [doc.name for doc in late.read(All(Kind.JOB))] == ["j"]
            assert late.prune(before=1, limit=10) == 0
            with pytest.raises(StoreRefused, match="is full"):
                put(late, job("k"))


def test_a_replica_is_refused(start_server: StartServer) -> None:
    primary = start_server(Redis)
    replica = start_server(Redis, settings={"replicaof": f"127.0.0.1 {primary.port}"})
    with closing(replica.url) as store:
        found = line(store, "role")
        assert (found.level, found.detail) == ("FAIL", "is a replica and takes no writes")
        assert line(store, "rights").level == "OK", "one fault, one line"
        with pytest.raises(StoreRefused, match=r"replica.*nothing was written.*primary"):
            store.open()


def test_a_primary_that_becomes_a_replica_takes_nothing_more(start_server: StartServer) -> None:
    primary, other = start_server(Redis), start_server(Redis)
    with closing(primary.url) as store, redis.Redis.from_url(primary.url) as client:
        put(store, job("j"))
        client.replicaof("127.0.0.1", other.port)
        with pytest.raises(StoreUnavailable, match="replica"):
            put(store, job("k"))
        client.replicaof("NO", "ONE")
        put(store, job("k"))


class TestRights:
    """The how-to's own words, tried on a server."""

    @pytest.fixture
    def server(self, start_server: StartServer) -> Redis:
        return start_server(Redis)

    def user(self, server: Redis, *changes: str) -> str:
        """The URL of a user with the rights of the how-to, changed."""
        (rule,) = re.findall(r"^ACL SETUSER solocron (.*)$", HOW_TO.read_text(), re.MULTILINE)
        words = rule.replace(">the-password", ">pw").split()
        with redis.Redis.from_url(server.url) as client:
            client.execute_command("ACL", "SETUSER", "solocron", *words, *changes)
        return server.url.replace("redis://", "redis://solocron:pw@")

    def test_the_rights_of_the_how_to_are_sufficient(self, server: Redis) -> None:
        with closing(self.user(server)) as store:
            put(store, job("j"))
            assert {check.level for check in store.checks()} == {"OK"}
            assert store.capabilities.tier is Tier.B
            store.signal()
            assert store.wait(30.0) is True
        with closing(self.user(server), namespace="other") as store:
            store.open()

    def test_every_command_of_the_scripts_is_tried_when_a_store_is_opened(self) -> None:
        folder = Path(solocron.stores.redis.__file__).parent
        used = set()
        for file in folder.glob("lua/*.lua"):
            used |= set(re.findall(r"\b(?:call|pcall_|many|list_of)\('([A-Z]+)'", file.read_text()))
        for file in folder.glob("*.py"):
            used |= set(re.findall(r"\.command\(\"([A-Z]+)\"", file.read_text()))
        tried = set(re.findall(r"\{ '([A-Z]+)'", script("rights").source))
        # Who may not ask INFO is served all the same: only another server is then not told from this one.
        assert used - {"PUBLISH", "INFO"} <= tried
        assert len(used) > 20, "the patterns have lost sight of the scripts"

    @pytest.mark.parametrize("command", ["zadd", "hset", "incr", "time", "smismember"])
    def test_a_command_that_is_missing_is_named_and_nothing_is_written(self, server: Redis, command: str) -> None:
        with closing(self.user(server, f"-{command}")) as store:
            found = line(store, "rights")
            assert found.level == "FAIL"
            assert command.upper() in found.detail
            assert found.remedy
            with pytest.raises(StoreRefused, match=f"(?i){command}"):
                store.open()
        with redis.Redis.from_url(server.url) as client:
            assert client.dbsize() == 0

    def test_keys_of_another_pattern_are_refused(self, server: Redis) -> None:
        with (
            closing(self.user(server, "resetkeys", "~elsewhere:*")) as store,
            pytest.raises(StoreRefused, match="rights"),
        ):
            store.open()

    def test_without_the_channel_it_works_and_says_that_it_polls(self, server: Redis) -> None:
        with closing(self.user(server, "resetchannels")) as store:
            put(store, job("j"))
            found = line(store, "rights")
            assert (found.level, "polling" in found.detail) == ("WARN", True)
            assert store.capabilities.notifies is False
            assert store.wait(0.01) is False

    def test_what_the_user_may_not_see_is_not_relied_on(self, server: Redis) -> None:
        with closing(self.user(server, "-config|get")) as store:
            store.open()
            assert line(store, "durability").level == "WARN"
            assert store.capabilities.tier is Tier.B
        with closing(self.user(server, "-config|get", "-info")) as store:
            store.open()
            assert line(store, "durability").level == line(store, "eviction").level == "FAIL"
            assert store.capabilities.tier is Tier.C

    def test_a_wrong_password_is_said_to_be(self, server: Redis) -> None:
        with (
            closing(self.user(server).replace(":pw@", ":wrong@")) as store,
            pytest.raises(StoreRefused, match="refused the user or password"),
        ):
            store.open()


class TestEncryption:
    def test_plain_text_beyond_this_machine_is_warned_of(self, redis_server: Redis) -> None:
        """A name that this machine calls itself, and that is not loopback to a person who reads the URL."""
        with closing(redis_server.url) as store:
            assert line(store, "encryption").level == "OK"
            store._link.address.hosts = (type(store._link.address.hosts[0])("db.example.com", redis_server.port),)
            store._link.address._moved = type(store._link.address.hosts[0])("127.0.0.1", redis_server.port)
            found = line(store, "encryption")
            assert (found.level, found.remedy) == ("WARN", "use rediss://")

    def test_tls_is_verified_unless_told_otherwise(
        self, start_server: StartServer, openssl: str, tmp_path: Path
    ) -> None:
        key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
        subprocess.run(
            [
                *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
        port = free_port()
        start_server(
            Redis,
            settings={
                "tls-port": str(port),
                "tls-cert-file": str(certificate),
                "tls-key-file": str(key),
                "tls-ca-cert-file": str(certificate),
                "tls-auth-clients": "no",
            },
        )
        url = f"rediss://127.0.0.1:{port}/0"
        with closing(f"{url}?ssl_ca_certs={certificate}") as store:
            put(store, job("j"))
            found = line(store, "encryption")
            assert (found.level, found.detail) == ("OK", "TLS, with a verified certificate")
            store.signal()
            assert store.wait(30.0) is True
        with closing(url) as store, pytest.raises(StoreRefused, match="certificate is not trusted"):
            store.open()
        with closing(f"{url}?insecure_skip_verify=yes") as store:
            assert len(store.read(All(Kind.JOB))) == 1


class TestSecrets:
    """A password is nowhere to be seen, whatever goes wrong."""

    @pytest.fixture
    def server(self, start_server: StartServer) -> Redis:
        return start_server(Redis, settings={"requirepass": CANARY})

    def test_no_error_no_repr_and_no_line_shows_it(
        self, server: Redis, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        caplog.set_level(logging.DEBUG)
        written = "kanarienvogel%2D7x"
        good = f"redis://:{written}@127.0.0.1:{server.port}/0"
        seen: list[str] = []

        def note(error: BaseException) -> None:
            seen.append("".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)))

        with closing(good) as store:
            put(store, job("j"))
            seen += [repr(store), store.url, repr(store.capabilities), repr(store.checks()), repr(store._link.address)]
            server.kill9()
            with pytest.raises(SolocronError) as raised:
                store.read(All(Kind.JOB))
            note(raised.value)
            server.restart()
        for url in (
            good.replace("/0", "/99999"),
            good.replace("/0", "/63?sentinel=nobody"),
            good.replace(written, f"{written}-wrong"),
            good.replace("redis://:", "redis://nobody:"),
            good.replace("redis://", "rediss://"),
            good.replace("/0", "?cluster=maybe"),
            good.replace("/0", "?clutter=yes"),
            good.replace("127.0.0.1", "host.invalid"),
        ):
            with pytest.raises(SolocronError) as raised, closing(url) as store:
                store.open()
            note(raised.value)
        with ChaosProxy.for_url(good) as proxy, closing(proxy.through(good)) as store:
            store.open()
            proxy.refuse()
            proxy.cut()
            with pytest.raises(SolocronError) as raised:
                store.read(All(Kind.JOB))
            note(raised.value)
        out, err = capfd.readouterr()
        seen += [caplog.text, out, err]
        assert len(seen) > 12
        for text in seen:
            assert CANARY not in text
            assert "kanarienvogel" not in text


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("redis://h/zero", "number"),
            ("redis://h:port/0", "not a port"),
            ("redis://h:99999/0", "not a port"),
            ("redis://a,b/0", "several hosts"),
            ("redis://h/0?socket_timeout=1", "not known"),
            ("redis://h?cluster=perhaps", "yes or no"),
            ("redis://h/1?cluster=yes", "no databases"),
            ("redis://h?cluster=yes&sentinel=x", "no sentinels"),
        ],
    )
    def test_a_url_that_cannot_be_meant_is_refused_before_anything_is_opened(self, url: str, says: str) -> None:
        with pytest.raises(InvalidError, match=f"{says}.*Nothing was opened"):
            RedisStore(url)

    def test_the_factory_makes_it_from_all_three_schemes(self, redis_server: Redis, valkey: Valkey) -> None:
        for url in (redis_server.url, valkey.url):
            store = make_store(Secret(url), namespace="made")
            assert isinstance(store, RedisStore)
            assert store.namespace == "made"
            store.open()
            store.close()
        assert isinstance(make_store("rediss://h"), RedisStore)

    @pytest.mark.parametrize("namespace", ["", "a{b", "a}b", "a\nb"])
    def test_a_namespace_that_would_leave_its_hash_tag_is_refused(self, namespace: str) -> None:
        with pytest.raises(InvalidError):
            RedisStore("redis://h", namespace=namespace)
