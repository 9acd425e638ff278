"""A stand-in for a cluster: the part of the API that the carrier uses, and a kubelet that runs Pods as processes.

It is not Kubernetes. It checks that a manifest has only fields that Kubernetes knows, refuses a name twice, and keeps
Jobs and Pods in memory. Whether a real cluster does the same is not shown by it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lightkube.resources.batch_v1 import Job

from tests.servers import processes

__all__ = ["UNSCHEDULABLE", "Cluster"]

UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes have a GPU"}
    ],
}


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """As many nodes and Pods may ask at once; the usual five make some of them wait for a second or more."""


class Cluster:
    """Serves the API on loopback. `scheduled` False: Pods stay Pending, as where no machine has room."""

    def __init__(self, folder: Path, secrets: Mapping[str, Mapping[str, str]]) -> None:
        self.folder = folder
        self.secrets = secrets
        self.jobs: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, subprocess.Popen[bytes]] = {}
        self.created: list[str] = []
        self.refusal: tuple[int, str] | None = None
        self.scheduled = True
        self.pod_status: Mapping[str, Any] | None = UNSCHEDULABLE
        """What the API says of a Pod that does not run; None: the Job has none."""
        self.mutex = threading.Lock()
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(*cluster.create(body))

            def do_GET(self) -> None:
                self._answer(*cluster.get(self.path))

            def do_DELETE(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self._answer(*cluster.delete(self.path.partition("?")[0].rpartition("/")[2]))

            def _answer(self, status: int, value: Mapping[str, Any]) -> None:
                content = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None: ...

        self._server = _Listener(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(_kubeconfig(f"http://127.0.0.1:{self._server.server_address[1]}")))

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for pod in self.pods.values():
            if pod.poll() is None:
                processes.send(signal.SIGKILL, processes.tree(pod.pid))
            pod.wait()

    # --- the API

    def create(self, manifest: dict[str, Any]) -> tuple[int, Mapping[str, Any]]:
        name = manifest["metadata"]["name"]
        with self.mutex:
            if self.refusal is not None:
                return self.refusal[0], _status(*self.refusal)
            if name in self.jobs:
                return 409, _status(409, "AlreadyExists")
            known = Job.from_dict(manifest).to_dict()
            assert known == manifest, f"fields that Kubernetes does not know: {manifest}"
            self.jobs[name] = manifest
            self.created.append(name)
            if self.scheduled:
                self._start(name, manifest)
        return 201, manifest

    def get(self, path: str) -> tuple[int, Mapping[str, Any]]:
        parts = urlsplit(path)
        name = parts.path.rpartition("/")[2]
        if name == "pods":
            wanted = parse_qs(parts.query)["labelSelector"][0].partition("=")[2]
            return 200, {
                "apiVersion": "v1",
                "kind": "PodList",
                "items": [_pending(wanted, self.pod_status)] if self.pod_status and wanted in self.jobs else [],
            }
        job = self.jobs.get(name)
        if job is None:
            return 404, _status(404, "NotFound")
        pod = self.pods.get(name)
        ended = pod is not None and pod.poll() is not None
        conditions = [{"type": "Complete" if ended and pod and pod.returncode == 0 else "Failed", "status": "True"}]
        return 200, {**job, "status": {"conditions": conditions if ended else []}}

    def delete(self, name: str) -> tuple[int, Mapping[str, Any]]:
        with self.mutex:
            gone = self.jobs.pop(name, None)
        return (200, _status(200, "Deleted")) if gone is not None else (404, _status(404, "NotFound"))

    # --- the kubelet

    def _start(self, name: str, manifest: Mapping[str, Any]) -> None:
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        environment = dict(os.environ)
        for one in container["env"]:
            place = one.get("valueFrom", {}).get("secretKeyRef")
            environment[one["name"]] = one["value"] if place is None else self.secrets[place["name"]][place["key"]]
        command = [sys.executable, "-m", "solocron", *container["args"]]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.pods[name] = subprocess.Popen(
                command, cwd=Path(__file__).parent, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "stand-in", "cluster": {"server": url}}],
        "users": [{"name": "node", "user": {"token": "canary"}}],
        "contexts": [{"name": "here", "context": {"cluster": "stand-in", "user": "node", "namespace": "shop"}}],
        "current-context": "here",
    }


def _status(code: int, reason: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "code": code,
        "reason": reason,
        "message": f"the stand-in says {reason}",
    }


def _pending(job: str, status: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{job}-x", "labels": {"job-name": job}},
        "status": status,
    }
