"""`solocron export`: files for other tools, byte for byte as the package has them."""

from __future__ import annotations

import pytest
import yaml

from solocron.telemetry.alert_rules import alert_rules
from solocron.telemetry.dashboard import dashboard
from tests.unit.cli.kit import OWN, Cli, Write


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
        (("alerts", "shop"), "TARGET is for `export kubernetes`."),
        (("kubernetes", "--image", "x"), "give TARGET and --image, which has it."),
        (("kubernetes", "shop", "--image", "x", "--mode", "all"), "--mode 'all' is none of jobs, tick, nodes."),
    ],
)
def test_a_mistake_is_one_line(cli: Cli, args: tuple[str, ...], why: str) -> None:
    answer = cli("export", *args)
    assert (answer.code, answer.out) == (2, "")
    assert f"{why} Nothing was printed." in answer.err


def test_manifests_are_those_of_the_target(cli: Cli, write: Write) -> None:
    write("own_shop.py", OWN)
    found = [*yaml.safe_load_all(cli("export", "kubernetes", "own_shop", "--image", "shop:7", "--mode", "jobs").out)]
    assert [one["metadata"]["name"] for one in found] == ["invoices"]
    (container,) = found[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run-slot", "own_shop", "invoices"]
    again = [cli("export", "kubernetes", "own_shop", "--image", "shop:7").out for _ in range(2)]
    assert again[0] == again[1]
    nodes = [*yaml.safe_load_all(again[0])]
    assert [one["kind"] for one in nodes] == ["Deployment", "PodDisruptionBudget"]
