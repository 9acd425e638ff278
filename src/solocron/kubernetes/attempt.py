"""The Job of one attempt, as the carrier creates it: its Pod picks the run up, and its end is of no interest."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from solocron.dispatch.carrier import Message, short_name
from solocron.kubernetes.names import LABELS
from solocron.kubernetes.pod import Image, pod_spec

__all__ = ["job_of_attempt"]

KEPT = 3600
"""Seconds for which an ended Job is kept, for its logs; the record of the run is in the store."""
_SLACK = 60.0


def job_of_attempt(
    message: Message, image: Image, target: str, *, lease: float, template: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the manifest. The fields of `template` are kept where this one has none."""
    options = message.options
    labels = {**LABELS, "app.kubernetes.io/component": "run", "solocron.dev/job": short_name(message.job)}
    labels = {name: value for name, value in labels.items() if value}
    facts = {"name": message.job, "namespace": message.namespace, "run": message.run, "attempt": str(message.attempt)}
    facts |= {"slot": message.slot, "key": message.key}
    args = ["run-slot", target, "--run", message.run, "--attempt", str(message.attempt)]
    pod = pod_spec(image, args, options=options, memory=message.memory, cpu=message.cpu)
    if message.timeout is not None:
        # Only for a Pod that cannot stop its body at the deadline. Of the Pod and not of the Job, whose clock runs
        # while the Pod waits for a machine.
        pod["activeDeadlineSeconds"] = ceil(message.timeout + lease + _SLACK)
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "completions": 1,
        "ttlSecondsAfterFinished": KEPT,
        "template": {
            "metadata": {"labels": {**options.get("labels", {}), **labels}},
            "spec": pod,
        },
    }
    made = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": message.id,
            "labels": {**options.get("labels", {}), **labels},
            "annotations": {f"solocron.dev/{name}": value for name, value in facts.items()},
        },
        "spec": spec,
    }
    return merged(template or {}, made)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return both mappings as one; `above` counts. Containers are merged by their names."""
    made = dict(below)
    for name, value in above.items():
        known = made.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            made[name] = merged(known, value)
        elif name == "containers" and isinstance(known, list):
            own = {one["name"]: one for one in value}
            others = [merged(one, own.pop(one["name"])) if one.get("name") in own else one for one in known]
            made[name] = [*others, *own.values()]
        elif name == "env" and isinstance(known, list):
            ours = {one["name"] for one in value}
            made[name] = [*(one for one in known if one.get("name") not in ours), *value]
        else:
            made[name] = value
    return made
