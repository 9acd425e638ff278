"""A store's URL says where the store is, and never tells its secret."""

from __future__ import annotations

import builtins
import copy
import logging
import pickle
import traceback
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest

from solocron.errors import InvalidError, MissingExtra, SolocronError
from solocron.stores.memory import MemoryStore
from solocron.stores.sql.mysql import MySQLStore
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.url import Secret, make_store, parse

CANARY = "c4n4ry!p@ss"
ESCAPED = "c4n4ry%21p%40ss"


class TestSecret:
    secret = Secret(f"postgresql://me:{ESCAPED}@db:5432/app?sslpassword={ESCAPED}")

    @pytest.mark.parametrize("show", [repr, str, format, "{:>80}".format, "%s".__mod__, lambda s: f"{s!r}"])
    def test_it_masks_itself_however_it_is_shown(self, show: Any) -> None:
        shown = show(self.secret)
        assert "c4n4ry" not in shown
        assert "postgresql://me:***@db:5432/app" in shown

    def test_it_masks_itself_in_logs_and_tracebacks(self, caplog: pytest.LogCaptureFixture) -> None:
        try:
            raise ValueError(self.secret)
        except ValueError as error:
            logging.getLogger("test").exception("store %s", self.secret)
            shown = "".join(traceback.format_exception(error)) + caplog.text
        assert "c4n4ry" not in shown
        assert "***" in shown

    def test_it_masks_itself_in_a_pickle(self) -> None:
        packed = pickle.dumps(self.secret)
        assert b"c4n4ry" not in packed
        assert pickle.loads(packed).reveal() == "postgresql://me:***@db:5432/app"
        assert "c4n4ry" not in copy.deepcopy(self.secret).reveal()

    def test_it_tells_the_driver(self) -> None:
        assert CANARY not in self.secret.reveal()
        assert ESCAPED in self.secret.reveal()
        assert Secret(self.secret) == self.secret
        assert hash(Secret(self.secret)) == hash(self.secret)
        assert self.secret != Secret("postgresql://me@db/app")

    @pytest.mark.parametrize("text", ["just a password", "://x:c4n4ry@h/d", "a b://c4n4ry", ""])
    def test_what_is_no_url_is_masked_whole(self, text: str) -> None:
        assert str(Secret(text)) == "***"

    def test_a_password_with_an_unescaped_at_sign_is_masked_whole(self) -> None:
        assert str(Secret("mysql://u:c4n@n4ry@h/d")) == "mysql://u:***@h/d"


class TestParse:
    def test_the_parts_of_a_url(self) -> None:
        parts = parse(f"postgresql://me:{ESCAPED}@db:5432/app?schema=jobs&sslmode=require")
        assert (parts.scheme, parts.user, parts.hosts, parts.path) == ("postgresql", "me", "db:5432", "/app")
        assert parts.password is not None
        assert parts.password.reveal() == CANARY
        assert parts.options == {"schema": "jobs", "sslmode": "require"}
        assert "c4n4ry" not in repr(parts)

    def test_a_drivers_text_is_scrubbed_of_the_password_however_it_is_written(self) -> None:
        parts = parse(f"postgresql://me:{ESCAPED}@db/app")
        assert "c4n4ry" not in parts.scrub(f"bad URI postgresql://me:{ESCAPED}@db, password {CANARY}")

    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("postgres", "no scheme"),
            ("", "no scheme"),
            ("oracle://u:c4n4ry@h/d", "'oracle'"),
            ("postgresql://u:c4n#4ry@h/d", "%23"),
            ("postgresql://u:c4n/4ry@h/d", "%2F"),
            ("postgresql://u:c4n4ry\n@h/d", "control character"),
            ("postgresql://u:c4n4ry@h/d?c4n4ry", "name=value"),
        ],
    )
    def test_an_error_shows_no_more_than_the_scheme(self, url: str, says: str) -> None:
        with pytest.raises(InvalidError, match=says) as caught:
            parse(url)
        shown = "".join(traceback.format_exception(caught.value))
        assert "c4n4ry" not in str(caught.value)
        assert "4ry" not in str(caught.value)
        assert "Nothing was opened" in shown

    @pytest.mark.parametrize(
        ("scheme", "meant"),
        [("postgresq", "postgresql"), ("sqllite", "sqlite"), ("mariadbb", "mariadb"), ("pg", "postgresql")],
    )
    def test_an_unknown_scheme_is_refused_with_the_list_and_a_guess(self, scheme: str, meant: str) -> None:
        with pytest.raises(InvalidError) as caught:
            parse(f"{scheme}://host/name")
        assert f"Did you mean {meant}://?" in str(caught.value)
        assert all(known in str(caught.value) for known in ("sqlite://", "postgresql://", "redis://", "memory://"))


