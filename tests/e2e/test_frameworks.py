"""Solocron inside web applications, on the servers that people run them on, with as many workers as they have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until
from tests.e2e.serving import PATIENCE, ROOT, Served, serving
from tests.required import require_module

PROGRAMS = "tests.e2e.programs"


def test_three_workers_of_a_fastapi_application_run_each_slot_once_and_drain(tmp_path: Path) -> None:
    store, ledger = f"sqlite:///{tmp_path / 'jobs.db'}", tmp_path / "ledger"
    ledger.touch()
    look = Scheduler(store, enabled=False)
    app = f"{PROGRAMS}.fastapi_app:app"
    with serving(
        "uvicorn", app, "--port={port}", "--workers=3", folder=tmp_path, SOLOCRON_STORE=store, LEDGER=str(ledger)
    ) as server:
        wait_until(lambda: len(look.nodes()) == 3, within=PATIENCE, what="three nodes")
        lines = wait_until(
            lambda: found if len(found := ledger.read_text().splitlines()) >= 6 else None, within=PATIENCE, what="runs"
        )
        slots = [line.split()[0] for line in lines]
        assert len(set(slots)) == len(slots), "a slot ran twice"
        status, body = server.ask("/trigger/beat", method="POST")
        assert (status, json.loads(body)["state"], json.loads(body)["ledger"]) == (200, True, "ledger")
        status, body = server.ask("/trigger/beats", method="POST")
        assert (status, "beats" in json.loads(body)["detail"]) == (404, True)
        look.wait(look.trigger("broken"), PATIENCE)
        wait_until(lambda: "ValueError: no paper" in server.said, within=PATIENCE, what="the line of the failed run")
        assert "run failed: ValueError: no paper [job=broken" in server.said, "nothing is configured: warnings are seen"
        assert "a node holds a new lease" not in server.said, "and nothing else is"
        assert server.stop() in (0, -15)
    assert look.nodes() == [], "every worker has drained and ended its session"
    look.stop()


LIFESPANS = {
    "hypercorn": ["hypercorn", "--bind=127.0.0.1:{port}", "--workers=2"],
    "granian": ["granian", "--interface=asgi", "--host=127.0.0.1", "--port={port}", "--workers=2"],
}


@pytest.mark.parametrize("server", LIFESPANS)
def test_each_worker_of_hypercorn_and_of_granian_is_a_node_from_its_lifespan_on(server: str, tmp_path: Path) -> None:
    require_module(server)
    store, ledger = f"sqlite:///{tmp_path / 'jobs.db'}", tmp_path / "ledger"
    ledger.touch()
    look = Scheduler(store, enabled=False)
    words = [*LIFESPANS[server], f"{PROGRAMS}.fastapi_app:app"]
    with serving(*words, folder=tmp_path, SOLOCRON_STORE=store, LEDGER=str(ledger)) as served:
        wait_until(lambda: len(pids(look)) == 2, within=PATIENCE, what="two nodes")
        assert pids(look) <= set(served.children())
        wait_until(lambda: len(ledger.read_text().splitlines()) >= 6, within=PATIENCE, what="runs")
        status, body = served.ask("/trigger/beat", method="POST")
        assert (status, json.loads(body)["state"]) == (200, True)
        run = look.trigger("patient")
        wait_until(lambda: look.get_run(run).status == "running", within=PATIENCE, what="a run that lasts")
        assert served.stop() == 0, served.said
    slots = [line.split()[0] for line in ledger.read_text().splitlines()]
    assert len(set(slots)) == len(slots), "a slot ran twice"
    assert look.get_run(run).result == "drained", "the workers have waited for it"
    assert look.nodes() == [], "and ended their sessions"
    look.stop()


def test_a_worker_of_hypercorn_drains_although_another_has_ended_before(tmp_path: Path) -> None:
    """Its master then sends SIGTERM to the others, whose handler is that of the system: the run used to be cut off."""
    store, ledger = f"sqlite:///{tmp_path / 'jobs.db'}", tmp_path / "ledger"
    look = Scheduler(store, enabled=False)
    words = [*LIFESPANS["hypercorn"], f"{PROGRAMS}.fastapi_app:app"]
    with serving(*words, folder=tmp_path, SOLOCRON_STORE=store, LEDGER=str(ledger)) as served:
        wait_until(lambda: len(pids(look)) == 2, within=PATIENCE, what="two nodes")
        run = look.trigger("held")
        wait_until(lambda: look.get_run(run).status == "running", within=PATIENCE, what="a run that lasts")
        served.process.send_signal(signal.SIGTERM)
        wait_until(served.refuses, within=PATIENCE, what="the master, which has sent its signals, to close its socket")
        (tmp_path / "go").touch()
        assert served.process.wait(PATIENCE) == 0, served.said
    assert look.get_run(run).result == "not cut off"
    assert look.nodes() == [], "it has ended its session"
    look.stop()


def test_the_reloader_of_flask_is_no_node(tmp_path: Path) -> None:
    """It used to be one, and went on with the old code after every edit."""
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    app = f"{PROGRAMS}.flask_app:create_app"
    with serving(
        "flask", "--app", app, "run", "--debug", "--port={port}", folder=tmp_path, SOLOCRON_STORE=store
    ) as server:
        serves = int(server.ask("/")[1])
        assert serves != server.process.pid, "there is a reloader"
        wait_until(lambda: look.nodes(), within=PATIENCE, what="a node")
        wait_until(lambda: "no node is started in the reloader" in server.said, within=PATIENCE, what="its word")
        assert [node.pid for node in look.nodes()] == [serves]
        assert look.wait(look.trigger("job"), "20s").result == serves
    look.stop()


def gunicorn(folder: Path, store: str, *more: str) -> AbstractContextManager[Served]:
    words = ["gunicorn", f"{PROGRAMS}.flask_app:extended_app()", "--bind=127.0.0.1:{port}", "--no-control-socket"]
    return serving(*words, *more, folder=folder, SOLOCRON_STORE=store)


def test_under_gunicorn_with_preload_the_workers_are_nodes_before_the_first_request_and_the_master_is_none(
    tmp_path: Path,
) -> None:
    """A factory that starts its scheduler makes the master a node, which serves nothing and runs jobs."""
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    with gunicorn(tmp_path, store, "--workers=2", "--preload", f"--config=python:{PROGRAMS}.gunicorn_hooks") as server:
        wait_until(lambda: len(look.nodes()) == 2, within=PATIENCE, what="two nodes")
        assert sorted(node.pid for node in look.nodes()) == sorted(server.children())
        pid, name = look.wait(look.trigger("where"), "20s").result
        assert (pid in server.children(), name) == (True, "shop")
        assert look.wait(look.trigger("isolated"), "30s").result == "shop", "a child has made its own application"
        assert server.stop() == 0
    assert look.nodes() == [], "each worker has drained"
    look.stop()


def test_without_hooks_a_worker_is_a_node_from_its_first_request_to_its_end(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    with gunicorn(tmp_path, store, "--workers=1", "--threads=2", "--preload") as server:
        serves = int(server.ask("/")[1])
        wait_until(lambda: look.nodes(), within=PATIENCE, what="a node")
        assert [node.pid for node in look.nodes()] == [serves]
        assert serves != server.process.pid
        assert server.stop() == 0
    assert look.nodes() == [], "it has drained at its exit"
    look.stop()


def test_a_litestar_application_runs_a_node_in_its_lifespan(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    app = f"{PROGRAMS}.litestar_app:app"
    with serving("uvicorn", app, "--port={port}", folder=tmp_path, SOLOCRON_STORE=store) as server:
        run = server.ask("/")[1].decode()
        assert look.wait(run, "20s").result == server.process.pid
        assert server.stop() in (0, -15)
        assert "INFO    run succeeded [job=where" in server.said, "its story was asked for"
    assert look.nodes() == [], "it has drained"
    look.stop()


def uwsgi(folder: Path, store: str, *more: str) -> AbstractContextManager[Served]:
    app = f"--module={PROGRAMS}.flask_app:extended_app()"
    words = [str(Path(sys.executable).with_name("uwsgi")), "--http-socket=127.0.0.1:{port}", "--die-on-term", app]
    return serving(*words, *more, folder=folder, SOLOCRON_STORE=store)


def test_in_uwsgi_each_worker_is_a_node_from_its_first_request_and_the_master_is_none(tmp_path: Path) -> None:
    """Without --lazy-apps the application is made in the master, which serves nothing."""
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    with uwsgi(tmp_path, store, "--master", "--processes=2", "--enable-threads") as server:
        serves = int(server.ask("/")[1])
        wait_until(lambda: serves in [node.pid for node in look.nodes()], within=PATIENCE, what="a node")
        assert {node.pid for node in look.nodes()} <= set(server.children())
        assert look.wait(look.trigger("where"), "20s").result[1] == "shop"
        assert server.stop() == 0
    assert look.nodes() == [], "each worker has drained at its exit"
    look.stop()


def test_in_granian_a_worker_that_is_forked_drains_at_its_end_although_it_calls_no_function_of_atexit(
    tmp_path: Path,
) -> None:
    """Multiprocessing ends its forked children with `os._exit`: the session used to stay until its lease was over."""
    require_module("granian")
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    words = [
        "--interface=wsgi",
        "--factory",
        "--host=127.0.0.1",
        "--port={port}",
        "--workers=2",
        "--blocking-threads=2",
    ]
    app = f"{PROGRAMS}.flask_app:extended_app"
    with serving("granian", *words, app, folder=tmp_path, SOLOCRON_STORE=store) as server:
        serves = int(server.ask("/")[1])
        wait_until(lambda: serves in pids(look), within=PATIENCE, what="a node")
        assert pids(look) <= set(server.children())
        assert look.wait(look.trigger("where"), "20s").result[1] == "shop"
        assert server.stop() == 0, server.said
    assert look.nodes() == [], "each worker has drained at its exit"
    look.stop()


def test_a_plain_program_drains_at_its_exit_if_sigterm_is_one(tmp_path: Path) -> None:
    """Python calls no function of atexit at SIGTERM: the session stays until its lease is over."""
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    programs = [plain(store), plain(store, "exit")]
    cut, drained = (program.pid for program in programs)
    try:
        wait_until(lambda: pids(look) == {cut, drained}, within=PATIENCE, what="two nodes")
        for program in programs:
            program.send_signal(signal.SIGTERM)
        assert [program.wait(PATIENCE) for program in programs] == [-signal.SIGTERM, 0]
    finally:
        for program in programs:
            program.kill()
            program.wait()
    assert pids(look) == {cut}
    look.stop()


def plain(store: str, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SOLOCRON_STORE": store, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", f"{PROGRAMS}.plain", *words], env=environment)


def pids(look: Scheduler) -> set[int]:
    """Return the processes that are nodes; there is none before the first has made the tables."""
    try:
        return {node.pid for node in look.nodes()}
    except EmptyStore:
        return set()


def test_in_waitress_the_process_is_a_node_from_its_first_request(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    look = Scheduler(store, enabled=False)
    app = f"{PROGRAMS}.flask_app:extended_app"
    with serving("waitress", "--listen=127.0.0.1:{port}", "--call", app, folder=tmp_path, SOLOCRON_STORE=store) as one:
        assert int(one.ask("/")[1]) == one.process.pid
        assert look.wait(look.trigger("where"), "20s").result == [one.process.pid, "shop"]
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(PATIENCE) == 0
    assert look.nodes() == [], "it has drained at its exit"
    look.stop()
