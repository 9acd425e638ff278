"""What cannot be shown on a server at hand: one that is too old, and hosts beyond this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solocron.errors import StoreRefused
from solocron.stores.redis import settings
from solocron.stores.redis.address import Address
from solocron.stores.url import parse


def telling(info: dict[str, str] | None, **config: str) -> Callable[..., Any]:
    def command(*words: str) -> Any:
        if words == ("INFO",) and info is not None:
            return "".join(f"{name}:{value}\r\n" for name, value in info.items()).encode()
        if words[0] == "CONFIG" and words[2] in config:
            return [words[2].encode(), config[words[2]].encode()]
        raise StoreRefused("not allowed")

    return command


def address(url: str) -> Address:
    return Address(parse(url), timeout=1.0)


def levels(facts: settings.Facts, url: str = "redis://localhost") -> dict[str, str]:
    return {check.name: check.level for check in settings.checks(facts, address(url))}


GOOD = {"redis_version": "7.2.4", "role": "master", "aof_enabled": "1", "maxmemory_policy": "noeviction"}


@pytest.mark.parametrize(("version", "level"), [("6.0.16", "FAIL"), ("6.2.0", "OK"), ("10.0.1", "OK")])
def test_a_server_older_than_6_2_fails_its_line(version: str, level: str) -> None:
    facts = settings.ask(telling(GOOD | {"redis_version": version}, appendfsync="always"), refused="", listens=True)
    assert levels(facts)["server"] == level


@pytest.mark.parametrize(("clients", "level"), [("7999", "OK"), ("8000", "WARN")])
def test_a_server_that_has_few_connections_left_is_warned_of(clients: str, level: str) -> None:
    told = GOOD | {"connected_clients": clients, "maxclients": "10000"}
    facts = settings.ask(telling(told, appendfsync="always"), refused="", listens=True)
    (found,) = [check for check in settings.checks(facts, address("redis://localhost")) if check.name == "connections"]
    assert (found.level, found.detail) == (level, f"{clients} of 10000 in use")


def test_valkey_is_called_by_its_name() -> None:
    facts = settings.ask(telling(GOOD | {"valkey_version": "9.1.0"}), refused="", listens=True)
    assert facts.name == "Valkey 9.1.0"


def test_a_server_that_tells_nothing_is_not_relied_on() -> None:
    facts = settings.ask(telling(None), refused="", listens=True)
    found = levels(facts)
    assert (found["durability"], found["eviction"], found["server"]) == ("FAIL", "FAIL", "OK")
    assert settings.capabilities(facts, address("redis://localhost")).tier == "C"


@pytest.mark.parametrize(
    ("url", "level"),
    [
        ("redis://localhost", "OK"),
        ("redis://127.0.0.1:1", "OK"),
        ("redis://127.1.2.3", "OK"),
        ("redis://[::1]:6379/0", "OK"),
        ("valkey://db", "WARN"),
        ("redis://127.example.com", "WARN"),
        ("redis://localhost,db?cluster=yes", "WARN"),
        ("rediss://db", "OK"),
    ],
)
def test_plain_text_that_leaves_this_machine_is_warned_of(url: str, level: str) -> None:
    facts = settings.ask(telling(GOOD, appendfsync="always"), refused="", listens=True)
    assert levels(facts, url)["encryption"] == level


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("redis://", [("localhost", 6379)]),
        ("redis://h", [("h", 6379)]),
        ("redis://h:7/3", [("h", 7)]),
        ("redis://[fe80::1]", [("fe80::1", 6379)]),
        ("redis://[fe80::1]:7", [("fe80::1", 7)]),
        ("redis://a,b:7?sentinel=main", [("a", 26379), ("b", 7)]),
    ],
)
def test_hosts_are_read_from_the_url(url: str, hosts: list[tuple[str, int]]) -> None:
    assert [(host.name, host.port) for host in address(url).hosts] == hosts


def test_the_driver_is_left_no_choice_of_protocol_timeout_or_retry() -> None:
    connection = address("redis://user:pw@h:7/3").connection()
    assert connection.protocol == 2
    assert connection.socket_timeout == connection.socket_connect_timeout == 1.0
    assert connection.retry._retries == 0
    assert (connection.host, connection.port, connection.db, connection.username) == ("h", 7, 3, "user")


def test_a_cluster_that_does_not_answer_is_asked_at_its_next_host() -> None:
    found = address("redis://a,b?cluster=yes")
    assert found.connection().host == "a"
    found.moved("c", 7)
    assert (found.connection().host, found.connection().port) == ("c", 7)
    found.failed()
    assert found.connection().host == "b"
