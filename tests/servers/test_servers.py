"""Every server of ours starts, answers, survives its death with its data, can be frozen, and leaves nothing."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest
import redis
from pymysql.cursors import Cursor

from solocron.errors import StoreUnavailable
from solocron.stores.swap.dynamodb.address import DynamoAddress
from solocron.stores.swap.dynamodb.keys import DynamoKeys
from solocron.stores.swap.key_store import Swapped
from solocron.stores.swap.nats.address import NatsAddress
from solocron.stores.swap.nats.keys import NatsKeys
from solocron.stores.swap.zookeeper.address import ZooAddress
from solocron.stores.swap.zookeeper.keys import ZooKeys
from solocron.stores.url import parse
from tests.required import require_module, require_program
from tests.servers import SERVERS, MariaDB, Postgres, Redis, Server, ServerFailed, Valkey, janitor, processes
from tests.servers.base import free_port
from tests.servers.fixtures import StartServer, require

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = {
    "postgres": "postgres",
    "mariadb": "mariadb",
    "redis": "redis_server",
    "valkey": "valkey",
    "etcd": "etcd",
    "nats": "nats",
    "zookeeper": "zookeeper",
    "dynamodb": "dynamodb",
}
SLOW = frozenset({"dynamodb"})
"""Servers that take many seconds to start."""
GONE = (
    psycopg.OperationalError,
    pymysql.OperationalError,
    redis.ConnectionError,
    redis.TimeoutError,
    OSError,
    StoreUnavailable,
)
"""How the drivers say that a server does not answer."""


class SmallDocuments:
    """Keeps a note in a database of any kind, through the driver that the store uses."""

    def __init__(self, url: str, timeout: int = 10) -> None:
        self.parts = urlsplit(url)
        self.timeout = timeout

    def write(self, text: str) -> None:
        match self.parts.scheme:
            case "postgresql":
                with self._postgres() as connection:
                    connection.execute("CREATE TABLE note (text varchar(99))")
                    connection.execute("INSERT INTO note VALUES (%s)", [text])
            case "mariadb":
                with self.mariadb() as session, session.cursor() as cursor:
                    cursor.execute("CREATE TABLE note (text varchar(99))")
                    cursor.execute("INSERT INTO note VALUES (%s)", [text])
                    session.commit()
            case "nats" | "zookeeper" | "dynamodb":
                with self.keys() as keys:
                    assert isinstance(keys.commit({}, {"note": text}), Swapped)
            case "etcd":
                self.etcd("put", {"key": self.key, "value": base64.b64encode(text.encode()).decode()})
            case _:
                with self.client() as client:
                    client.set("note", text)

    def read(self) -> str:
        match self.parts.scheme:
            case "postgresql":
                with self._postgres() as connection:
                    row = connection.execute("SELECT text FROM note").fetchone()
            case "mariadb":
                with self.mariadb() as session, session.cursor() as cursor:
                    cursor.execute("SELECT text FROM note")
                    row = cursor.fetchone()
            case "nats" | "zookeeper" | "dynamodb":
                with self.keys() as keys:
                    row = (keys.fetch(["note"]).items["note"].value,)
            case "etcd":
                row = (base64.b64decode(self.etcd("range", {"key": self.key})["kvs"][0]["value"]).decode(),)
            case _:
                with self.client() as client:
                    found = client.get("note")
                    assert isinstance(found, bytes | None)
                    row = (found.decode(),) if found else None
        assert row is not None
        return str(row[0])

    def _postgres(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.parts.geturl(), connect_timeout=self.timeout)

    def mariadb(self) -> pymysql.Connection[Cursor]:
        assert self.parts.port is not None
        return pymysql.connect(
            host="127.0.0.1",
            port=self.parts.port,
            user=self.parts.username,
            database=self.parts.path.lstrip("/"),
            connect_timeout=self.timeout,
            read_timeout=self.timeout,
        )

    def keys(self) -> closing[NatsKeys | ZooKeys | DynamoKeys]:
        url = parse(self.parts.geturl())
        if url.scheme == "nats":
            return closing(NatsKeys(NatsAddress.of(url, timeout=self.timeout), "default"))
        if url.scheme == "dynamodb":
            return closing(DynamoKeys(DynamoAddress.of(url, timeout=self.timeout), "default"))
        return closing(ZooKeys(ZooAddress.of(url, timeout=self.timeout), "default"))

    @property
    def key(self) -> str:
        return base64.b64encode(self.parts.path.encode()).decode()

    def etcd(self, verb: str, body: dict[str, str]) -> Any:
        request = urllib.request.Request(f"http://{self.parts.netloc}/v3/kv/{verb}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=self.timeout) as reply:
            return json.load(reply)

    def client(self) -> redis.Redis:
        url = self.parts._replace(scheme="redis").geturl()
        return redis.Redis.from_url(url, socket_timeout=self.timeout, socket_connect_timeout=self.timeout, retry=None)


EACH = [pytest.param(name, marks=pytest.mark.long if name in SLOW else ()) for name in SERVERS]


@pytest.fixture(params=EACH)
def server(request: pytest.FixtureRequest) -> Server:
    """Each of this worker's shared servers in turn."""
    found: Server = request.getfixturevalue(FIXTURES[request.param])
    return found


