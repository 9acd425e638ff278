"""The Grafana dashboard of a fleet, as the JSON that Grafana imports. Pure: the same arguments give the same text.

Each panel is a row of a table below: title, kind, unit and its queries. Node metrics are summed over nodes, fleet
metrics are the maximum over those that answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["PANELS", "Panel", "dashboard", "expressions"]

WIDTH = 24
_NS = 'namespace=~"$namespace"'
_JOB = f'{_NS}, job_name=~"$job_name"'
_POOL = f'{_NS}, pool=~"$pool"'
_RATE = "$__rate_interval"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its queries with their legends, and how wide and high it is, in units of Grafana's grid."""

    title: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 12
    height: int = 8
    help: str = ""
    alarming: bool = False
    """True if anything above zero is red."""


def _state(state: str) -> str:
    return f'sum(max by (namespace, pool, state) (solocron_jobs{{{_POOL}, state=~"{state}"}}))'


def _quantile(share: float, metric: str, by: str = "") -> str:
    inner = f"sum by (le{by}) (rate({metric}_bucket{{{_NS}}}[{_RATE}]))"
    return f"histogram_quantile({share}, {inner})"


def _by_outcome(counter: str) -> str:
    each = f"max by (namespace, job_name, outcome) (increase({counter}{{{_JOB}}}[{_RATE}]))"
    return f"sum by (outcome) ({each})"


def _recorded(share: str) -> Panel:
    query = f"max by (job_name) (solocron:run_duration_seconds:{share}{{{_JOB}}})"
    title = {"p50": "Duration, half of the runs", "p95": "Duration, 95 % of the runs"}[share]
    return Panel(
        title, ((query, "{{job_name}}"),), unit="s", help="From the recording rules of `solocron export alerts`."
    )


def _stat(title: str, query: str, *, alarming: bool = False) -> Panel:
    return Panel(title, ((query, ""),), kind="stat", width=4, height=4, alarming=alarming)


PANELS: tuple[Panel, ...] = (
    _stat("Jobs", _state(".+")),
    _stat("Live nodes", f'sum(max by (namespace, pool) (solocron_nodes{{{_POOL}, state="live"}}))'),
    _stat("Running", f"sum(max by (namespace, job_name) (solocron_job_running{{{_JOB}}}))"),
    _stat("Failing", _state("failing"), alarming=True),
    _stat("Late", _state("late|orphaned"), alarming=True),
    _stat("Paused", _state("paused")),
    Panel(
        "Runs by outcome",
        ((_by_outcome("solocron_job_runs_total"), "{{outcome}}"),),
        help="Attempts that ended, from the record: also those of processes that died.",
    ),
    Panel(
        "Slots that did not run",
        ((_by_outcome("solocron_job_slots_total"), "{{outcome}}"),),
    ),
    Panel(
        "Time since the last success",
        (
            (
                f"topk(10, time() - max by (job_name) (solocron_job_last_success_timestamp_seconds{{{_JOB}}}))",
                "{{job_name}}",
            ),
        ),
        unit="s",
        help="The ten jobs that have not succeeded for longest.",
    ),
    Panel(
        "Lateness",
        ((f"sum by (le) (increase(solocron_run_lateness_seconds_bucket{{{_JOB}}}[{_RATE}]))", "{{le}}"),),
        kind="heatmap",
        unit="s",
        help="Time between a slot and the start of its first attempt.",
    ),
    _recorded("p50"),
    _recorded("p95"),
    Panel(
        "Due, soon and waiting",
        (
            (f"max by (pool) (solocron_pool_due{{{_POOL}}})", "due in {{pool}}"),
            (f"max by (pool) (solocron_pool_soon{{{_POOL}}})", "within 2 min in {{pool}}"),
            (f"sum(max by (namespace, job_name) (solocron_job_waiting{{{_JOB}}}))", "waiting runs"),
        ),
    ),
    Panel(
        "Nodes by pool",
        ((f"max by (pool, state) (solocron_nodes{{{_POOL}}})", "{{pool}} {{state}}"),),
    ),
    Panel(
        "Takeovers and refusals",
        (
            (f"sum(increase(solocron_takeovers_total{{{_NS}}}[{_RATE}]))", "taken over"),
            (f"sum(increase(solocron_sessions_lost_total{{{_NS}}}[{_RATE}]))", "leases lost"),
            (f"sum(increase(solocron_fence_rejections_total{{{_NS}}}[{_RATE}]))", "results refused"),
        ),
    ),
    Panel(
        "Renewals of leases",
        ((f"sum by (result) (rate(solocron_renewals_total{{{_NS}}}[{_RATE}]))", "{{result}}"),),
        unit="ops",
    ),
    Panel(
        "Store: 95 % of the calls within",
        ((_quantile(0.95, "solocron_store_seconds", ", verb"), "{{verb}}"),),
        unit="s",
    ),
    Panel(
        "Store: errors, and time of a look",
        (
            (f"sum(increase(solocron_store_errors_total{{{_NS}}}[{_RATE}]))", "errors of nodes"),
            (f"max by (namespace) (solocron_scrape_seconds{{{_NS}}})", "seconds of a look, {{namespace}}"),
        ),
    ),
    Panel(
        "Hand-over",
        (
            (
                f"sum by (carrier, result) (increase(solocron_handovers_total{{{_NS}}}[{_RATE}]))",
                "{{carrier}} {{result}}",
            ),
            (f"sum by (carrier) (increase(solocron_messages_dropped_total{{{_NS}}}[{_RATE}]))", "{{carrier}} dropped"),
        ),
    ),
    Panel(
        "Pick-up: 95 % within",
        ((_quantile(0.95, "solocron_pickup_wait_seconds", ", carrier"), "{{carrier}}"),),
        unit="s",
    ),
    Panel("Open alarms", ((f"max by (kind) (solocron_alarms{{{_NS}}}) > 0", "{{kind}}"),)),
    Panel("Clock skew of nodes", ((f"max by (node) (solocron_clock_skew_seconds{{{_NS}}})", "{{node}}"),), unit="s"),
)


