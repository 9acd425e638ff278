"""The manifests of `solocron export kubernetes`: every field is one that Kubernetes has, and says what the job says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from lightkube import codecs

from solocron import InvalidError, Run, Scheduler, allow
from solocron.kubernetes.expressions import fields_of
from solocron.kubernetes.manifests import MODES, ProgramInImage, manifests
from solocron.kubernetes.names import object_name
from solocron.kubernetes.pod import Image
from solocron.kubernetes.yaml import dump_all
from solocron.schedules import At, Calendar, Calendared, Cron, Every, Schedule

IMAGE = Image(name="registry.example/shop:7", secret="shop", namespace="shop")


shop = Scheduler("memory://exported")


@shop.cron("0 3 * * MON-FRI", tz="Europe/Vienna", retries=2, timeout="10m", start_within="5m")
def close_books(run: Run) -> None: ...


@shop.every("15m", overlap="replace", run_in="process", memory="512M", cpu=2, enabled=False)
def thumbnails(run: Run) -> None: ...


@shop.cron("H 4 * * 7", name="Invoices:EU_1", overlap=allow(3), pool="batch", on_crash="fail", retries=1)
def invoices(run: Run) -> None: ...


def deployed(**more: Any) -> ProgramInImage:
    jobs = list(shop.registry.jobs.values())
    return ProgramInImage(
        target="shop.cron:scheduler", image=IMAGE, jobs=jobs, late_for=25_000_000, lease=15, grace=30, **more
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("carriers", [(), ("pods",)])
def test_every_field_is_known_to_kubernetes(mode: str, carriers: tuple[str, ...]) -> None:
    found = manifests(deployed(job_carriers=carriers), mode)
    assert [one.to_dict() for one in codecs.load_all_yaml(dump_all(found))] == found


def test_yaml_reads_back_as_what_was_written() -> None:
    odd = {
        "a": ["1", 1, True, None, "yes", "null", "ü: #", "", {"b": []}, [{"c": "d"}, {}]],
        "f:g": {"h": "*"},
        "on": "x",
    }
    assert list(yaml.safe_load_all(dump_all([odd, {"k": "v"}]))) == [odd, {"k": "v"}]


class TestCronJobs:
    def by_name(self) -> dict[str, Any]:
        return {
            one["metadata"]["annotations"]["solocron.dev/name"]: one["spec"] for one in manifests(deployed(), "jobs")
        }

    def test_the_decorator_becomes_the_fields_of_a_cron_job(self) -> None:
        spec = self.by_name()["close_books"]
        assert (spec["schedule"], spec["timeZone"]) == ("0 3 * * MON-FRI", "Europe/Vienna")
        assert (spec["concurrencyPolicy"], spec["startingDeadlineSeconds"], spec["suspend"]) == ("Forbid", 300, False)
        job = spec["jobTemplate"]["spec"]
        assert (job["backoffLimit"], job["activeDeadlineSeconds"]) == (2, 3 * 600 + 15 + 60)
        (container,) = job["template"]["spec"]["containers"]
        assert container["command"] + container["args"] == [
            "solocron",
            "run-slot",
            "shop.cron:scheduler",
            "close_books",
        ]
        assert container["env"] == [
            {"name": "SOLOCRON_STORE", "valueFrom": {"secretKeyRef": {"name": "shop", "key": "SOLOCRON_STORE"}}},
            {"name": "SOLOCRON_NAMESPACE", "value": "shop"},
        ]

    def test_limits_overlap_and_a_disabled_job(self) -> None:
        spec = self.by_name()["thumbnails"]
        (container,) = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        assert container["resources"] == {"limits": {"memory": "536870912", "cpu": "2"}}
        assert (spec["schedule"], spec["concurrencyPolicy"], spec["suspend"]) == ("*/15 * * * *", "Replace", True)

    def test_a_crash_that_may_not_be_repeated_has_no_second_pod(self) -> None:
        spec = self.by_name()["Invoices:EU_1"]
        assert spec["jobTemplate"]["spec"]["backoffLimit"] == 0
        assert (spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == ("Allow", 25)
        assert spec["schedule"].endswith(" 4 * * 0"), "the controller knows no day 7"


class TestNodes:
    def test_a_deployment_and_a_budget_for_each_pool(self) -> None:
        found = manifests(deployed(), "nodes")
        assert [(one["kind"], one["metadata"]["name"]) for one in found] == [
            ("Deployment", "solocron-batch"),
            ("PodDisruptionBudget", "solocron-batch"),
            ("Deployment", "solocron-default"),
            ("PodDisruptionBudget", "solocron-default"),
        ]
        pod = found[0]["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] == 40
        assert pod["containers"][0]["args"] == ["run", "shop.cron:scheduler", "--pools", "batch", "--grace", "30s"]
        assert pod["containers"][0]["readinessProbe"]["exec"]["command"] == ["solocron", "health", "--ready"]

    def test_rights_only_where_nodes_create_jobs(self) -> None:
        kinds = [one["kind"] for one in manifests(deployed(job_carriers=["pods"]), "nodes")]
        assert kinds[:3] == ["ServiceAccount", "Role", "RoleBinding"]
        assert "Role" not in [one["kind"] for one in manifests(deployed(), "tick")]


class TestExpressions:
    @pytest.mark.parametrize(
        ("schedule", "fields"),
        [
            (Cron("@daily"), "0 0 * * *"),
            (Cron("0 9 1,15 jan-mar *"), "0 9 1,15 JAN-MAR *"),
            (Cron("0 9 * * 5-7"), "0 9 * * 5-6,0"),
            (Cron("0 9 * * 6-7"), "0 9 * * 6,0"),
            (Cron("0 9 * * 1,7"), "0 9 * * 1,0"),
            (Cron("0 9 * jul wed"), "0 9 * JUL WED"),
            (Every("1m"), "* * * * *"),
            (Every("1h"), "0 * * * *"),
            (Every("6h"), "0 */6 * * *"),
            (Every("1d"), "0 0 * * *"),
            (Calendared(Cron("0 9 * * *"), Calendar.make("bank", 1, frozenset({5, 6}), {})), "0 9 * * *"),
        ],
        ids=repr,
    )
    def test_what_a_cron_job_can_say(self, schedule: Schedule, fields: str) -> None:
        assert fields_of("work", schedule) == (fields, "UTC")

    @pytest.mark.parametrize(
        ("schedule", "why"),
        [
            (Cron("30 0 9 * * *"), "has seconds"),
            (Cron("0 9 L * *"), "'L' in '0 9 L * *' means nothing to a CronJob"),
            (Cron("0 9 LW * *"), "'LW'"),
            (Cron("0 9 * * 5#2"), "'5#2'"),
            (Cron("0 9 * * 5L"), "'5L'"),
            (Every("7m"), "does not divide an hour or a day"),
            (Every("10s"), "does not divide"),
            (At(datetime(2027, 1, 1, tzinfo=UTC)), "not a cron expression"),
        ],
        ids=repr,
    )
    def test_the_rest_is_refused_by_name(self, schedule: Schedule, why: str) -> None:
        with pytest.raises(InvalidError, match="work: ") as refused:
            fields_of("work", schedule)
        assert why in str(refused.value)
        assert "--mode tick" in str(refused.value)


def test_names_keep_to_the_bound_and_stay_apart() -> None:
    assert object_name("close-books") == "close-books"
    long = [object_name("x" * 80 + end) for end in "ab"]
    assert all(len(one) <= 52 for one in long)
    assert len({*long, object_name("Close_Books"), object_name("close.books"), object_name("_")}) == 5
