"""`solocron run`: what its flags change, and what is refused before a node starts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest

from solocron.clock import SECOND
from solocron.scheduler.hooks import core_of
from tests.unit.cli.kit import ONE_JOB, OWN, Cli, Started, Write


def test_flags_win_over_what_the_module_said(cli: Cli, write: Write, started: Started) -> None:
    write("shop_m.py", OWN)
    flags = (
        "--store",
        "memory://flag",
        "--namespace",
        "ns",
        "--lease",
        "6s",
        "--max-running",
        "3",
        "--node",
        "flagged",
    )
    assert cli("run", "shop_m:scheduler", *flags, "--pools", "cpu").code == 0
    scheduler = started[0][0]
    settings = core_of(scheduler).settings
    assert (settings.node, set(settings.pools), settings.max_running) == ("flagged", {"cpu"}, 3)
    assert (settings.lease, settings.beat) == (6.0, 2.0)
    assert (scheduler.open().store.url, scheduler.open().store.namespace) == ("memory://flag", "ns")


def test_without_flags_nothing_of_the_module_is_changed(cli: Cli, write: Write, started: Started) -> None:
    write("shop_n.py", OWN)
    cli("run", "shop_n:scheduler", "--max-running", "7")
    settings = core_of(started[0][0]).settings
    assert (settings.node, set(settings.pools), settings.lease, settings.beat) == ("own", {"gpu"}, 9.0, 2.0)
    assert settings.max_running == 7
    assert settings.keep == timedelta(days=30) / timedelta(microseconds=1)


def test_a_store_that_is_named_by_flag_says_how_long_records_are_kept(cli: Cli, write: Write, started: Started) -> None:
    """Unless the module does: a month of records may fill the quota of an etcd."""
    write("shop_k1.py", OWN)
    write("shop_k2.py", dedent(OWN).replace('"memory://own"', '"memory://own", keep="40d"'))
    for module in ("shop_k1", "shop_k2"):
        cli("run", f"{module}:scheduler", "--store", "etcd://h1/solocron")
    kept = [core_of(scheduler).settings.keep // (24 * 3600 * SECOND) for scheduler, _ in started]
    assert kept == [7, 40]


@pytest.mark.parametrize("flag", [("--namespace", "x"), ("--lease", "6s")])
def test_a_store_that_the_module_has_made_itself_must_be_named_to_be_changed(
    cli: Cli, write: Write, started: Started, flag: tuple[str, str]
) -> None:
    made = dedent(OWN).replace('"memory://own"', "MemoryStore()")
    write("shop_o.py", f"from solocron.stores.memory import MemoryStore\n{made}")
    answer = cli("run", "shop_o", *flag)
    assert (answer.code, started) == (2, [])
    assert f"{flag[0]} alone cannot change it" in answer.err
    assert "Give --store as well" in answer.err


def test_the_store_of_a_url_in_the_code_can_be_changed_without_naming_it(
    cli: Cli, write: Write, started: Started
) -> None:
    write("shop_q.py", OWN)
    assert cli("run", "shop_q", "--namespace", "x", "--lease", "3s").code == 0
    core = core_of(started[0][0])
    assert (core.store.namespace, core.settings.lease, core.configuration.store_url) == ("x", 3.0, "memory://own")


def test_the_default_store_can_be_changed_without_naming_it(
    cli: Cli, write: Write, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLOCRON_STORE", "memory://env")
    write("shop_p.py", dedent(OWN).replace('"memory://own", ', ""))
    assert cli("run", "shop_p", "--namespace", "x", "--lease", "3s").code == 0
    assert started[0][0].open().store.namespace == "x"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--lease", "soon"), "lease: 'soon' is not a duration"),
        (("--lease", "1ms"), "below 300ms"),
        (("--node", "a b"), "node='a b' cannot be used"),
        (("--pools", "a b"), "pool='a b' cannot be used"),
        (("--grace", "later"), "--grace: 'later' is not a duration"),
        (("--max-running", "0"), "whole number from 1 up"),
        (("--store", "orcale://x"), "no store has the scheme"),
    ],
)
@pytest.mark.parametrize("text", [ONE_JOB, OWN], ids=["made", "own"])
def test_bad_flags_start_nothing(
    cli: Cli, write: Write, started: Started, text: str, flags: tuple[str, str], said: str
) -> None:
    write("shop_q.py", text)
    answer = cli("run", "shop_q", "--store", "memory://q", *flags)
    assert (answer.code, started) == (2, [])
    assert said in answer.err


def test_in_a_container_a_node_without_a_store_is_refused(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    monkeypatch.setattr("solocron.surroundings.in_container", lambda: True)
    write("shop_s.py", ONE_JOB)
    answer = cli("tick", "shop_s")
    assert answer.code == 2
    assert "set SOLOCRON_STORE" in answer.err
    assert not (elsewhere / "solocron.db").exists()
