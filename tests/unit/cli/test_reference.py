"""docs/reference/command-line.md and the code say the same: commands, flags, exit codes, JSON keys, doctor's lines."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from dataclasses import fields
from pathlib import Path

import pytest

from solocron.cli import parser
from solocron.cli.exits import EXITS
from solocron.doctor import Circumstances, examine
from solocron.doctor.fleet import Pace
from solocron.runtime import Threads
from solocron.stores.url import make_store
from solocron.views import JobView, NodeView, RunView, StatusView
from tests.unit.cli.kit import Cli

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
SHARED = {"-h", "--help"}


def sections() -> dict[str, str]:
    """The page by its headings of the second level."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands() -> dict[str, ArgumentParser]:
    found = [a for a in parser.build()._actions if isinstance(a, _SubParsersAction)]
    return dict(found[0].choices)


def subsection(name: str) -> str:
    found = re.search(rf"^### {name}\n(.*?)(?=^#|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


def synopsis(section: str) -> str:
    """The indented lines at the top of a section."""
    found = re.match(r"\s*\n((?:    .*\n)+)", section)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", list(parser.COMMANDS))
def test_every_command_has_its_section_with_every_flag_and_no_other(name: str) -> None:
    section, command = sections()[name], commands()[name]
    flags = {flag for action in command._actions for flag in action.option_strings} - SHARED
    assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", synopsis(section))) == flags
    for action in command._actions:
        if not action.option_strings:
            assert f" {action.metavar}" in synopsis(section).replace("[", " ")


def test_every_command_is_in_the_table_with_the_words_of_its_help() -> None:
    for name, summary in parser.COMMANDS.items():
        assert f"| [`{name}`](#{name}) | {summary} |" in PAGE


def test_no_command_is_documented_that_does_not_exist() -> None:
    named = set(re.findall(r"^\| \[`([\w-]+)`\]\(#[\w-]+\) \|", PAGE, flags=re.MULTILINE))
    assert named == set(parser.COMMANDS)


def test_every_exit_code_is_documented_in_the_same_words() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", sections()["Exit codes"], flags=re.MULTILINE))
    assert {int(code): meaning for code, meaning in rows.items()} == dict(EXITS)


@pytest.mark.parametrize(
    ("shape", "view"), [("A job", JobView), ("A run", RunView), ("A node", NodeView)], ids=["job", "run", "node"]
)
def test_every_key_of_a_shape_is_documented(shape: str, view: type) -> None:
    first_cells = "".join(re.findall(r"^\| (`.*?) \|", subsection(shape), flags=re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) == {field.name for field in fields(view)}


def test_every_key_of_status_is_documented() -> None:
    first_cells = "".join(re.findall(r"^\| (`.*?) \|", sections()["status"], flags=re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) == {field.name for field in fields(StatusView)}


def test_every_line_of_the_doctor_is_documented() -> None:
    rows = re.findall(r"^\| `([a-z ]+)` \|", sections()["doctor"], flags=re.MULTILINE)
    around = Circumstances(store_given=False, pace=Pace(15_000_000, 5_000_000), keep=1)
    shown = {check.name for check in examine(make_store("memory://"), Threads(), around)}
    assert shown - {"lease"} <= set(rows)
    assert set(rows) - shown == {"lease", "store file"}  # said only where there are nodes, or such a file


def test_the_examples_are_what_the_commands_print(cli: Cli) -> None:
    shown = cli("next", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07", "-n", "3").out
    assert re.sub("^(?=.)", "    ", shown, flags=re.MULTILINE) in sections()["next"]
    shown = cli("explain", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-11-15T19:53Z").out
    assert re.sub("^(?=.)", "    ", shown, flags=re.MULTILINE) in sections()["explain"]
