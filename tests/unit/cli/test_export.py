"""`solocron export`: files for other tools, byte for byte as the package has them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from bench.environments import Peer, python_of
from solocron.kubernetes.manifests import MODES
from solocron.telemetry.alert_rules import alert_rules
from solocron.telemetry.dashboard import dashboard
from tests.unit.cli.kit import OWN, Cli, Write

ROOT = Path(__file__).resolve().parents[3]


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


EVERY_OPTION = """
    from solocron import Scheduler, allow
    from solocron.carriers.kubernetes import KubernetesCarrier

    scheduler = Scheduler("sqlite:///shop.db", namespace="shop", lease="15s", grace="45s")
    scheduler.carrier("pods", KubernetesCarrier("every_shop:scheduler", image="shop:7", secret="shop"))

    @scheduler.cron("0 3 * * MON-FRI", tz="Europe/Vienna", retries=2, timeout="10m", start_within="5m", pool="batch")
    def close_books(): ...

    @scheduler.cron("H 4 * * *", overlap="replace", enabled=False, start_within="2s", on_crash="fail", retries=1)
    def report(): ...

    @scheduler.every("15m", name="Invoices:" + "x" * 60, overlap=allow(3))
    def invoices(): ...

    @scheduler.cron(
        "0 2 * * *", run_in="pods", memory="1G", cpu=2,
        hand_over={
            "node_selector": {"gpu": "a100"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}}, "resources": {"limits": {"nvidia.com/gpu": "1"}},
            "service_account": "bank", "image": "train:7", "env": {"DEPTH": "3"}, "priority_class": "batch",
            "labels": {"team": "models"},
        },
    )
    def train(): ...

    scheduler.carrier("queue", lambda message: None)

    @scheduler.cron("0 5 * * *", run_in="queue", hand_over={"priority": 5})
    def mail(): ...
"""
"""A module whose jobs have every option that a manifest shows."""


def exported(cli: Cli, write: Write, mode: str) -> str:
    write("every_shop.py", EVERY_OPTION)
    answer = cli("export", "kubernetes", "every_shop", "--image", "shop:7", "--secret", "shop", "--mode", mode)
    assert (answer.code, answer.err) == (0, "")
    return answer.out


def test_each_field_of_a_cron_job(cli: Cli, write: Write) -> None:
    found = {
        one["metadata"]["annotations"]["solocron.dev/name"]: one
        for one in yaml.safe_load_all(exported(cli, write, "jobs"))
    }
    spec = {name: one["spec"] for name, one in found.items()}
    job = {name: one["jobTemplate"]["spec"] for name, one in spec.items()}
    long = next(name for name in found if name.startswith("Invoices:"))
    name = found[long]["metadata"]["name"]
    assert re.fullmatch(r"invoices-x+-[0-9a-f]{8}", name)
    assert len(name) == 52
    assert (spec["close_books"]["schedule"], spec["close_books"]["timeZone"]) == ("0 3 * * MON-FRI", "Europe/Vienna")
    assert re.fullmatch(r"\d+ 4 \* \* \*", spec["report"]["schedule"]), "H is resolved"
    assert spec[long]["schedule"] == "*/15 * * * *"
    policies = [spec[one]["concurrencyPolicy"] for one in ("close_books", "report", long)]
    assert policies == ["Forbid", "Replace", "Allow"]
    deadlines = [spec[one]["startingDeadlineSeconds"] for one in ("close_books", "report")]
    assert deadlines == [300, 10], "at least as long as the controller needs"
    assert [job[one]["backoffLimit"] for one in ("close_books", "report", long)] == [2, 0, 0]
    assert job["close_books"]["podFailurePolicy"]["rules"] == [
        {"action": "FailJob", "onExitCodes": {"containerName": "run", "operator": "In", "values": [1]}}
    ]
    assert job["close_books"]["template"]["spec"]["restartPolicy"] == "Never", "podFailurePolicy demands it"
    assert job["close_books"]["activeDeadlineSeconds"] == 3 * 600 + 15 + 60
    assert "activeDeadlineSeconds" not in job["report"]
    assert [spec[one]["suspend"] for one in ("close_books", "report")] == [False, True]
    pod = job["train"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"gpu": "a100"}, [{"key": "gpu", "operator": "Exists"}])
    assert (pod["affinity"], pod["serviceAccountName"], pod["priorityClassName"]) == (
        {"nodeAffinity": {}}, "bank", "batch",
    )  # fmt: skip
    assert container["resources"]["limits"] == {"memory": str(2**30), "cpu": "2", "nvidia.com/gpu": "1"}
    assert (container["image"], container["env"][0]) == ("train:7", {"name": "DEPTH", "value": "3"})
    assert container["env"][1]["valueFrom"]["secretKeyRef"] == {"name": "shop", "key": "SOLOCRON_STORE"}
    assert job["train"]["template"]["metadata"]["labels"]["team"] == "models"
    assert set(job["mail"]["template"]["spec"]) == {"restartPolicy", "terminationGracePeriodSeconds", "containers"}
    labels = found["close_books"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "solocron"


def test_the_other_modes(cli: Cli, write: Write) -> None:
    *rights, tick = yaml.safe_load_all(exported(cli, write, "tick"))
    assert [one["kind"] for one in rights] == ["ServiceAccount", "Role", "RoleBinding"]
    assert (tick["spec"]["schedule"], tick["spec"]["concurrencyPolicy"]) == ("* * * * *", "Allow")
    (container,) = tick["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["tick", "every_shop"]
    nodes = [*yaml.safe_load_all(exported(cli, write, "nodes"))][3:]
    assert [(one["kind"], one["metadata"]["name"]) for one in nodes] == [
        (kind, f"solocron-{pool}") for pool in ("batch", "default") for kind in ("Deployment", "PodDisruptionBudget")
    ]
    pod = nodes[0]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 55, "the grace and ten seconds"
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= pod["containers"][0].keys()


VALIDATE = """
import sys, kubernetes_validate, yaml
for one in yaml.safe_load_all(sys.stdin):
    kubernetes_validate.validate(one, "1.37", strict=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_the_schemas_of_kubernetes_accept_them(cli: Cli, write: Write, mode: str) -> None:
    """In an environment of its own: the schemas are 70 MB."""
    requires = ("kubernetes-validate==1.37.0",)
    python = python_of(Peer("kubernetes-schemas", "the schemas of Kubernetes", "", requires), ROOT / "build")
    text = exported(cli, write, mode)
    done = subprocess.run([python, "-c", VALIDATE], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
