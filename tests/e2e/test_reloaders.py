"""Servers for development that restart after an edit: their parent, which keeps the old code, is never a node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until
from tests.e2e.serving import PATIENCE, Served, serving

BEFORE, AFTER = (
    "before the edit",
    "after it",
)  # of two lengths: Python takes kept bytecode for a file by second and size

JOBS = """
    import os
    from solocron import Run, every

    @every("100ms", name="beat", catch_up="all")
    def beat(run: Run) -> None:
        with open("ledger", "a") as file:
            file.write(f"{run.slot.timestamp()},{os.getpid()},CODE\\n")
"""

FLASK = """
    import logging, os
    from flask import Flask
    from solocron import Scheduler

    scheduler = Scheduler(lease="2s")
    scheduler.discover("jobs")

    def create_app():
        logging.basicConfig(level=logging.INFO)
        app = Flask(__name__)
        app.add_url_rule("/", view_func=lambda: str(os.getpid()))
        scheduler.start()
        return app
"""

DJANGO = """
    import logging
    from django.apps import AppConfig

    class BooksConfig(AppConfig):
        name = "books"

        def ready(self):
            from solocron.django import scheduler

            logging.basicConfig(level=logging.INFO)
            scheduler.start()
"""

URLS = """
    import os, threading
    from django.http import HttpResponse
    from django.urls import path

    urlpatterns = [
        path("", lambda request: HttpResponse(str(os.getpid()))),
        path("threads", lambda request: HttpResponse(" ".join(one.name for one in threading.enumerate()))),
    ]
"""

SETTINGS = """
    INSTALLED_APPS = ["solocron.django", "books"]
    MIDDLEWARE = []
    SOLOCRON = {"STORE": "default", "LEASE": "2s"}
"""


def write(file: Path, text: str, code: str = BEFORE) -> None:
    file.write_text(dedent(text).replace("CODE", code))


def node_pids(look: Scheduler) -> set[int]:
    try:
        return {node.pid for node in look.nodes()}
    except EmptyStore:
        return set()


def edit_and_look(server: Served, jobs: Path, ledger: Path, store: str) -> None:
    """Edit the jobs while they run: the slots after that run with the new code, each once and never in the parent."""
    look = Scheduler(store, enabled=False)

    def ran() -> list[tuple[str, int, str]]:
        lines = [line.split(",") for line in ledger.read_text().splitlines()] if ledger.exists() else []
        return [(slot, int(pid), code) for slot, pid, code in lines]

    def with_the_new_code() -> int:
        return sum(code == AFTER for _, _, code in ran())

    serves = int(server.ask("/")[1])
    assert serves != server.process.pid, "there is a reloader"
    wait_until(lambda: len(ran()) >= 3, within=PATIENCE, what=lambda: server.said[-4000:])
    wait_until(lambda: "no node is started in the reloader of" in server.said, within=PATIENCE, what="its word")
    assert node_pids(look) == {serves}
    write(jobs, JOBS, AFTER)
    wait_until(lambda: with_the_new_code() >= 5, within=PATIENCE, what=lambda: server.said[-4000:])
    codes = [code for _, _, code in ran()]
    assert set(codes[codes.index(AFTER) :]) == {AFTER}, "a slot has run with the code from before the edit"
    slots = [slot for slot, _, _ in ran()]
    assert len(set(slots)) == len(slots), "a slot ran twice"
    assert {pid for _, pid, _ in ran()} == {serves, int(server.ask("/")[1])}
    look.stop()


def test_flask_run_takes_up_an_edit_and_its_reloader_does_not_go_on_with_the_old_code(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    write(tmp_path / "jobs.py", JOBS)
    write(tmp_path / "shop.py", FLASK)
    words = ["flask", "--app", "shop", "run", "--debug", "--port={port}"]
    with serving(*words, folder=tmp_path, SOLOCRON_STORE=store) as server:
        edit_and_look(server, tmp_path / "jobs.py", tmp_path / "ledger", store)


def django_project(folder: Path, **files: str) -> list[str]:
    """Make a new project with an app and these files of it, and return the words that serve it."""
    words = [sys.executable, "-m", "django", "startproject", "shop", "."]
    subprocess.run(words, cwd=folder, check=True, timeout=60)
    (folder / "books").mkdir()
    (folder / "books" / "__init__.py").touch()
    for name, text in files.items():
        write(folder / "books" / f"{name}.py", text)
    write(folder / "shop" / "urls.py", URLS)
    settings = folder / "shop" / "settings.py"
    settings.write_text(settings.read_text() + dedent(SETTINGS))
    return [str(folder / "manage.py"), "runserver", "127.0.0.1:{port}"]


def test_runserver_takes_up_an_edit_and_its_reloader_does_not_go_on_with_the_old_code(tmp_path: Path) -> None:
    """A project that starts its scheduler in `ready()`, which Django calls in the reloader, too."""
    words = django_project(tmp_path, jobs=JOBS, apps=DJANGO)
    with serving(*words, folder=tmp_path) as server:
        store = f"sqlite:///{tmp_path / 'db.sqlite3'}"
        edit_and_look(server, tmp_path / "books" / "jobs.py", tmp_path / "ledger", store)


def test_runserver_of_a_project_that_starts_nothing_is_no_node_at_all(tmp_path: Path) -> None:
    """Neither the reloader nor its child: nodes are processes of their own, `manage.py solocron run`."""
    words = django_project(tmp_path, jobs=JOBS)
    with serving(*words, folder=tmp_path) as server:
        assert int(server.ask("/")[1]) != server.process.pid, "there is a reloader"
        names = server.ask("/threads")[1].decode()
        assert "django-main-thread" in names
        assert "solocron" not in names
    look = Scheduler(f"sqlite:///{tmp_path / 'db.sqlite3'}", enabled=False)
    with pytest.raises(EmptyStore):
        look.nodes()
    look.stop()
