"""The tutorial's commands, typed in order into one shell, do what its pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from solocron import EmptyStore, Scheduler
from solocron.testing.fleet import wait_until
from tests.unit.docs.pages import DOCS, Block, blocks, commands
from tests.unit.docs.terminal import Terminal

TUTORIAL = DOCS / "tutorial"


def write_files(page: Path, folder: Path) -> None:
    for block in blocks(page, "python"):
        if title := block.attributes.get("title"):
            (folder / title).write_text(block.text)


def look(folder: Path) -> Scheduler:
    return Scheduler(f"sqlite:///{folder / 'tutorial.db'}", namespace="tutorial")


def wait_for_runs(folder: Path, job: str, status: str | None, many: int = 1) -> None:
    """Until so many records of this status are there; the store's file may not be there yet either."""
    scheduler = look(folder)
    try:
        wait_until(
            lambda: (folder / "tutorial.db").exists() and len(_runs(scheduler, job, status)) >= many,
            within=30,
            what=f"{many} {status or ''} runs of {job}",
        )
    finally:
        scheduler.stop()


def _runs(scheduler: Scheduler, job: str, status: str | None) -> list[object]:
    try:
        return list(scheduler.runs(job, status=status))
    except LookupError:
        return []


def shown(page: Path, command: str) -> Block:
    """The block that holds a command."""
    return next(block for block in blocks(page, "console") if f"$ {command}" in block.text)


def test_the_first_job_runs_and_is_on_record(tmp_path: Path) -> None:
    page = TUTORIAL / "first-job.md"
    write_files(page, tmp_path)
    said = {}
    with Terminal(tmp_path) as terminal:
        for command in commands(page):
            if command.startswith("cat"):
                wait_for_runs(tmp_path, "greet", "succeeded", 2)
            said[command] = terminal.type(command)
    assert said["cat one.out"].startswith("hello from one for ")
    assert "succeeded" in said["solocron runs --limit 2"]
    assert "greet" in said["solocron jobs"]
    assert "tier A" in said["solocron status"]


def test_the_page_shows_what_explain_really_says(tmp_path: Path) -> None:
    page = TUTORIAL / "first-job.md"
    command = next(command for command in commands(page) if command.startswith("solocron explain"))
    with Terminal(tmp_path) as terminal:
        said = terminal.type(command)
    assert shown(page, command).text == f"$ {command}\n{said}"


def test_three_replicas_share_the_slots(tmp_path: Path) -> None:
    write_files(TUTORIAL / "first-job.md", tmp_path)
    said = {}
    with Terminal(tmp_path) as terminal:
        for command in commands(TUTORIAL / "three-replicas.md"):
            if command == "solocron nodes":
                wait_for_runs(tmp_path, "greet", "succeeded", 3)
            said[command] = terminal.type(command)
    for node in ("one", "two", "three"):
        assert node in said["solocron nodes"]
    duplicates = next(text for command, text in said.items() if "uniq -d" in command)
    assert duplicates == ""
    scheduler = look(tmp_path)
    records = scheduler.runs("greet")
    assert len({record.slot for record in records}) == len(records)
    scheduler.stop()


def test_a_killed_nodes_run_is_taken_over(tmp_path: Path) -> None:
    page = TUTORIAL / "kill-9.md"
    write_files(page, tmp_path)
    said: dict[str, str] = {}
    with Terminal(tmp_path) as terminal:
        for command in commands(page):
            if command.startswith("RUN="):
                wait_until(lambda: _has_job(tmp_path), within=30, what="the first node")
            elif command.startswith("solocron run reports.py --node two"):
                wait_for_runs(tmp_path, "report", "running")
            elif command == "kill -9 %1":
                wait_until(lambda: _nodes(tmp_path) == {"one", "two"}, within=30, what="the second node")
            elif command == "solocron runs report":
                wait_for_runs(tmp_path, "report", "lost")
                wait_for_runs(tmp_path, "report", None, 2)
            elif command.endswith("--status succeeded"):
                wait_for_runs(tmp_path, "report", "succeeded")
            said[command] = terminal.type(command)
    assert "one: its lease ended" in said["solocron runs report"]
    assert "succeeded" in said["solocron runs report --status succeeded"]
    scheduler = look(tmp_path)
    second, first = scheduler.runs("report")
    scheduler.stop()
    assert (first.attempt, first.status, first.node) == (1, "lost", "one")
    assert (second.attempt, second.status, second.node) == (2, "succeeded", "two")
    assert second.run == first.run
    assert second.fence > first.fence


def _has_job(folder: Path) -> bool:
    scheduler = look(folder)
    try:
        return any(job.name == "report" for job in scheduler.jobs())
    except EmptyStore:  # the first node has not got so far
        return False
    finally:
        scheduler.stop()


def _nodes(folder: Path) -> set[str]:
    scheduler = look(folder)
    try:
        return {node.node for node in scheduler.nodes()}
    finally:
        scheduler.stop()


@pytest.mark.parametrize("page", sorted(TUTORIAL.glob("*.md")), ids=lambda page: page.name)
def test_every_command_of_the_tutorial_is_typed_by_a_test(page: Path) -> None:
    """A page with commands that no test above types would be a page that was never tried."""
    if commands(page):
        assert page.stem in ("first-job", "three-replicas", "kill-9")
