"""Looking changes nothing, on every store: no table, key or file is made, no row is written, no schema is migrated."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solocron import EmptyStore, Scheduler
from solocron.cli import main
from solocron.stores.sql import migrations
from solocron.stores.sql.migrations import LATEST, Migration
from solocron.stores.url import make_store
from tests.unit.cli.kit import Answer
from tests.unit.effects.libraries import mysql_options

STORES = ["sqlite", "postgres", "mariadb", "redis_server", pytest.param("valkey", marks=pytest.mark.long)]
LOOKING = [
    ("jobs",), ("runs",), ("runs", "work"), ("show", "RUN"), ("nodes",), ("status",), ("next", "work"), ("calendars",),
    ("locks",), ("limits",), ("audit",), ("why", "work"), ("doctor",), ("resume", "work", "--dry-run"),
]  # fmt: skip
WRITES = {
    "append", "del", "expire", "flushdb", "hdel", "hincrby", "hset", "incr", "pexpire", "publish", "rename", "sadd",
    "set", "srem", "unlink", "zadd", "zrem", "zremrangebyscore",
}  # fmt: skip
ASKING = [("trigger", "work"), ("pause", "work"), ("resume", "work"), ("cancel", "work@x"), ("remove", "work"),
          ("restored",), ("locks", "--release", "x", "--reason", "y"), ("doctor", "--repair")]  # fmt: skip


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place: a database without tables or keys, or a file that does not exist."""
    if request.param == "sqlite":
        tmp_path.chmod(0o700)
        return f"sqlite:///{tmp_path}/solocron.db"
    found: str = request.getfixturevalue(request.param).fresh_url()
    return found


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    def call(*argv: str) -> Answer:
        capsys.readouterr()
        return Answer(main(argv), *capsys.readouterr())

    return call


# --- everything that is there, asked for behind Solocron's back ------------------------------------------------------


