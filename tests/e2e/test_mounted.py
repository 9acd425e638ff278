"""The HTTP service inside other applications, on the servers that people run them on."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from solocron import Scheduler
from solocron.testing.fleet import wait_until
from tests.servers.base import free_port

PROGRAM = "tests.e2e.programs.mounted"
JSON = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}


@contextmanager
def served(kind: str, folder: Path) -> Iterator[int]:
    port = free_port()
    if kind == "starlette":
        argv = ["uvicorn", f"{PROGRAM}:starlette_app", "--factory", f"--port={port}", "--log-level=warning"]
    else:
        argv = ["gunicorn", f"{PROGRAM}:{kind}_app()", f"--bind=127.0.0.1:{port}", "--workers=1", "--threads=2"]
    store = f"sqlite:///{folder / 'jobs.db'}"
    Scheduler(store).open().store.close()
    environment = {"SOLOCRON_STORE": store, "PATH": "/usr/bin:/bin", "SOLOCRON_HEALTH_FILE": ""}
    with subprocess.Popen([sys.executable, "-m", *argv], env=environment, cwd=Path(__file__).parents[2]) as process:
        try:
            wait_until(lambda: answers(port), within=30, what=f"the {kind} application")
            yield port
        finally:
            process.terminate()
            assert process.wait(timeout=30) in (0, -15)  # uvicorn ends by the signal itself


def answers(port: int) -> bool:
    try:
        return ask(port, "/")[0] == 200
    except ConnectionRefusedError:
        return False


def ask(port: int, path: str, *, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        given = {"Host": "localhost"} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), given)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("kind", ["starlette", "flask", "django"])
def test_it_is_mounted_below_a_path_and_knows_the_users_of_the_application(kind: str, tmp_path: Path) -> None:
    ana = {"Cookie": "session=ana"}
    with served(kind, tmp_path) as port:
        assert ask(port, "/") == (200, b"home")
        assert ask(port, "/a/jobs/health/live") == (200, b"ok\n")
        assert ask(port, "/a/jobs/api/v1/status")[0] == 401
        assert ask(port, "/a/jobs/api/v1/status", Host="evil.example", **ana)[0] == 421
        status, body = ask(port, "/a/jobs/api/v1/me", **ana)
        assert (status, json.loads(body)["name"], json.loads(body)["via"]) == (200, "ana", "host")
        if kind == "starlette":  # the one with a node in its lifespan, which has registered the job
            wait_until(lambda: ask(port, "/a/jobs/health/ready")[0] == 200, within=20, what="the node")
            create = ask(
                port, "/a/jobs/api/v1/jobs/hello/trigger", method="POST", body={}, Idempotency_Key="k", **ana, **JSON
            )
            assert create[0] == 202, create
            href = json.loads(create[1])["href"]
            assert href.startswith("/a/jobs/api/v1/runs/hello%40")
            wait_until(
                lambda: json.loads(ask(port, href, **ana)[1])["status"] == "succeeded", within=20, what="the run"
            )
            foreign = JSON | {"Sec-Fetch-Site": "cross-site"}
            again = ask(port, "/a/jobs/api/v1/jobs/hello/pause", method="POST", body={}, **ana, **foreign)
            assert again[0] == 403
