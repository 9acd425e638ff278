"""`solocron calendars`: the business calendars and their days off."""

from __future__ import annotations

from datetime import date

from tests.unit.cli.kit import Cli, Shop


def test_calendars_are_listed_with_their_next_day_off(cli: Cli, shop: Shop) -> None:
    shop.scheduler.calendar("bank", holidays={date(2099, 5, 1): "Labour Day"})
    answer = cli("calendars", "--store", shop.url)
    assert answer.lines[0].split() == ["calendar", "revision", "weekend", "days", "ahead", "next", "day", "off", "jobs"]
    assert "2099-05-01 Labour Day" in answer.lines[1]
    assert cli("calendars", "bank", "--store", shop.url).lines == ["Fri 2099-05-01  Labour Day"]
    assert cli("calendars", "bank", "--store", shop.url, "--json").json[0]["revision"] == 1
    assert cli("calendars", "other", "--store", shop.url).code == 3
