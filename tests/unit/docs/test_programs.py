"""Every Python block of every page runs as it stands there; the README's and the tutorial's do what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from solocron import Scheduler
from tests.unit.docs.pages import DOCS, ROOT, Program, blocks, pages

WITH_PROGRAMS = [page for page in pages() if blocks(page, "python")]


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


def test_the_first_program_of_the_readme_runs_a_slot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not only without an error: its job is registered, a run of it ends well, and it drains."""
    with Program(ROOT / "README.md", tmp_path) as program:
        program.run()
        scheduler = cast(Scheduler, program["scheduler"])
        view = scheduler.wait(scheduler.trigger("send_digest"), "20s")
        assert view.status == "succeeded", view
        assert view.progress == {"done": 3, "total": 3, "note": None}
        assert scheduler.next("send_digest", 1)[0].hour == 9
        assert scheduler.stop("10s")
    assert capfd.readouterr().out.count("digest for") == 3


def test_every_part_of_the_documentation_shows_programs_that_are_run() -> None:
    """So that an unmatched fence cannot take a page out of the tests."""
    found = {page.relative_to(DOCS).parts[0] for page in WITH_PROGRAMS if page.is_relative_to(DOCS)}
    assert {"tutorial", "how-to", "reference"} <= found