def expressions() -> Iterator[tuple[str, str]]:
    """Yield every query with the title of its panel."""
    for panel in PANELS:
        for query, _ in panel.queries:
            yield panel.title, query


def dashboard(datasource: str | None = None) -> str:
    """Return the JSON; `datasource` is the uid of a Prometheus in Grafana, else a variable asks for one."""
    source = {"type": "prometheus", "uid": datasource or "${datasource}"}
    made = {
        "uid": "solocron-fleet",
        "title": "Solocron",
        "description": "Jobs, nodes and leases of a Solocron fleet.",
        "tags": ["solocron"],
        "timezone": "utc",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables(source, asks=datasource is None))},
        "panels": list(_panels(source)),
    }
    return json.dumps(made, indent=2, ensure_ascii=True) + "\n"


def _variables(source: dict[str, str], *, asks: bool) -> Iterator[dict[str, Any]]:
    if asks:
        yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    for name, metric, where in (
        ("namespace", "solocron_jobs", ""),
        ("pool", "solocron_jobs", _NS),
        ("job_name", "solocron_job_running", _NS),
    ):
        query = f"label_values({metric}{{{where}}}, {name})" if where else f"label_values({metric}, {name})"
        yield {
            "name": name,
            "label": name.replace("_name", "").capitalize(),
            "type": "query",
            "datasource": source,
            "definition": query,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "sort": 1,
        }


def _panels(source: dict[str, str]) -> Iterator[dict[str, Any]]:
    x = y = row = 0
    for number, panel in enumerate(PANELS, 1):
        if x + panel.width > WIDTH:
            x, y, row = 0, y + row, 0
        row = max(row, panel.height)
        yield {
            "id": number,
            "title": panel.title,
            "description": panel.help,
            "type": panel.kind,
            "datasource": source,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
            "fieldConfig": {"defaults": _field(panel), "overrides": []},
            "options": _options(panel),
            "targets": [
                {
                    "refId": chr(ord("A") + at),
                    "datasource": source,
                    "expr": query,
                    "legendFormat": legend or "__auto",
                    "format": "heatmap" if panel.kind == "heatmap" else "time_series",
                    "instant": panel.kind == "stat",
                    "range": panel.kind != "stat",
                }
                for at, (query, legend) in enumerate(panel.queries)
            ],
        }
        x += panel.width


def _field(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.alarming:
        steps.append({"color": "red", "value": 1})
    return {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}, "color": {
        "mode": "thresholds" if panel.kind == "stat" else "palette-classic",
    }}  # fmt: skip


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"}
    if panel.kind == "heatmap":
        return {"calculate": False, "yAxis": {"unit": panel.unit}, "color": {"scheme": "Blues"}}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