def snapshot(url: str) -> Any:
    """Tables, columns, indexes, sequences and rows; keys and values; files and their bytes."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return _files(Path(url.removeprefix("sqlite:///")))
    if scheme.startswith("postgres"):
        return _postgres(url)
    return _mysql(url) if scheme in ("mysql", "mariadb") else _redis(url)


def _files(path: Path) -> Any:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def _postgres(url: str) -> Any:
    import psycopg

    with psycopg.connect(url) as connection:
        catalog = connection.execute(
            "SELECT c.relname, c.relkind, c.relfilenode, array(SELECT attname FROM pg_attribute WHERE attrelid = c.oid)"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1"
        ).fetchall()
        tables = [row[0] for row in catalog if row[1] == "r"]
        # xmin names the transaction that wrote a row: a row that was written again with the same values shows too.
        rows = {name: connection.execute(f'SELECT xmin::text, t FROM "{name}" t').fetchall() for name in tables}
        return catalog, rows, connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()


def _mysql(url: str) -> Any:
    import pymysql

    connection = pymysql.connect(**mysql_options(url))
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            tables = sorted(row[0] for row in cursor.fetchall())
            rows = {}
            for name in tables:
                cursor.execute(f"SHOW CREATE TABLE `{name}`")
                made = cursor.fetchall()
                cursor.execute(f"SELECT * FROM `{name}`")
                rows[name] = (made, sorted(cursor.fetchall(), key=repr))
            return rows
    finally:
        connection.close()


def _redis(url: str) -> Any:
    import redis

    client: Any = redis.Redis.from_url(url.replace("valkey://", "redis://"))
    try:
        # What has a time to live may go at any moment; so what was written is counted too, scripts included.
        kept = {key: client.dump(key) for key in client.keys("*") if client.ttl(key) == -1}
        calls = client.info("commandstats")
        return kept, {name: calls[name]["calls"] for name in calls if name.removeprefix("cmdstat_") in WRITES}
    finally:
        client.close()


def settled(url: str) -> str:
    """A namespace with a job, a calendar, a lock and a run, and no node in it any more; returns the run."""
    scheduler = Scheduler(url, node="kitchen")
    scheduler.calendar("bank", weekend=())
    scheduler.every("1000d", name="work", calendar="bank")(lambda: None)
    scheduler.tick()
    run = scheduler.trigger("work")
    scheduler.tick()
    with scheduler.lock("door"):
        pass
    scheduler.stop()
    return run


# --- the tests -------------------------------------------------------------------------------------------------------


def test_looking_changes_nothing(url: str, cli: Callable[..., Answer]) -> None:
    run = settled(url)
    before = snapshot(url)
    for command in LOOKING:
        words = [run if word == "RUN" else word for word in command]
        answer = cli(*words, "--store", url)
        assert answer.code == 0 or (words[0], answer.code) == ("doctor", 1), (words, answer)
        assert snapshot(url) == before, words
    assert json.loads(cli("status", "--store", url, "--json").out)["jobs"] == 1


@pytest.mark.parametrize("command", [("status",), ("trigger", "work"), ("doctor",), ("doctor", "--repair")])
def test_an_empty_place_is_said_and_stays_empty(url: str, cli: Callable[..., Answer], command: tuple[str, ...]) -> None:
    before = snapshot(url)
    answer = cli(*command, "--store", url)
    assert answer.code == 3
    assert "Nothing was made" in answer.out + answer.err
    assert snapshot(url) == before


def test_every_command_that_runs_nothing_leaves_an_empty_place_alone(
    tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    url = f"sqlite:///{tmp_path}/solocron.db"
    for command in LOOKING + ASKING:
        assert cli(*command, "--store", url).code == 3, command
        assert list(tmp_path.iterdir()) == [], command


def test_an_empty_namespace_is_said_and_stays_empty(url: str, cli: Callable[..., Answer]) -> None:
    settled(url)
    before = snapshot(url)
    every = LOOKING + ASKING if url.startswith("sqlite") else [("status",), ("trigger", "work"), ("doctor", "--repair")]
    for command in every:
        answer = cli(*command, "--store", url, "--namespace", "prud")
        assert answer.code == 3, command
        assert "namespace 'prud'" in answer.out + answer.err, command
        assert snapshot(url) == before, command


@pytest.mark.parametrize("url", ["sqlite", "postgres", "mariadb"], indirect=True)
def test_a_wish_for_what_is_not_there_changes_nothing(url: str, cli: Callable[..., Answer]) -> None:
    settled(url)
    before = snapshot(url)
    assert cli("trigger", "wrok", "--store", url).code == 3
    assert snapshot(url) == before


def test_a_scheduler_that_was_not_started_looks_without_making_anything(url: str) -> None:
    before = snapshot(url)
    scheduler = Scheduler(url)
    with pytest.raises(EmptyStore, match="Nothing was made"):
        scheduler.jobs()
    assert snapshot(url) == before
    settled(url)
    before = snapshot(url)
    assert [job.name for job in scheduler.jobs()] == ["work"]
    assert (len(scheduler.runs()), scheduler.nodes(), scheduler.status().jobs) == (1, [], 1)
    assert [lock.name for lock in scheduler.locks()] == ["door"]
    assert [one.name for one in scheduler.calendars()] == ["bank"]
    scheduler.stop()  # while a file is open, SQLite keeps its own two beside it
    assert snapshot(url) == before
    assert scheduler.trigger("work")  # and asks when it is asked to
    assert scheduler.get_job("work").waiting == 1
    scheduler.stop()


@pytest.mark.parametrize("url", ["sqlite", "postgres", "mariadb"], indirect=True)
def test_an_older_schema_is_not_migrated_by_looking(
    url: str, cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(url)
    before = snapshot(url)
    steps = (*migrations.of(migrations.DIALECTS[url.partition(":")[0]]), Migration(LATEST + 1, "later", "more", ()))
    monkeypatch.setattr(migrations, "of", lambda folder: steps)
    monkeypatch.setattr(migrations, "LATEST", LATEST + 1)
    for command in (("status",), ("jobs",), ("trigger", "work"), ("doctor",)):
        answer = cli(*command, "--store", url)
        assert answer.code == (1 if command == ("doctor",) else 5), command
        assert f"have schema {LATEST}, and this Solocron needs {LATEST + 1}" in answer.out + answer.err, command
        assert "solocron migrate" in answer.out + answer.err, command
        assert snapshot(url) == before, command


@pytest.mark.parametrize("url", ["sqlite", "postgres", "mariadb"], indirect=True)
def test_the_server_itself_refuses_a_write_of_a_reader(url: str) -> None:
    """A promise that does not hang on every statement having been thought of."""
    settled(url)
    before = snapshot(url)
    store: Any = make_store(url)
    store.open(read_only=True)
    try:
        with store.links.link() as link, pytest.raises(Exception, match=r"(?i)read.?only|may only be read"):
            link.all("prune_sessions", {"namespace": "default", "before": 2**62})
    finally:
        store.close()
    assert snapshot(url) == before


def test_a_file_whose_node_has_crashed_is_read_with_what_only_its_log_has(
    tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    """After kill -9 the last commits are in the -wal file alone; a reader sees them and leaves file and log alone."""
    tmp_path.chmod(0o700)
    url = f"sqlite:///{tmp_path}/solocron.db"
    settled(url)
    path = tmp_path / "solocron.db"
    node = sqlite3.connect(path)
    node.execute("PRAGMA wal_autocheckpoint = 0")
    node.execute("UPDATE solocron_jobs SET pool = 'gpu'")
    node.commit()
    crashed = tmp_path / "crashed"
    crashed.mkdir(mode=0o700)
    for suffix in ("", "-wal"):
        (crashed / f"solocron.db{suffix}").write_bytes(path.with_name(f"solocron.db{suffix}").read_bytes())
    node.close()
    there = f"sqlite:///{crashed}/solocron.db"
    before = {suffix: (crashed / f"solocron.db{suffix}").read_bytes() for suffix in ("", "-wal")}
    assert len(json.loads(cli("jobs", "--store", there, "--json").out)) == 1
    with sqlite3.connect(f"file:{crashed}/solocron.db?mode=ro", uri=True) as reader:
        assert reader.execute("SELECT pool FROM solocron_jobs").fetchall() == [("gpu",)]
    reader.close()
    assert {suffix: (crashed / f"solocron.db{suffix}").read_bytes() for suffix in ("", "-wal")} == before


def test_a_file_is_read_by_one_who_may_not_write_it(tmp_path: Path, cli: Callable[..., Answer]) -> None:
    tmp_path.chmod(0o700)
    url = f"sqlite:///{tmp_path}/solocron.db"
    settled(url)
    (tmp_path / "solocron.db").chmod(0o400)
    assert len(json.loads(cli("jobs", "--store", url, "--json").out)) == 1