class TestMakeStore:
    @pytest.mark.parametrize(
        ("url", "kind"),
        [
            ("sqlite:///x.db", SQLiteStore),
            ("postgresql://h/d", PostgresStore),
            ("postgres://h/d", PostgresStore),
            ("mysql://h/d", MySQLStore),
            ("mariadb://h/d", MySQLStore),
            ("memory://", MemoryStore),
        ],
    )
    def test_each_scheme_has_its_store_which_is_not_opened(self, url: str, kind: type) -> None:
        store = make_store(url, namespace="n", lease=timedelta(seconds=30))
        assert type(store) is kind
        assert store.namespace == "n"
        assert sum(store.statements.values()) == 0

    def test_a_redis_url_makes_a_redis_store(self) -> None:
        for scheme in ("redis", "rediss", "valkey"):
            store = make_store(f"{scheme}://:{ESCAPED}@h:1/0")
            assert type(store).__name__ == "RedisStore"
            assert "c4n4ry" not in store.url

    def test_a_memory_url_names_a_world(self) -> None:
        one, same, other = make_store("memory://a"), make_store("memory://a"), make_store("memory://")
        assert one.url == same.url == "memory://a"
        one.shift_clock(10**12)
        assert abs(same.clock() - one.clock()) < 10**9
        assert one.clock() - other.clock() > 10**11

    @pytest.mark.parametrize(
        ("scheme", "extra", "driver"),
        [
            ("postgresql", "postgres", "psycopg"),
            ("mysql", "mysql", "pymysql"),
            ("mariadb", "mysql", "pymysql"),
            ("redis", "redis", "redis"),
        ],
    )
    def test_a_missing_driver_names_the_extra_that_brings_it(
        self, monkeypatch: pytest.MonkeyPatch, scheme: str, extra: str, driver: str
    ) -> None:
        missing = ModuleNotFoundError(f"No module named {driver!r}", name=driver)

        def without(name: str, *args: Any, **kwargs: Any) -> Any:
            if name.startswith("solocron.stores."):
                raise missing
            return import_module(name, *args, **kwargs)

        monkeypatch.setattr("solocron.stores.url.import_module", without)
        with pytest.raises(MissingExtra) as caught:
            make_store(f"{scheme}://u:{ESCAPED}@h/d")
        assert f'pip install "solocron[{extra}]"' in str(caught.value)
        assert "c4n4ry" not in str(caught.value)
        assert caught.value.exit_code == 2

    def test_another_missing_module_is_not_blamed_on_the_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(name: str, *args: Any, **kwargs: Any) -> Any:
            raise ModuleNotFoundError("No module named 'solocron.gone'", name="solocron.gone")

        monkeypatch.setattr("solocron.stores.url.import_module", broken)
        with pytest.raises(ModuleNotFoundError, match=r"solocron\.gone"):
            make_store("postgresql://h/d")

    def test_making_a_sqlite_store_imports_no_driver_of_a_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted: list[str] = []
        real = builtins.__import__

        def spy(name: str, *args: Any, **kwargs: Any) -> Any:
            wanted.append(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", spy)
        make_store("sqlite:///x.db")
        assert not {name.partition(".")[0] for name in wanted} & {"psycopg", "pymysql", "redis"}

    @pytest.mark.parametrize("namespace", ["", "a b", "x" * 65, "a/b", "a'b", "ü"])
    def test_a_namespace_is_a_short_plain_name(self, namespace: str) -> None:
        with pytest.raises(InvalidError, match="namespace"):
            make_store("memory://", namespace=namespace)

    @pytest.mark.parametrize("scheme", ["postgresql", "mysql", "sqlite"])
    def test_an_unknown_option_is_refused_with_a_guess(self, scheme: str) -> None:
        known = {
            "postgresql": ("schem", "schema"),
            "mysql": ("prefx", "prefix"),
            "sqlite": ("synchronus", "synchronous"),
        }
        typed, meant = known[scheme]
        with pytest.raises(InvalidError, match=f"did you mean '{meant}'"):
            make_store(f"{scheme}:///d?{typed}=x" if scheme == "sqlite" else f"{scheme}://h/d?{typed}=x")

    @pytest.mark.parametrize("name", ["Jobs", "a-b", "1a", "a;drop table x", 'a"b', "x" * 49, ""])
    @pytest.mark.parametrize("option", ["schema", "prefix"])
    def test_what_becomes_part_of_a_tables_name_is_strictly_checked(self, option: str, name: str) -> None:
        for url in ("postgresql://h/d", "mysql://h/d"):
            if option == "prefix" or url.startswith("postgresql"):
                with pytest.raises(InvalidError, match=f"{option}="):
                    make_store(f"{url}?{option}={name.replace(';', '%3B')}")

    @pytest.mark.parametrize("url", ["mysql://h", "mysql://h:port/d", "mysql://h:99999/d", "mysql://h/a/b"])
    def test_a_mysql_url_names_host_and_database(self, url: str) -> None:
        with pytest.raises(InvalidError, match="nothing was opened"):
            make_store(url)

    def test_no_error_of_an_unreadable_url_shows_the_password(self) -> None:
        for url in (
            f"postgresql://u:{CANARY}:x@[::1/d?port=a",
            f"postgresql://u:{ESCAPED}@h:port/d?sslmode=what",
            f"mysql://u:{CANARY}@h:p/d",
            f"redis://u:{CANARY}@h:p/d",
        ):
            assert "c4n4ry" not in _shown(url)


def _shown(url: str) -> str:
    try:
        store = make_store(url)
    except SolocronError as error:
        return "".join(traceback.format_exception(error))
    return repr(store) + store.url
