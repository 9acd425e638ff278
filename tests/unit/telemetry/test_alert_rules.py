"""Alert rules and dashboard: checked by promtool, each alert with series that make it fire and series that do not."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from solocron import Scheduler
from solocron.telemetry.alert_rules import alert_rules
from solocron.telemetry.dashboard import PANELS, dashboard, expressions
from solocron.telemetry.families import exposition
from solocron.telemetry.fleet import FleetMetrics
from solocron.telemetry.metrics import NodeMetrics
from tests.required import require_program
from tests.unit.docs.pages import ROOT

RULES = [rule for group in yaml.safe_load(alert_rules())["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"] for rule in RULES if "record" in rule}

JOB = 'namespace="d",job_name="j"'
POOL = 'namespace="d",pool="p"'


@dataclass(frozen=True)
class Case:
    """Series a minute apart, in promtool's notation: those that fire, and those that are well."""

    fires: dict[str, str]
    well: dict[str, str]
    labels: dict[str, str]
    at: str = "20m"


HOURLY = {
    f"solocron_job_period_seconds{{{JOB}}}": "300x40",
    f"solocron_job_registered_timestamp_seconds{{{JOB}}}": "0x40",
}
LATENESS = f"solocron_run_lateness_seconds_bucket{{{JOB},le="
CASES: dict[str, Case] = {
    "SolocronJobOverdue": Case(
        fires=HOURLY | {f"solocron_job_last_success_timestamp_seconds{{{JOB}}}": "100x40"},
        well=HOURLY | {f"solocron_job_last_success_timestamp_seconds{{{JOB}}}": "0+60x40"},
        labels={"job_name": "j"},
    ),
    "SolocronJobFailing": Case(
        fires={f"solocron_job_failures_in_a_row{{{JOB}}}": "3x40"},
        well={f"solocron_job_failures_in_a_row{{{JOB}}}": "2x40"},
        labels={"job_name": "j"},
    ),
    "SolocronJobMissed": Case(
        fires={f'solocron_job_slots_total{{{JOB},outcome="missed"}}': "0x15 1x25"},
        well={f'solocron_job_slots_total{{{JOB},outcome="missed"}}': "7x40"},
        labels={"job_name": "j"},
    ),
    "SolocronJobLate": Case(
        fires={f'{LATENESS}"60"}}': "0+10x40", f'{LATENESS}"15"}}': "0x40", f'{LATENESS}"+Inf"}}': "0+10x40"},
        well={f'{LATENESS}"60"}}': "0+10x40", f'{LATENESS}"15"}}': "0+10x40", f'{LATENESS}"+Inf"}}': "0+10x40"},
        labels={"job_name": "j"},
    ),
    "SolocronNoNode": Case(
        fires={f'solocron_jobs{{{POOL},state="on"}}': "2x40", f'solocron_nodes{{{POOL},state="live"}}': "0x40"},
        well={f'solocron_jobs{{{POOL},state="paused"}}': "2x40", f'solocron_nodes{{{POOL},state="live"}}': "0x40"},
        labels={"pool": "p"},
    ),
    "SolocronOrphaned": Case(
        fires={f'solocron_jobs{{{POOL},state="orphaned"}}': "1x40", f'solocron_nodes{{{POOL},state="live"}}': "1x40"},
        well={f'solocron_jobs{{{POOL},state="orphaned"}}': "1x40", f'solocron_nodes{{{POOL},state="live"}}': "0x40"},
        labels={"pool": "p"},
    ),
    "SolocronNotPickedUp": Case(
        fires={'solocron_handovers_total{namespace="d",carrier="q",result="lapsed"}': "0x15 1x25"},
        well={'solocron_handovers_total{namespace="d",carrier="q",result="published"}': "0+1x40"},
        labels={"carrier": "q"},
    ),
    "SolocronStuck": Case(
        fires={'solocron_alarms{namespace="d",kind="stuck"}': "1x40"},
        well={'solocron_alarms{namespace="d",kind="late"}': "1x40"},
        labels={},
    ),
    "SolocronSessionLost": Case(
        fires={'solocron_sessions_lost_total{namespace="d",node="n"}': "0x15 1x25"},
        well={'solocron_sessions_lost_total{namespace="d",node="n"}': "1x40"},
        labels={"node": "n"},
    ),
    "SolocronFenceRejected": Case(
        fires={'solocron_fence_rejections_total{namespace="d",node="n"}': "0x15 1x25"},
        well={'solocron_fence_rejections_total{namespace="d",node="n"}': "1x40"},
        labels={"node": "n"},
    ),
    "SolocronStoreDown": Case(
        fires={'solocron_store_up{namespace="d",instance="a"}': "0x40"},
        well={
            'solocron_store_up{namespace="d",instance="a"}': "0x40",
            'solocron_store_up{namespace="d",instance="b"}': "1x40",
        },
        labels={},
    ),
    "SolocronScrapeSlow": Case(
        fires={'solocron_scrape_seconds{namespace="d"}': "3x40"},
        well={'solocron_scrape_seconds{namespace="d"}': "1x40"},
        labels={},
    ),
    "SolocronClockSkew": Case(
        fires={'solocron_clock_skew_seconds{namespace="d",node="n"}': "-2x40"},
        well={'solocron_clock_skew_seconds{namespace="d",node="n"}': "0.5x40"},
        labels={"node": "n"},
    ),
    "SolocronVersionsDiffer": Case(
        fires={
            'solocron_build_info{namespace="d",node="a",version="1",zone_data="z"}': "1x80",
            'solocron_build_info{namespace="d",node="b",version="2",zone_data="z"}': "1x80",
        },
        well={
            'solocron_build_info{namespace="d",node="a",version="1",zone_data="z"}': "1x80",
            'solocron_build_info{namespace="d",node="b",version="1",zone_data="z"}': "1x80",
        },
        labels={},
        at="70m",
    ),
}


