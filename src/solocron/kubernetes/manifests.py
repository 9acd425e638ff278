"""Manifests of `solocron export kubernetes`: a CronJob per job, one CronJob for all, or nodes that run all the time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from solocron.clock import SECOND
from solocron.jobs.registry import Declared
from solocron.kubernetes.expressions import fields_of
from solocron.kubernetes.names import LABELS, object_name
from solocron.kubernetes.pod import CONTAINER, GRACE, Image, check_pod_options, pod_spec

__all__ = ["MODES", "ProgramInImage", "manifests"]

MODES = ("jobs", "tick", "nodes")
_CONCURRENCY = {"skip": "Forbid", "replace": "Replace"}
_LEAST_DEADLINE = 10
"""Seconds: the controller looks every ten, and would miss a shorter deadline."""
_SLACK = 60
_HISTORY = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 3}
FAILED = 1
"""The exit code of a run that has failed for good. Any other says that the process was killed: another Pod goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramInImage:
    """A program, the image that has it, and what its nodes need."""

    target: str
    image: Image
    jobs: Sequence[Declared]
    late_for: int
    """Microseconds for which a slot is late before it is missed."""
    lease: float
    grace: float
    job_carriers: Collection[str] = ()
    """The names of the carriers that hand runs over to Jobs, for which its nodes need rights."""


def manifests(deployed: ProgramInImage, mode: str) -> list[dict[str, Any]]:
    """Return the objects of a mode."""
    found = {"jobs": _cron_jobs, "tick": _tick, "nodes": _nodes}[mode](deployed)
    rights = _rights() if deployed.job_carriers and mode != "jobs" else ()
    return [*rights, *found]


# --- a CronJob per job


def _cron_jobs(deployed: ProgramInImage) -> Iterator[dict[str, Any]]:
    for job in sorted(deployed.jobs, key=lambda one: one.name):
        yield _cron_job(deployed, job)


def _cron_job(deployed: ProgramInImage, job: Declared) -> dict[str, Any]:
    options = job.options
    # The Pod runs what would be handed over to a Job. The options of another carrier are not for the Pod.
    own = (options.hand_over or {}) if options.run_in in deployed.job_carriers else {}
    check_pod_options(own, "Nothing was printed.")
    labels = {**own.get("labels", {}), **_labels("run", job.name)}
    fields, zone = fields_of(job.name, job.schedule, (job.spec or {}).get("on_holiday"))
    late = options.start_within if options.start_within is not None else deployed.late_for
    pod = pod_spec(
        deployed.image, ["run-slot", deployed.target, job.name], options=own, memory=options.memory, cpu=options.cpu
    )
    spec: dict[str, Any] = {
        "backoffLimit": options.retries if options.on_crash == "retry" else 0,
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailJob",
                    "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": [FAILED]},
                }
            ]
        },
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if options.timeout is not None:
        attempts = options.retries + 1
        spec["activeDeadlineSeconds"] = ceil(attempts * options.timeout / SECOND + deployed.lease + _SLACK)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": object_name(job.name),
            "labels": labels,
            "annotations": {"solocron.dev/name": job.name},
        },
        "spec": {
            "schedule": fields,
            "timeZone": zone,
            "concurrencyPolicy": _CONCURRENCY.get(options.overlap.kind, "Allow"),
            "startingDeadlineSeconds": max(_LEAST_DEADLINE, ceil(late / SECOND)),
            "suspend": not options.enabled,
            **_HISTORY,
            "jobTemplate": {"spec": spec},
        },
    }


# --- one CronJob for all


def _tick(deployed: ProgramInImage) -> Iterator[dict[str, Any]]:
    pod = pod_spec(deployed.image, ["tick", deployed.target], options=_account(deployed))
    yield {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "solocron-tick", "labels": _labels("tick")},
        "spec": {
            "schedule": "* * * * *",
            "timeZone": "UTC",
            "concurrencyPolicy": "Allow",
            "startingDeadlineSeconds": 60,
            **_HISTORY,
            "jobTemplate": {
                "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": _labels("tick")}, "spec": pod}}
            },
        },
    }


# --- nodes


def _nodes(deployed: ProgramInImage) -> Iterator[dict[str, Any]]:
    for pool in sorted({job.options.pool for job in deployed.jobs}):
        name = f"solocron-{object_name(pool, 40)}"
        labels = _labels("node", instance=name)
        selector = {"app.kubernetes.io/instance": name, "app.kubernetes.io/component": "node"}
        pod = pod_spec(
            deployed.image,
            ["run", deployed.target, "--pools", pool, "--grace", f"{deployed.grace:g}s"],
            options=_account(deployed),
            restart="Always",
        )
        pod["terminationGracePeriodSeconds"] = max(GRACE, ceil(deployed.grace + 10))
        probe = {"periodSeconds": 10, "timeoutSeconds": 5}
        command = [*deployed.image.command, "health"]
        pod["containers"][0] |= {
            "livenessProbe": {"exec": {"command": command}, **probe, "failureThreshold": 3},
            "readinessProbe": {"exec": {"command": [*command, "--ready"]}, **probe},
            "startupProbe": {"exec": {"command": command}, "periodSeconds": 2, "failureThreshold": 30},
        }
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "labels": labels},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": selector}},
        }


# --- parts


def _labels(component: str, job: str | None = None, *, instance: str | None = None) -> dict[str, str]:
    made = {**LABELS, "app.kubernetes.io/name": "solocron", "app.kubernetes.io/component": component}
    if job is not None:
        made["solocron.dev/job"] = object_name(job, 63)
    if instance is not None:
        made["app.kubernetes.io/instance"] = instance
    return made


def _account(deployed: ProgramInImage) -> dict[str, Any]:
    return {"service_account": "solocron"} if deployed.job_carriers else {}


def _rights() -> Iterator[dict[str, Any]]:
    """The rights of nodes that create Jobs."""
    named = {"name": "solocron", "labels": dict(LABELS)}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named}
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": named,
        "rules": [
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "delete"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        ],
    }
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": named,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "solocron"},
        "subjects": [{"kind": "ServiceAccount", "name": "solocron"}],
    }