def test_a_server_answers_through_the_driver_of_its_store(server: Server) -> None:
    notes = SmallDocuments(server.fresh_url())
    notes.write("kept")
    assert notes.read() == "kept"


def test_what_a_server_has_acknowledged_survives_kill_9(server: Server) -> None:
    notes = SmallDocuments(server.fresh_url())
    notes.write("kept")
    before = server.pid
    server.kill9()
    with pytest.raises(GONE):
        notes.read()
    server.restart()
    assert server.pid != before
    assert notes.read() == "kept"


def test_a_restart_in_the_normal_way_keeps_the_data_and_the_url(server: Server) -> None:
    notes = SmallDocuments(server.fresh_url())
    notes.write("kept")
    url = server.url
    server.restart()
    assert server.url == url
    assert notes.read() == "kept"


def test_a_frozen_server_is_silent_until_it_is_thawed(server: Server) -> None:
    url = server.fresh_url()
    SmallDocuments(url).write("kept")
    server.freeze()
    try:
        with pytest.raises(GONE):
            SmallDocuments(url, timeout=2).read()
    finally:
        server.thaw()
    assert SmallDocuments(url).read() == "kept"


def test_two_fresh_databases_know_nothing_of_each_other(server: Server) -> None:
    one, other = SmallDocuments(server.fresh_url()), SmallDocuments(server.fresh_url())
    one.write("one")
    other.write("other")
    assert one.read() == "one"


@pytest.mark.parametrize("name", EACH)
def test_a_stopped_server_leaves_no_process_and_no_folder(name: str) -> None:
    require(SERVERS[name])
    server = SERVERS[name]().start()
    assert server.pid is not None
    pids, folder = processes.tree(server.pid), server.folder
    server.stop()
    assert [processes.command(pid) for pid in pids if processes.birth(pid)] == []
    assert not folder.exists()
    server.stop()


@pytest.mark.parametrize("name", EACH)
def test_a_server_ends_even_if_the_test_process_is_killed(name: str) -> None:
    """The janitor sees the pipe end, kills the whole tree and deletes the folder."""
    require(SERVERS[name])
    program = f"""
import sys
from tests.servers import SERVERS, janitor, processes
server = SERVERS[{name!r}]().start()
print(janitor.pid(), server.folder, *processes.tree(server.pid), flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as runner:
        assert runner.stdout is not None
        guard, folder, *pids = runner.stdout.readline().split()
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    processes.wait_gone([int(guard)])
    assert [pid for pid in pids if processes.birth(int(pid))] == []
    assert not Path(folder).exists()


def test_settings_reach_each_server(start_server: StartServer) -> None:
    """Doctor's tests set a real server wrongly, and must be able to."""
    require(Postgres)
    require(MariaDB)
    require(Redis)
    require(Valkey)
    with psycopg.connect(start_server(Postgres, settings={"synchronous_commit": "off"}).url) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)
    mariadb = start_server(MariaDB, settings={"innodb_flush_log_at_trx_commit": "2"})
    with SmallDocuments(mariadb.url).mariadb() as session, session.cursor() as cursor:
        cursor.execute("SELECT @@innodb_flush_log_at_trx_commit")
        assert cursor.fetchone() == (2,)
    for kind in (Redis, Valkey):
        server = start_server(kind, settings={"appendonly": "no", "requirepass": "canary"})
        with SmallDocuments(server.url).client() as client:
            assert client.config_get("appendonly") == {"appendonly": "no"}


def test_a_server_that_cannot_start_shows_its_log_and_leaves_nothing(start_server: StartServer) -> None:
    require(Redis)
    with pytest.raises(ServerFailed, match="no-such-setting"):
        start_server(Redis, settings={"no-such-setting": "1"})
    assert not [server for server in Server.running if not server.shared]


def test_a_missing_server_skips_on_a_laptop_and_fails_under_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "binary", classmethod(lambda _: None))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install redis-server"):
        require(Redis)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install redis-server"):
        require(Redis)


def test_so_does_a_missing_program_or_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install no-such-program"):
        require_program("no-such-program", "apt-get install no-such-program")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install no-such-program"):
        require_program("no-such-program", "apt-get install no-such-program")
    with pytest.raises(pytest.fail.Exception, match="make venv"):
        require_module("no_such_module")
    assert require_module("json").dumps([]) == "[]"


def test_ports_are_not_those_of_outgoing_connections() -> None:
    """A client that calls a dead server could otherwise be given the server's own port, and meet itself."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(free_port() < lowest for _ in range(50))


def test_the_janitor_is_one_per_process(redis_server: Redis, valkey: Valkey) -> None:
    before = janitor.pid()
    redis_server.restart()
    assert before is not None
    assert janitor.pid() == before
