"""`solocron export`: files for other tools, byte for byte as the package has them."""

from __future__ import annotations

import pytest

from solocron.telemetry.alert_rules import alert_rules
from solocron.telemetry.dashboard import dashboard
from tests.unit.cli.kit import Cli


def test_it_prints_what_the_package_has(cli: Cli) -> None:
    assert cli("export", "alerts").out == alert_rules()
    assert cli("export", "dashboard", "--datasource", "prom").out == dashboard("prom")
    linked = cli("export", "alerts", "--docs", "https://docs.example.com/solocron/")
    assert "runbook_url: https://docs.example.com/solocron/how-to/monitor.md#solocronstuck" in linked.out


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("alerts", "--docs", "here"), "--docs 'here' is not a URL such as https://docs.example.com."),
        (("dashboard", "--datasource", "a b"), "--datasource 'a b' is not a uid as Grafana has them."),
        (("alerts", "--datasource", "x"), "--datasource is for `export dashboard`."),
        (("dashboard", "--docs", "https://x.example.com"), "--docs is for `export alerts`."),
    ],
)
def test_a_mistake_is_one_line(cli: Cli, args: tuple[str, ...], why: str) -> None:
    answer = cli("export", *args)
    assert (answer.code, answer.out) == (2, "")
    assert f"{why} Nothing was printed." in answer.err