def check(tmp_path: Path, *args: str, text: str | None = None) -> str:
    """Run promtool; return what it says, and fail with that if it is not content."""
    program = require_program("promtool", "apt-get install prometheus")
    done = subprocess.run([program, *args], input=text, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_alert_fires_when_it_should_and_is_silent_when_all_is_well(tmp_path: Path) -> None:
    (tmp_path / "alerts.yml").write_text(alert_rules())
    assert CASES.keys() == ALERTS.keys()
    tests: list[dict[str, Any]] = []
    for name, case in CASES.items():
        for series, fires in ((case.fires, True), (case.well, False)):
            expected = {"exp_labels": {"severity": ALERTS[name]["labels"]["severity"], "namespace": "d"} | case.labels}
            tests.append({
                "interval": "1m",
                "input_series": [{"series": key, "values": value} for key, value in series.items()],
                "alert_rule_test": [
                    {"alertname": name, "eval_time": case.at, "exp_alerts": [expected] if fires else []}
                ],
            })  # fmt: skip
    (tmp_path / "tests.json").write_text(json.dumps({"rule_files": ["alerts.yml"], "tests": _worded(tests)}))
    check(tmp_path, "test", "rules", "tests.json")


def _worded(tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the annotations as they read: promtool compares them too."""
    for test in tests:
        for one in test["alert_rule_test"]:
            for expected in one["exp_alerts"]:
                name, words = one["alertname"], dict[str, str]()
                for key, text in ALERTS[name]["annotations"].items():
                    text = re.sub(r"{{ \$value( \| humanizeDuration)? }}", VALUES[name], text)
                    for label, value in expected["exp_labels"].items():
                        text = text.replace(f"{{{{ $labels.{label} }}}}", value)
                    words[key] = text
                expected["exp_annotations"] = words
    return tests


VALUES = dict.fromkeys(CASES, "1") | {
    "SolocronJobOverdue": "18m 20s", "SolocronJobFailing": "3", "SolocronJobLate": "57.75s", "SolocronNoNode": "2",
    "SolocronScrapeSlow": "3s", "SolocronClockSkew": "2s", "SolocronVersionsDiffer": "2",
}  # fmt: skip


def test_a_pause_keeps_an_overdue_job_silent_and_a_job_that_never_succeeded_is_overdue(tmp_path: Path) -> None:
    (tmp_path / "alerts.yml").write_text(alert_rules())
    paused = HOURLY | {f"solocron_job_paused{{{JOB}}}": "1x40"}
    query = 'count(ALERTS{alertname="SolocronJobOverdue", alertstate="firing", job_name="j"})'

    def case(series: dict[str, str], fires: bool) -> dict[str, Any]:
        expected = [{"labels": "{}", "value": 1}] if fires else []
        return {
            "interval": "1m",
            "input_series": [{"series": key, "values": value} for key, value in series.items()],
            "promql_expr_test": [{"expr": query, "eval_time": "20m", "exp_samples": expected}],
        }

    tests = [case(paused, False), case(HOURLY, True)]
    (tmp_path / "tests.json").write_text(json.dumps({"rule_files": ["alerts.yml"], "tests": tests}))
    check(tmp_path, "test", "rules", "tests.json")


def names() -> set[str]:
    """Every metric that the code makes, with the suffixes of histograms, and what the rules record."""
    registry, scheduler = CollectorRegistry(), Scheduler("memory://names", enabled=True)
    made = NodeMetrics(registry, namespace=str, node=str, version="", zone_data="")
    found = set(RECORDED)
    for one in [*vars(made._made).values(), *made._made.counted.values()]:
        if isinstance(one, dict):
            continue
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(one._type, ("",))
        found |= {f"{one._name}{suffix}" for suffix in suffixes}
    fleet = FleetMetrics(scheduler.open, str, clock=float)
    return found | {family.shown for family in fleet.families()}


def test_every_metric_that_a_rule_or_a_panel_names_exists() -> None:
    known, used = names(), set[str]()
    for expression in [rule["expr"] for rule in RULES] + [query for _, query in expressions()]:
        used |= set(re.findall(r"solocron[:_][a-z0-9_:]+", expression))
    assert used <= known, used - known


def test_every_panel_is_a_query_that_prometheus_reads(tmp_path: Path) -> None:
    rules = [{"record": f"p:{n}", "expr": _filled(query)} for n, (_, query) in enumerate(expressions())]
    (tmp_path / "panels.json").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    check(tmp_path, "check", "rules", "panels.json")
    check(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", str(_written(tmp_path)))


def _filled(query: str) -> str:
    return re.sub(r"\$(namespace|pool|job_name)\b", ".*", query).replace("$__rate_interval", "1m")


def _written(tmp_path: Path) -> Path:
    (tmp_path / "alerts.yml").write_text(alert_rules())
    return tmp_path / "alerts.yml"


def test_the_text_of_a_scrape_pleases_promtool(tmp_path: Path) -> None:
    scheduler = Scheduler("memory://scrape", enabled=True)
    scheduler.every("1h", name="job")(lambda: None)
    scheduler.tick()
    fleet = FleetMetrics(scheduler.open, lambda: "default", clock=float)
    assert check(tmp_path, "check", "metrics", text=exposition(fleet.families())) == ""


def test_the_dashboard_is_stable_and_its_panels_do_not_overlap() -> None:
    made = json.loads(dashboard())
    assert dashboard() == dashboard()
    assert [panel["title"] for panel in made["panels"]] == [panel.title for panel in PANELS]
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert "${datasource}" not in dashboard("prom")


def test_every_alert_has_its_section_in_the_page_that_it_names() -> None:
    page = (ROOT / "docs" / "how-to" / "monitor.md").read_text()
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"] == f"docs/how-to/monitor.md#{name.lower()}"
        assert f"\n### {name}\n" in page
