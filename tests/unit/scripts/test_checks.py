"""The project's own checks find what they are for, and let the rest alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

import check_files  # noqa: E402
import check_seams  # noqa: E402
import check_typing  # noqa: E402
import check_words  # noqa: E402


def seams(tmp_path: Path, where: str, source: str) -> list[str]:
    file = tmp_path / where
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return list(check_seams.problems(tmp_path))


@pytest.mark.parametrize("folder", ["engine", "model"])
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import time", "imports time"),
        ("from random import choice", "imports random"),
        ("import uuid as u", "imports uuid"),
        ("import secrets", "imports secrets"),
        ("import threading", "imports threading"),
        ("from queue import Queue", "imports queue"),
        ("import concurrent.futures", "imports concurrent.futures"),
        ("import asyncio", "imports asyncio"),
        ("from multiprocessing import Process", "imports multiprocessing"),
        ("import socket", "imports socket"),
        ("from os import environ", "imports os"),
        ("def f():\n    import os", "imports os"),
        ("datetime.now(UTC)", "calls datetime.now()"),
        ("datetime.datetime.utcnow()", "calls datetime.datetime.utcnow()"),
        ("date.today()", "calls date.today()"),
        ("datetime.fromtimestamp(0)", "calls datetime.fromtimestamp()"),
    ],
)
def test_the_engine_and_the_model_may_not_reach_past_their_seams(
    tmp_path: Path, folder: str, source: str, said: str
) -> None:
    (problem,) = seams(tmp_path, f"{folder}/deep/file.py", source)
    assert said in problem
    assert problem.startswith(f"{folder}/deep/file.py:")


@pytest.mark.parametrize(
    ("where", "source"),
    [
        ("runtime.py", "import threading, os, time"),
        ("dispatch/thread.py", "import queue"),
        ("engine/node.py", "from solocron.clock import Clock\nclock.now()\ndatetime.fromtimestamp(0, UTC)"),
        ("model/time.py", "from solocron.model import time"),
        ("cli/run.py", "subprocess.run(argv, shell=False)\nre.compile('x')\nexecute()"),
    ],
)
def test_what_is_in_its_place_is_let_alone(tmp_path: Path, where: str, source: str) -> None:
    assert seams(tmp_path, where, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from marshal import loads",
        "import shelve",
        "eval(text)",
        "exec(text)",
        "subprocess.run(text, shell=True)",
        "subprocess.run(text, shell=flag)",
        "os.system(text)",
        "__import__(name)",
    ],
)
def test_nothing_in_the_package_runs_code_from_data(tmp_path: Path, source: str) -> None:
    assert len(seams(tmp_path, "cli/anything.py", source)) == 1


def test_the_package_as_it_is_keeps_to_its_seams() -> None:
    assert list(check_seams.problems(check_seams.PACKAGE)) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", "open('/wor" + "k/data')"),
        ("a.md", "sqlite:////tm" + "p/solocron.db"),
        ("requirements.txt", "--inde" + "x-url there"),
        ("requirements.txt", "--find-link" + "s there"),
        ("a.toml", "url = 'https://example.org/simpl" + "e/'"),
        ("package-lock.json", '"resolve' + 'd": "x"'),
    ],
)
def test_what_belongs_to_one_machine_is_found(tmp_path: Path, name: str, line: str) -> None:
    (tmp_path / name).write_text(f"first\n{line}\n")
    (problem,) = check_files.problems(tmp_path, [tmp_path / name])
    assert problem.startswith(f"{name}:2: ")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", "resolved = path.resolve()"),
        ("a.md", "see https://example.org/docs and the tmp folder, at work/life balance"),
        ("binary.bin", "\udcff"),
    ],
)
def test_ordinary_files_are_let_alone(tmp_path: Path, name: str, line: str) -> None:
    (tmp_path / name).write_text(line, errors="surrogateescape")
    assert list(check_files.problems(tmp_path, [tmp_path / name, tmp_path / "removed"])) == []


def test_the_project_as_it_is_belongs_to_no_machine() -> None:
    assert list(check_files.problems(ROOT, check_files.project_files(ROOT))) == []


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('"""Claimed by nobody."""', "client/file.py:1: 'nobody': name the actor"),
        ("x = 1  # Whoever is next takes it", "client/file.py:1: 'Whoever': name the actor"),
        ('"""First line.\n\nIt waits for ever.\n"""', "client/file.py:3: 'for ever': write: forever"),
        ("def on_goodbye(): ...", "client/file.py:1: the name 'on_goodbye': say close session"),
        ("class WaitingBell: ...", "client/file.py:1: the name 'WaitingBell': say notification"),
        ("OWED = 3", "client/file.py:1: the name 'OWED': say waiting run"),
        ('"""Count a bell that we hear."""', "client/file.py:1: the word 'bell': say notification"),
        ("x = 1  # one slice of it", "client/file.py:1: the word 'slice': say shard"),
    ],
)
def test_a_word_that_was_given_up_is_named_with_the_one_to_use(tmp_path: Path, source: str, said: str) -> None:
    _write(tmp_path / "client" / "file.py", source)
    (problem,) = check_words.problems(tmp_path)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    "source",
    [
        "x = slice(1)",
        'icon = "bell"',
        '"""The lower bound; however long it takes."""',
        "bellow = 1",
        "follower = power = 1",
    ],
)
def test_words_that_only_look_alike_are_left_alone(tmp_path: Path, source: str) -> None:
    _write(tmp_path / "client" / "file.py", source)
    assert list(check_words.problems(tmp_path)) == []


def test_pages_and_examples_are_read_as_well(tmp_path: Path) -> None:
    pages = ("CHANGELOG.md", "README.md", "docs/how-to/page.md", "examples/job.py")
    for page in pages:
        _write(tmp_path / page, "The first line.\nA slice runs here.")
    found = [(str(file), number) for file, number, _ in check_words.page_problems(tmp_path)]
    assert found == [(page, 2) for page in pages]


def test_strings_of_tests_are_data_and_their_docstrings_are_prose(tmp_path: Path) -> None:
    lines = ['user = "nobody is at home"', "# for ever", "def test():", '    """Claimed by nobody."""', "    owed = 1"]
    _write(tmp_path / "test_a.py", "\n".join(lines))
    assert [line for _, line, _ in check_words.word_problems(tmp_path, data=True)] == [2, 4, 5]


def test_comments_of_statements_and_scripts_are_read_as_well(tmp_path: Path) -> None:
    _write(tmp_path / "statements" / "common.sql", "-- ask --  Count the owed ones.\nSELECT 1")
    _write(tmp_path / "lua" / "swap.lua", "local slice = 1 -- the bell")
    found = list(check_words.problems(tmp_path))
    assert found == [
        "lua/swap.lua:1: the word 'bell': say notification",
        "statements/common.sql:1: the word 'owed': say waiting run",
    ]


@pytest.mark.parametrize("name", ["Keeper", "_Keeper"])
def test_two_classes_of_one_name_are_refused(tmp_path: Path, name: str) -> None:
    _write(tmp_path / "a.py", f"class {name}: ...\nclass Own: ...")
    _write(tmp_path / "b.py", f"class {name}(object): ...")
    (problem,) = check_words.problems(tmp_path)
    assert problem.startswith(f"class {name} stands twice: a.py, b.py")


def _write(file: Path, source: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)


def test_a_mistake_that_no_checker_reports_and_a_report_without_a_mark_are_told_apart() -> None:
    marked = check_typing.marked("right()\nwrong()  # wrong\nalso_wrong()  # wrong\n")
    assert marked == {2, 3}
    assert check_typing.differences(marked, {2, 3}) == []
    assert check_typing.differences(marked, {1, 3}) == [
        "line 2 is wrong and was not reported",
        "line 1 was reported and is not marked",
    ]
