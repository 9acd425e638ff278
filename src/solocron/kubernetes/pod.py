"""The Pod of a run: what the Job of an attempt and the exported manifests have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solocron.dispatch.carrier import check_options
from solocron.errors import InvalidError

__all__ = ["CONTAINER", "GRACE", "POD_OPTIONS", "Image", "check_pod_options", "pod_spec"]

CONTAINER = "run"
GRACE = 40
"""Seconds from SIGTERM to SIGKILL: the grace of a node, and time to record the end."""
STORE = "SOLOCRON_STORE"

POD_OPTIONS: Mapping[str, type | tuple[type, ...]] = {
    "node_selector": Mapping,
    "tolerations": (list, tuple),
    "affinity": Mapping,
    "resources": Mapping,
    "service_account": str,
    "image": str,
    "env": Mapping,
    "priority_class": str,
    "labels": Mapping,
}
"""The options of `hand_over` for a Pod, and the types of their values."""

_FIELDS = {
    "node_selector": "nodeSelector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "service_account": "serviceAccountName",
    "priority_class": "priorityClassName",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The container image that has the jobs, and where its processes find the store."""

    name: str
    command: tuple[str, ...] = ("solocron",)
    secret: str | None = None
    """The Secret whose key SOLOCRON_STORE is the URL of the store; None: the image or the Pod knows it."""
    namespace: str = "default"
    """The namespace in the store, not in the cluster."""


def check_pod_options(options: Mapping[str, Any], undone: str) -> None:
    """Refuse options that a Pod does not have, and values of the wrong type."""
    check_options(options, POD_OPTIONS, "a Pod", undone)
    for name, value in options.items():
        wanted = POD_OPTIONS[name]
        if not isinstance(value, wanted):
            what = {str: "a string", Mapping: "a mapping"}.get(wanted, "a list")  # type: ignore[call-overload]
            raise InvalidError(f"hand_over={{{name!r}: {value!r:.60}}} is not {what}. {undone}")


def pod_spec(
    image: Image,
    args: Sequence[str],
    *,
    options: Mapping[str, Any] | None = None,
    memory: int | None = None,
    cpu: int | None = None,
    restart: str = "Never",
) -> dict[str, Any]:
    """Return the spec of a Pod with one container, which calls the command line."""
    options = options or {}
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": options.get("image", image.name),
        "command": list(image.command),
        "args": list(args),
        "env": _environment(image, options.get("env", {})),
    }
    resources = _resources(options.get("resources", {}), memory, cpu)
    if resources:
        container["resources"] = resources
    spec: dict[str, Any] = {"restartPolicy": restart, "terminationGracePeriodSeconds": GRACE, "containers": [container]}
    for option, field in _FIELDS.items():
        if option in options:
            value = options[option]
            spec[field] = list(value) if isinstance(value, tuple) else value
    return spec


def _environment(image: Image, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"name": name, "value": str(value)} for name, value in sorted(given.items())]
    if image.secret is not None and STORE not in given:
        made.append({"name": STORE, "valueFrom": {"secretKeyRef": {"name": image.secret, "key": STORE}}})
    if "SOLOCRON_NAMESPACE" not in given:
        made.append({"name": "SOLOCRON_NAMESPACE", "value": image.namespace})
    return made


def _resources(given: Mapping[str, Any], memory: int | None, cpu: int | None) -> dict[str, Any]:
    """Return the resources; the limits of the job are those of the Pod, unless it names others."""
    limits = {} if memory is None else {"memory": str(memory)}
    limits |= {} if cpu is None else {"cpu": str(cpu)}
    limits |= given.get("limits", {})
    rest = {name: value for name, value in given.items() if name != "limits"}
    return {**rest, "limits": limits} if limits else rest
