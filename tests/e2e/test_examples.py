"""Every example is run as its reader would run it, and does what its first lines say."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
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

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"


def run(name: str, *arguments: str, folder: Path) -> str:
    """Run an example to its end in a folder of its own; return what it printed."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(**other: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOLOCRON_")}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]), **other}


def client(folder: Path) -> Scheduler:
    """Look into the store that an example has used; a scheduler that is not started holds nothing but connections."""
    return Scheduler(f"sqlite:///{folder / 'jobs.db'}")


def test_every_example_is_in_the_list_and_in_these_tests() -> None:
    listed = set(re.findall(r"\| `(\w+\.py)` \|", (EXAMPLES / "README.md").read_text()))
    assert {path.name for path in EXAMPLES.glob("*.py")} == listed
    tested = Path(__file__).read_text()
    assert [name for name in listed if name.removesuffix(".py") not in tested] == []


def test_hello_is_the_code_of_the_readme_and_runs_at_once(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    hello = code((EXAMPLES / "hello.py").read_text())
    assert code(readme)
    assert [line for line in code(readme) if line not in hello] == []
    printed = run("hello.py", "--once", folder=tmp_path)
    assert re.search(r"digest for ada .*\ndigest for grace .*\ndigest for edsger ", printed)
    assert printed.endswith("succeeded\n")


def code(text: str) -> list[str]:
    """Return the lines without comments, empty lines and indentation."""
    lines = (re.sub(r"\s+#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def test_the_worker_runs_threads_and_coroutines_and_repeats_what_failed(tmp_path: Path) -> None:
    printed = run("worker.py", "--seconds", "5", folder=tmp_path)
    assert re.search(r"charge +\S+ +attempt 1 ", printed)
    assert re.search(r"failed +charge@\w+\ncharge|failed +charge@(.|\n)*attempt 2 ", printed)
    assert re.search(r"prices +(\S+) +part 0\n(.|\n)*prices +\1 +part 2\n", printed)


@pytest.mark.parametrize(
    "store",
    ["sqlite", *(pytest.param(name, marks=pytest.mark.long) for name in ("postgres", "mariadb", "redis", "valkey"))],
)
def test_three_nodes_share_a_store_and_survive_the_death_of_one(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    fixture = "redis_server" if store == "redis" else store
    url = [] if store == "sqlite" else [request.getfixturevalue(fixture).fresh_url()]
    printed = run("three_nodes.py", "--seconds", "8", *url, folder=tmp_path)
    assert "--------  ada is killed" in printed
    assert re.search(r"\d+ runs: 0 twice, 0 missing, shared as \{.*\}\n$", printed), printed


def test_schedules_as_data_are_added_triggered_paused_changed_and_removed(tmp_path: Path) -> None:
    printed = run("schedules_as_data.py", folder=tmp_path)
    assert "report-ada     At 07:00 on Monday through Friday, Europe/London, next" in printed
    assert "triggered      report for ada, right now" in printed
    assert "paused         report-grace: on holiday" in printed
    assert "changed        At 00:00 every day" in printed
    assert client(tmp_path).jobs() == []


def test_an_external_trigger_runs_what_is_due_since_the_last_one(tmp_path: Path) -> None:
    assert runs(run("external_trigger.py", folder=tmp_path)) == 0, "a new job has no slots before it was declared"
    store = client(tmp_path)
    due = store.upcoming("invoices", 2)[-1]
    wait_until(lambda: store.status().now > due, within=10, what="two slots")
    printed = run("external_trigger.py", folder=tmp_path)
    assert runs(printed) >= 2
    assert printed.count("invoices of") == runs(printed)


def runs(printed: str) -> int:
    found = re.search(r"\{'runs': (\d+)\}", printed)
    assert found, printed
    return int(found[1])


def test_the_web_app_schedules_answers_and_drains(tmp_path: Path) -> None:
    with serving("examples.web_app:app", folder=tmp_path) as port:
        answer = ask(port, "POST", "/refresh")
        assert answer["status"] == "succeeded"
        assert " by " in answer["refreshed"]
        found = wait_until(lambda: ask(port, "GET", "/runs"), within=10, what="runs")
        assert {run["status"] for run in found} <= {"succeeded", "running"}
    assert client(tmp_path).nodes() == [], "its session was ended with the application"


@contextmanager
def serving(app: str, *, folder: Path) -> Iterator[int]:
    """A uvicorn process with an application; SIGTERM at the end."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", app, f"--port={port}", "--log-level=warning"]
    process = subprocess.Popen(command, cwd=folder, env=environment())
    try:
        wait_until(lambda: process.poll() is not None or answers(port), within=30, what=app)
        assert process.poll() is None
        yield port
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        ask(port, "GET", "/runs")
    except ConnectionRefusedError:
        return False
    return True


def ask(port: int, method: str, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
