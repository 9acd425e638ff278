"""`solocron pause`: who, why and until when."""

from __future__ import annotations

import pytest

from tests.unit.cli.kit import Cli, Shop


def test_pause_keeps_who_why_and_until_when(cli: Cli, shop: Shop) -> None:
    answer = cli("pause", "invoices", "--by", "kim", "--note", "audit", "--until", "2h", "--store", shop.url)
    assert answer.code == 0
    paused = shop.scheduler.get_job("invoices").paused
    assert paused is not None
    assert (paused.by, paused.note) == ("kim", "audit")
    assert paused.until is not None
    assert f"{paused.until:%Y-%m-%d %H:%M:%S}" in answer.out


def test_pause_names_the_user_of_the_terminal(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "robin")
    assert cli("pause", "invoices", "--store", shop.url, "--json").json["paused"]["by"] == "robin"


def test_pause_until_the_past_is_refused(cli: Cli, shop: Shop) -> None:
    assert cli("pause", "invoices", "--until", "2001-01-01", "--store", shop.url).code == 2
    assert shop.scheduler.get_job("invoices").paused is None


@pytest.mark.parametrize("verb", ["pause", "resume", "remove"])
def test_of_an_unknown_job_nothing_is_changed(cli: Cli, shop: Shop, verb: str) -> None:
    answer = cli(verb, "invoice", "--store", shop.url)
    assert answer.code == 3
    assert "Did you mean 'invoices'?" in answer.err
