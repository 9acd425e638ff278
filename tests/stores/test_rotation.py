"""A password that changes while a node runs: every new connection asks for the present one, without a restart."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pymysql
import pytest
import redis

from solocron import Scheduler, StoreError
from solocron.stores.url import make_store, revealed, url_of_environment
from tests.servers.mariadb import MariaDB
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis

Rotate = Callable[[str], None]


@pytest.fixture(params=["redis", "mariadb", "postgres"])
def server(request: pytest.FixtureRequest) -> tuple[str, Rotate]:
    """A URL without a password, and the way to give its user another one, which also ends its connections."""
    if request.param == "redis":
        cache: Redis = request.getfixturevalue("redis_server")
        url = cache.fresh_url()

        def rotate(password: str) -> None:
            with redis.Redis.from_url(url) as client:
                client.execute_command("ACL", "SETUSER", "rotated", "reset", "on", f">{password}", "~*", "&*", "+@all")
                client.execute_command("CLIENT", "KILL", "USER", "rotated")

        return url.replace("://", "://rotated@"), rotate
    if request.param == "postgres":
        return of_postgres(request.getfixturevalue("postgres"))
    sql: MariaDB = request.getfixturevalue("mariadb")
    url = sql.fresh_url()
    parts = urlsplit(url)

    def rotate_sql(password: str) -> None:
        with (
            pymysql.connect(host=parts.hostname, port=parts.port or 0, user="solocron", autocommit=True) as owner,
            owner.cursor() as cursor,
        ):
            cursor.execute(f"CREATE OR REPLACE USER rotated@'127.0.0.1' IDENTIFIED BY '{password}'")
            cursor.execute("GRANT ALL ON *.* TO rotated@'127.0.0.1'")
            cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'rotated'")
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL CONNECTION {number}")

    return url.replace("solocron@", "rotated@"), rotate_sql


def of_postgres(server: Postgres) -> tuple[str, Rotate]:
    """The private server trusts everyone but this user, who needs a password."""
    url = server.fresh_url()
    database = urlsplit(url).path[1:]
    access = server.folder / "data" / "pg_hba.conf"
    line = "host all rotated 127.0.0.1/32 scram-sha-256\n"
    if line not in (lines := access.read_text()):
        access.write_text(line + lines)
        server.sql("SELECT pg_reload_conf()")
        server.sql("CREATE ROLE rotated LOGIN")
    server.sql(f"ALTER DATABASE {database} OWNER TO rotated")

    def rotate(password: str) -> None:
        server.sql(f"ALTER ROLE rotated PASSWORD '{password}'")
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'")

    return url.replace("solocron@", "rotated@"), rotate


def use_file(folder: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> Rotate:
    file = folder / "url"
    monkeypatch.setenv("SOLOCRON_STORE_FILE", str(file))
    return lambda password: void(file.write_text(url.replace("rotated@", f"rotated:{password}@") + "\n"))


def use_command(folder: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> Rotate:
    file = folder / "password"
    monkeypatch.setenv("SOLOCRON_STORE", url)
    program = "import sys; print(open(sys.argv[1]).read())"
    monkeypatch.setenv("SOLOCRON_PASSWORD_COMMAND", shlex.join([sys.executable, "-c", program, str(file)]))
    return lambda password: void(file.write_text(password))


def void(_: object) -> None: ...


@pytest.mark.parametrize("use", [use_file, use_command], ids=["file", "command"])
def test_a_node_goes_on_after_its_password_was_changed(
    use: Callable[[Path, pytest.MonkeyPatch, str], Rotate],
    server: tuple[str, Rotate],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SOLOCRON_STORE", raising=False)
    url, rotate = server
    tell = use(tmp_path, monkeypatch, url)
    tell("first")
    rotate("first")
    scheduler = Scheduler()
    scheduler.every("1000d", name="job")(lambda: None)
    with scheduler:
        assert scheduler.wait(scheduler.trigger("job"), "20s").status == "succeeded"
        rotate("second")  # every connection is ended, and the old password is refused
        other = Scheduler()
        with pytest.raises(StoreError) as refused:
            other.jobs()
        other.stop()
        assert "first" not in str(refused.value)
        tell("second")
        run = None
        while run is None:
            try:
                run = scheduler.trigger("job", key="after")
            except StoreError:  # a connection that the server has ended is noticed at its next use
                continue
        assert scheduler.wait(run, "30s").status == "succeeded"


def test_a_password_is_decoded_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOLOCRON_STORE", raising=False)
    tell = use_file(tmp_path, monkeypatch, "postgresql://rotated@127.0.0.1/db")
    tell("first%20one")
    url = url_of_environment()
    assert url is not None
    store = make_store(url)
    assert revealed(store._conninfo)["password"] == "first one"  # type: ignore[attr-defined]
    tell("second")
    assert revealed(store._conninfo)["password"] == "second"  # type: ignore[attr-defined]
    assert "second" not in f"{store!r} {store.url} {url} {url!r}"
