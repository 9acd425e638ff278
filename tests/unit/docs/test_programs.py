"""Every Python block of every page runs as it stands there; the README's program does what the page says of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until
from tests.unit.docs.pages import DOCS, ROOT, Program, blocks, pages

README = ROOT / "README.md"
WITH_PROGRAMS = [page for page in pages() if page != README and blocks(page, "python")]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder and a store of its own; the machine's settings play no part."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOLOCRON_STORE", "sqlite:///solocron.db")
    monkeypatch.delenv("SOLOCRON_ENABLED", raising=False)
    yield tmp_path
    asyncio.set_event_loop(None)


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page_runs_as_one_program(page: Path, tmp_path: Path) -> None:
    with Program(page, tmp_path) as program:
        assert program.run() > 0


def test_the_program_of_the_readme_is_a_replica(tmp_path: Path) -> None:
    """Written to a file and started: its job is registered, a run of it ends well, and SIGTERM drains it."""
    (block,) = blocks(README, "python")
    (tmp_path / "program.py").write_text(block.text)
    replica = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    scheduler = Scheduler("sqlite:///jobs.db")
    try:
        wait_until(lambda: _has_jobs(scheduler), within=30, what="its job")
        view = scheduler.wait(scheduler.trigger("send_digest"), "30s")
        assert view.status == "succeeded", view
        assert view.progress == {"done": 3, "total": 3, "note": None}
        assert scheduler.upcoming("send_digest", 1)[0].hour == 9
    finally:
        replica.send_signal(signal.SIGTERM)
        said, _ = replica.communicate(timeout=30)
        scheduler.stop()
    assert replica.returncode == 0
    assert said.count("digest for") == 3


def _has_jobs(scheduler: Scheduler) -> bool:
    try:
        return bool(scheduler.jobs())
    except EmptyStore:  # the replica has not got so far
        return False


def test_every_part_of_the_documentation_shows_programs_that_are_run() -> None:
    """So that an unmatched fence cannot take a page out of the tests."""
    found = {page.relative_to(DOCS).parts[0] for page in WITH_PROGRAMS if page.is_relative_to(DOCS)}
    assert {"tutorial", "how-to", "reference"} <= found
