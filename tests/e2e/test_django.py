"""A Django project: its own test suite, nodes on PostgreSQL, and the how-to from `startproject` on."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until
from tests.servers import MariaDB, Postgres
from tests.stores.test_connections import count
from tests.unit.docs.pages import DOCS, blocks, commands

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Path(__file__).parent / "programs" / "django_project"
PAGE = DOCS / "how-to" / "django.md"
PATIENCE = 60


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SOLOCRON_", "DJANGO_"))}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def manage(folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *argv]
    return subprocess.run(
        command, cwd=folder, env=environment(**more), capture_output=True, text=True, check=False, timeout=240
    )


@contextmanager
def started(folder: Path, *argv: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("ab") as log:
        node = subprocess.Popen([sys.executable, *argv], cwd=folder, env=environment(**more), stderr=log, stdout=log)
    try:
        yield node
    finally:
        node.kill()
        node.wait()


Looking = Callable[[str], Scheduler]


@pytest.fixture
def looking() -> Iterator[Looking]:
    """Schedulers that only look."""
    made: list[Scheduler] = []

    def look(url: str) -> Scheduler:
        made.append(Scheduler(url, enabled=False))
        return made[-1]

    yield look
    for one in made:
        one.stop()


def pids(look: Scheduler) -> set[int]:
    """The processes that are nodes; none before the first has made the tables."""
    try:
        return {node.pid for node in look.nodes()}
    except EmptyStore:
        return set()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__")))


def test_the_test_suite_of_a_project_on_postgresql(project: Path, postgres: Postgres) -> None:
    """Its jobs in its transactions, its triggers, its checks, its commands and its dashboard."""
    done = manage(project, "test", "--noinput", DATABASE=postgres.fresh_url())
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.search(r"Ran (\d+) tests", done.stderr)
    assert ran is not None
    assert int(ran[1]) == (project / "books" / "tests.py").read_text().count("    def test_")


def test_the_same_suite_on_sqlite_where_the_store_of_a_test_is_in_memory(project: Path) -> None:
    done = manage(project, "test", "--noinput", "books.tests.JobTest", "books.tests.TriggerTest")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_check_of_databases_looks_at_the_store_and_makes_nothing(project: Path) -> None:
    check = ("check", "--database", "default")
    empty = manage(project, *check)
    assert (empty.returncode, "?: (solocron.W003)" in empty.stderr) == (0, True), empty.stderr
    assert "start the first node: manage.py solocron run.\n" in empty.stderr
    assert "HINT: The first node makes the tables, or manage.py solocron migrate." in empty.stderr
    (project / "db.sqlite3").write_text("this is no database, and longer than the header of one would have to be")
    broken = manage(project, *check)
    assert (broken.returncode, "?: (solocron.E006)" in broken.stderr) == (1, True), broken.stderr


def test_the_bare_command_line_says_which_one_has_read_the_settings(project: Path) -> None:
    """It used to end with the error of Django's that no settings are configured."""
    words = [sys.executable, "-m", "solocron", "tick", "books.jobs"]
    done = subprocess.run(
        words, cwd=project, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, "manage.py solocron" in done.stderr) == (2, True), done.stderr


def test_triggers_belong_to_transactions_and_connections_are_not_left_behind(
    project: Path, postgres: Postgres, looking: Looking
) -> None:
    _work_and_rest(project, postgres, looking, runs=20)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_thousand_runs_leave_no_connection_behind(
    project: Path, looking: Looking, kind: str, request: pytest.FixtureRequest
) -> None:
    _work_and_rest(project, request.getfixturevalue(kind), looking, runs=1_000)


def _work_and_rest(project: Path, server: Postgres | MariaDB, looking: Looking, *, runs: int) -> None:
    url = server.fresh_url()
    made = manage(project, "migrate", "--run-syncdb", DATABASE=url)
    assert made.returncode == 0, made.stderr
    look = looking(url)
    run = ("manage.py", "solocron", "run")
    with started(project, *run, DATABASE=url) as one, started(project, *run, DATABASE=url) as two:
        wait_until(lambda: len(pids(look)) == 2, within=PATIENCE, what=lambda: (project / "log").read_text())
        with started(project, "transact.py", DATABASE=url) as script:
            assert script.wait(PATIENCE) == -signal.SIGKILL, (project / "log").read_text()
        wait_until(lambda: look.runs("bill", status="succeeded"), within=PATIENCE, what="the run of the commit")
        assert [view.key for view in look.runs("bill")] == ["bill!committed"]
        assert look.wait(look.trigger("count"), "30s").result == 1, "the rollback has left nothing"
        isolated = look.trigger("isolated")

        def work(number: int) -> None:
            asked = [look.trigger(job) for job in ("bill", "count") for _ in range(number)]
            for id in asked:
                assert look.wait(id, PATIENCE).status == "succeeded"

        work(10)
        before = count(server, url)
        for _ in range(runs // 20):
            work(10)
        view = look.wait(isolated, "60s")
        assert view.result, f"a child is set up before it imports models: {view.status} {view.error or view.reason}"
        wait_until(lambda: count(server, url) <= before, within=PATIENCE, what="connections to be as before")
        for node in (one, two):
            node.send_signal(signal.SIGTERM)
            assert node.wait(PATIENCE) == 0
    assert look.nodes() == []


def test_the_how_to_leads_from_startproject_to_two_nodes_in_five_commands(tmp_path: Path, looking: Looking) -> None:
    start, app, first, second, status = (shlex.split(command) for command in commands(PAGE))
    subprocess.run(
        [sys.executable, "-m", "django", *start[1:]], cwd=tmp_path, env=environment(), check=True, timeout=60
    )
    assert manage(tmp_path, *app[2:]).returncode == 0
    (settings,) = tmp_path.glob("*/settings.py")
    part, jobs = (block.text for block in blocks(PAGE, "python")[:2])
    added = part.replace("INSTALLED_APPS = [", 'INSTALLED_APPS += ["books", ')
    settings.write_text(f"{settings.read_text()}\n{added}")
    (tmp_path / "books" / "jobs.py").write_text(jobs)
    with started(tmp_path, *first[1:]) as one, started(tmp_path, *second[1:]) as two:
        look = looking(f"sqlite:///{tmp_path / 'db.sqlite3'}")
        both = {one.pid, two.pid}
        wait_until(lambda: pids(look) == both, within=PATIENCE, what=lambda: (tmp_path / "log").read_text())
        wait_until(lambda: len(look.runs("beat", status="succeeded")) >= 2, within=PATIENCE, what="runs")
        slots = [view.slot for view in look.runs("beat")]
        assert len(set(slots)) == len(slots), "a slot ran twice"
        shown = manage(tmp_path, *status[2:])
        assert shown.returncode == 0, shown.stderr
        assert all(node.node in shown.stdout for node in look.nodes())
        assert "INFO    run succeeded [job=beat" in (tmp_path / "log").read_text(), "no LOGGING: its story is on stderr"
