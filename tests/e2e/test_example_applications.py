"""The applications in `examples/`, started as their READMEs say, with several processes, and hurt as they suggest."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.cloud_run.wake import wake
from solocron import EmptyStore, NotFoundError, Scheduler
from solocron.testing.fleet import wait_until
from tests.e2e.serving import PATIENCE, ROOT, Served, serving
from tests.servers.mariadb import MariaDB
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis

EXAMPLES = ROOT / "examples"
SECRET = "a secret of twenty letters"
ROWS = "from books.models import Closing; print(*Closing.objects.values_list('slot', flat=True))"


@pytest.fixture
def looking() -> Iterator[Callable[[str], Scheduler]]:
    made: list[Scheduler] = []

    def look(url: str) -> Scheduler:
        made.append(Scheduler(url, enabled=False))
        return made[-1]

    yield look
    for one in made:
        one.stop()


def pids(look: Scheduler) -> list[int]:
    try:
        return sorted(node.pid for node in look.nodes() if node.state == "live")
    except EmptyStore:
        return []


def test_invoices_and_receipts_are_there_once_although_a_worker_is_killed(
    postgres: Postgres, tmp_path: Path, looking: Callable[[str], Scheduler]
) -> None:
    url = postgres.fresh_url()
    look = looking(url)
    with serving("examples.invoices", "{port}", folder=tmp_path, DATABASE_URL=url) as server:

        def books() -> dict[str, Any]:
            found: dict[str, Any] = json.loads(server.ask("/books")[1])
            return found

        wait_until(lambda: len(pids(look)) == 3, within=PATIENCE, what=lambda: server.said)
        for tenant in ("ada", "grace"):
            assert server.ask(f"/tenants/{tenant}", method="PUT")[0] == 200
        assert server.ask("/tenants/eve?every=often", method="PUT")[0] == 400
        wait_until(lambda: len(books()["receipts"]) >= 4, within=PATIENCE, what="receipts")
        os.kill(pids(look)[0], signal.SIGKILL)
        before = len(books()["receipts"])
        wait_until(lambda: len(books()["receipts"]) >= before + 6, within=PATIENCE, what="more of them")
        found = books()
        assert {tenant for tenant, _ in found["invoices"]} == {"ada", "grace"}
        assert set(Counter(map(tuple, found["invoices"])).values()) == {1}
        assert set(Counter(found["receipts"]).values()) == {1}
        assert server.ask("/solocron/api/v1/status")[0] == 401


def test_flask_and_redis_share_the_seconds_among_workers(
    redis_server: Redis, tmp_path: Path, looking: Callable[[str], Scheduler]
) -> None:
    url = redis_server.fresh_url()
    look = looking(url)
    app = "examples.flask_redis.app:create_app()"
    conf = "python:examples.flask_redis.gunicorn_conf"
    words = ["gunicorn", "-c", conf, app, "--bind=127.0.0.1:{port}", "--no-control-socket"]
    with serving(*words, folder=tmp_path, REDIS_URL=url) as server:
        wait_until(lambda: pids(look) == sorted(server.children()), within=PATIENCE, what=lambda: server.said)

        def refreshed() -> list[str]:
            found: list[str] = json.loads(server.ask("/")[1])
            return found

        wait_until(lambda: len(refreshed()) >= 3, within=PATIENCE, what="runs")
        os.kill(pids(look)[0], signal.SIGKILL)
        before = len(refreshed())
        wait_until(lambda: len(refreshed()) >= before + 3, within=PATIENCE, what="more of them")
        slots = [line.split()[0] for line in refreshed()]
        assert len(set(slots)) == len(slots), "a second is there twice"
        assert server.stop() == 0


def test_a_service_that_scales_to_zero_runs_what_passed_while_it_was_gone(
    tmp_path: Path, looking: Callable[[str], Scheduler]
) -> None:
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = looking(store)

    def start() -> Any:
        words = ["uvicorn", "examples.cloud_run.app:app", "--port={port}", "--log-level=warning"]
        return serving(*words, folder=tmp_path, SOLOCRON_STORE=store, TICK_SECRET=SECRET)

    def tick(server: Served) -> list[str]:
        answer = json.loads(wake(f"http://127.0.0.1:{server.port}/tick/", SECRET))
        return [run["slot"] for run in answer["runs"]]

    with start() as server:
        assert server.ask("/tick/", method="POST")[0] == 401
        assert tick(server) == [], "a new job has no slots before it was declared"
    due = look.upcoming("collect", 3)[-1]
    assert pids(look) == [], "nothing is left of it"
    wait_until(lambda: look.status().now > due, within=PATIENCE, what="three slots")
    with start() as server, start() as other:
        ran = tick(server) + tick(other)
    assert len(ran) >= 3
    assert len(set(ran)) == len(ran)


@pytest.mark.long  # three kinds of process on two servers; `tests/e2e/carriers` has the short form
def test_django_hands_runs_over_to_celery_although_a_node_is_killed(
    mariadb: MariaDB, redis_server: Redis, tmp_path: Path, looking: Callable[[str], Scheduler]
) -> None:
    folder = shutil.copytree(EXAMPLES / "django_celery", tmp_path / "django_celery")
    url = mariadb.fresh_url()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SOLOCRON_", "DJANGO_"))},
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "DATABASE_URL": url,
        "BROKER_URL": redis_server.fresh_url(),
    }
    look, said = looking(url), tmp_path / "said"
    with said.open("wb") as log:
        words = [sys.executable, "start.py"]
        started = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)

    def closed() -> list[str]:
        try:
            return [run.slot.isoformat() for run in look.runs("close_books", status="succeeded", limit=200)]
        except NotFoundError:
            return []

    try:
        wait_until(lambda: len(closed()) >= 3, within=2 * PATIENCE, what=lambda: said.read_text())
        node = int(re.findall(r"started (\d+)", said.read_text())[0])
        os.kill(node, signal.SIGKILL)
        before = len(closed())
        wait_until(lambda: len(closed()) >= before + 4, within=PATIENCE, what=lambda: said.read_text())
        rows = subprocess.run(
            [sys.executable, "manage.py", "shell", "-c", ROWS],
            cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60,
        ).stdout.split()  # fmt: skip
        assert len(set(rows)) == len(rows), "a second is there twice"
        assert set(closed()[-before:]) <= set(rows)
        started.send_signal(signal.SIGTERM)
        assert started.wait(PATIENCE) == 0, said.read_text()
    finally:
        try:
            os.killpg(started.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        started.wait()


def test_the_manifests_start_nodes_whose_probes_succeed(
    tmp_path: Path, looking: Callable[[str], Scheduler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of the container, as processes: there is no cluster here."""
    deployment, budget = yaml.safe_load_all((EXAMPLES / "kubernetes" / "worker.yaml").read_text())
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == budget["spec"]["selector"]["matchLabels"] == labels
    grace = int(container["command"][container["command"].index("--grace") + 1].rstrip("s"))
    assert pod["spec"]["terminationGracePeriodSeconds"] == grace + 10
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    (variable,) = container["env"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SOLOCRON_")},
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        variable["name"]: store,
        "SOLOCRON_HEALTH_DIR": str(tmp_path),
    }

    def command(words: list[str]) -> list[str]:
        assert words[0] == "solocron"
        return [sys.executable, "-m", *words]

    look = looking(store)
    with (tmp_path / "log").open("wb") as log:
        nodes = [
            subprocess.Popen(command(container["command"]), cwd=tmp_path, env=environment, stdout=log, stderr=log)
            for _ in range(2)
        ]
    try:
        wait_until(lambda: len(pids(look)) == 2, within=PATIENCE, what=lambda: (tmp_path / "log").read_text())

        def succeeds(probe: str) -> bool:
            words = command(container[probe]["exec"]["command"])
            return subprocess.run(words, env=environment, capture_output=True, check=False, timeout=60).returncode == 0

        wait_until(lambda: succeeds("startupProbe"), within=PATIENCE, what="the start")
        assert succeeds("livenessProbe")
        assert succeeds("readinessProbe")
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        assert [node.wait(PATIENCE) for node in nodes] == [0, 0]
    finally:
        for node in nodes:
            node.kill()
            node.wait()
