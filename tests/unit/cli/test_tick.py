"""`solocron tick`: what is due, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from solocron import StoreError
from tests.unit.cli.kit import DUE, ONE_JOB, Cli, Write


def test_tick_does_what_is_due_and_lists_it(cli: Cli, write: Write) -> None:
    write("shop_t.py", DUE.format(name="t", body="return 7"))
    answer = cli("tick", "shop_t", "--json")
    assert answer.code == 0
    (run,) = answer.json
    assert (run["job"], run["status"], run["result"]) == ("work", "succeeded", 7)
    again = cli("tick", "shop_t")
    assert (again.code, again.out) == (0, "")
    assert "nothing was due" in again.err


def test_tick_with_a_run_that_fails_is_a_failure(cli: Cli, write: Write) -> None:
    write("shop_u.py", DUE.format(name="u", body="raise ValueError('no paper')"))
    answer = cli("tick", "shop_u")
    assert answer.code == 1
    assert "ValueError: no paper" in answer.out


def test_a_switched_off_tick_does_nothing(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOCRON_ENABLED", "off")
    write("shop_v.py", ONE_JOB)
    answer = cli("tick", "shop_v", "--store", "memory://v", "--json")
    assert (answer.code, answer.json) == (0, [])
    assert "scheduling is switched off here" in answer.err


def test_a_store_that_is_away_is_exit_5(cli: Cli, write: Write, elsewhere: Path) -> None:
    write("shop_w.py", ONE_JOB)
    answer = cli("tick", "shop_w", "--store", "sqlite:///no-folder/x.db")
    assert answer.code == StoreError.exit_code
    assert "no-folder" in answer.err
