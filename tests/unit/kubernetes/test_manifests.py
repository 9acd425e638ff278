"""The manifests of `solocron export kubernetes`: every field is one that Kubernetes has, and says what the job says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from lightkube import codecs

from solocron import InvalidError, Run, Scheduler, allow
from solocron.clock import to_us
from solocron.kubernetes.expressions import fields_of
from solocron.kubernetes.manifests import MODES, ProgramInImage, manifests
from solocron.kubernetes.names import object_name
from solocron.kubernetes.pod import Image
from solocron.kubernetes.yaml import dump_all
from solocron.schedules import At, Calendar, Calendared, Cron, Every, Schedule

DAY = timedelta(days=1)
WEEK = [datetime(2027, 1, 3, tzinfo=UTC) + n * DAY for n in range(7)]  # from Sunday on
IMAGE = Image(name="registry.example/shop:7", secret="shop", namespace="shop")


shop = Scheduler("memory://exported")


@shop.cron("0 3 * * MON-FRI", tz="Europe/Vienna", retries=2, timeout="10m", start_within="5m")
def close_books(run: Run) -> None: ...


@shop.every("15m", overlap="replace", run_in="process", memory="512M", cpu=2, enabled=False)
def thumbnails(run: Run) -> None: ...


@shop.cron("H 4 * * 7", name="Invoices:EU_1", overlap=allow(3), pool="batch", on_crash="fail", retries=1)
def invoices(run: Run) -> None: ...


def deployed(**more: Any) -> ProgramInImage:
    more = {"jobs": list(shop.registry.jobs.values()), **more}
    return ProgramInImage(target="shop.cron:scheduler", image=IMAGE, late_for=25_000_000, lease=15, grace=30, **more)


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
            (Cron("0 9 * * 3/2"), "0 9 * * 3,5,0"),
            (Cron("0 9 * * fri/2"), "0 9 * * 5,0"),
            (Cron("0 9 * * 1-7/3"), "0 9 * * 1,4,0"),
            (Cron("0 9 * * 1-5/2"), "0 9 * * 1-5/2"),
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

    def test_the_controller_has_a_pod_on_every_day_of_the_week_that_the_store_has(self) -> None:
        """It used to have none on Sundays that a step leads to: `3/2` ends on a 7 here, and on a 6 there."""
        ranges = [f"{low}-{high}" for low in range(8) for high in range(low + 1, 8)]
        for whole in ("*", *map(str, range(8)), *ranges):
            for step in ("", *(f"/{n}" for n in range(1, 8))):
                schedule = Cron(f"0 9 * * {whole}{step}")
                ours = {n for n in range(7) if schedule.count_us(to_us(WEEK[n]), to_us(WEEK[n] + DAY))}
                assert _days_of_a_controller(fields_of("work", schedule)[0].split()[4]) == ours, schedule

    def test_a_job_whose_slots_are_moved_is_refused(self) -> None:
        """Its slot would have waited for the Pod of the next month."""
        moving = Scheduler("memory://moved")
        moving.cron("0 9 1 * *", name="fees", calendar="bank", on_holiday="next")(lambda: None)
        with pytest.raises(InvalidError, match=r"fees: on_holiday='next' moves slots .* use --mode tick"):
            manifests(deployed(jobs=list(moving.registry.jobs.values())), "jobs")
        assert manifests(deployed(jobs=list(moving.registry.jobs.values())), "tick")

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


def _days_of_a_controller(field: str) -> set[int]:
    """Read a field as the parser of the CronJob controller does (robfig/cron 3): 0 to 6, and N/S goes on to 6."""
    found: set[int] = set()
    for part in field.split(","):
        whole, _, step = part.partition("/")
        first, dash, last = ("0", "-", "6") if whole == "*" else whole.partition("-")
        low, high = int(first), int(last) if dash else 6 if step else int(first)
        assert low <= high <= 6, "the controller refuses it"
        found |= set(range(low, high + 1, int(step or 1)))
    return found


def test_names_keep_to_the_bound_and_stay_apart() -> None:
    assert object_name("close-books") == "close-books"
    long = [object_name("x" * 80 + end) for end in "ab"]
    assert all(len(one) <= 52 for one in long)
    assert len({*long, object_name("Close_Books"), object_name("close.books"), object_name("_")}) == 5
