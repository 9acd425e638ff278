"""`solocron diff`: what a deployment would change, its exit code for a pipeline, and that nothing is written."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest

from solocron.stores.url import make_store
from tests.unit.cli.kit import Answer, Cli, Write

_numbers = itertools.count()

PROGRAM = """
    import os
    from solocron import Scheduler

    scheduler = Scheduler("memory://{world}", node="web-1")
    options = eval(os.environ.get("OPTIONS", "{{}}"))

    @scheduler.cron(os.environ.get("EXPRESSION", "0 9 * * *"), **options)
    def report(): ...

    if "GONE" not in os.environ:
        @scheduler.every("1h")
        def cleanup(): ...
"""


@pytest.fixture
def program(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program that is deployed already; the environment makes another version of it."""
    world = f"diff-{next(_numbers)}"
    for name in ("OPTIONS", "EXPRESSION", "GONE"):
        monkeypatch.delenv(name, raising=False)
    write("shop_diff.py", PROGRAM.format(world=world))
    assert cli("tick", "shop_diff").code == 0
    return world


def diff(cli: Cli, *more: str) -> Answer:
    sys.modules.pop("shop_diff", None)
    return cli("diff", "shop_diff", *more)


def test_the_same_program_is_code_0(cli: Cli, program: str) -> None:
    answer = diff(cli)
    assert (answer.code, answer.out) == (0, "no difference, 2 jobs\n")
    assert diff(cli, "--json").json["jobs"] == []


def test_a_changed_program_is_code_7_with_the_slots_before_and_after(
    cli: Cli, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPRESSION", "30 7 * * *")
    monkeypatch.setenv("OPTIONS", "{'retries': 3}")
    monkeypatch.setenv("GONE", "1")
    answer = diff(cli)
    assert answer.code == 7
    lines = answer.lines
    assert lines[0] == "- cleanup  (removed)"
    assert "To forget it: solocron remove cleanup" in lines[2]
    assert lines[3:6] == [
        "~ report  (changed)",
        "    schedule: At 09:00 every day, UTC -> At 07:30 every day, UTC",
        "    retries: - -> 3",
    ]
    assert lines[6].startswith("    next before: ")
    assert lines[7].startswith("    next after: ")
    assert lines[8] == "    written by the first new node"
    assert lines[9] == "0 jobs are the same, 2 differ"
    told = diff(cli, "--json").json
    assert (told["same"], told["problems"], told["namespace"]) == (0, 0, "default")
    report = told["jobs"][1]
    assert (report["job"], report["difference"]) == ("report", "changed")
    assert report["fields"][1] == {"field": "retries", "before": "-", "after": "3"}
    assert [slot[11:] for slot in report["after"]] == ["07:30:00Z"] * 3


def test_a_problem_is_code_1(cli: Cli, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIONS", "{'calendar': 'fr-banking'}")
    answer = diff(cli)
    assert answer.code == 1
    assert "! calendar: the calendar 'fr-banking' is not in the store, so no node would start." in answer.out
    told = diff(cli, "--json")
    assert told.code == 1
    assert told.json["problems"] == 1


def test_pools_of_the_command_line_count(cli: Cli, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTIONS", "{'pool': 'gpu'}")
    assert diff(cli).code == 1
    assert diff(cli, "--pools", "default,gpu").code == 7


def test_before_the_first_deployment_every_job_is_added_and_nothing_is_made(
    cli: Cli, write: Write, elsewhere: Path
) -> None:
    write("shop_first.py", PROGRAM.format(world="nowhere"))
    before = set(elsewhere.iterdir())
    answer = cli("diff", "shop_first", "--store", "sqlite:///new.db")
    assert answer.code == 7
    assert [line for line in answer.lines if line.startswith("+")] == ["+ cleanup  (added)", "+ report  (added)"]
    assert "this would be the first deployment there" in answer.err
    assert {path for path in elsewhere.iterdir() if path.name != "__pycache__"} == before


def test_it_writes_nothing(cli: Cli, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from solocron.model.change import Kind
    from solocron.stores.contract import All

    store = make_store(f"memory://{program}")
    store.open()
    before = [list(store.read(All(kind))) for kind in Kind]
    monkeypatch.setenv("EXPRESSION", "30 7 * * *")
    assert diff(cli).code == 7
    assert [list(store.read(All(kind))) for kind in Kind] == before


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("shop_none", 2, "there is no module 'shop_none'"),
        ("shop_broken", 2, "could not be imported"),
        ("shop_empty", 2, "declares no jobs"),
    ],
)
def test_bad_targets_are_one_clear_message(cli: Cli, write: Write, target: str, code: int, said: str) -> None:
    write("shop_broken.py", "import no_such_module_here\n")
    write("shop_empty.py", "x = 1\n")
    answer = cli("diff", target)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_store_that_is_away_is_code_5(cli: Cli, program: str) -> None:
    assert diff(cli, "--store", "redis://127.0.0.1:1/0").code == 5


def test_a_job_that_has_only_a_problem_is_not_said_to_differ(cli: Cli, write: Write) -> None:
    write(
        "shop_pools.py",
        """
        from solocron import Scheduler

        scheduler = Scheduler("memory://shop-pools")

        @scheduler.every("1h", pool="etl")
        def load(): ...

        @scheduler.every("1h")
        def send(): ...
    """,
    )
    assert cli("tick", "shop_pools").code == 0
    lines = cli("diff", "shop_pools").lines
    assert lines[0] == "! load  (same)"
    assert lines[-1] == "1 job is the same, 1 would not run as declared"


@pytest.mark.parametrize("room", [80, 60])
def test_on_a_terminal_no_instant_is_broken(cli: Cli, program: str, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setenv("EXPRESSION", "30 7 * * *")
    plain = diff(cli)
    slots = re.findall(r"[A-Z][a-z]{2} [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{5} [+-][0-9:]{5}", plain.out)
    assert len(slots) >= 6
    monkeypatch.setattr("solocron.cli.output.columns", lambda: room)
    answer = diff(cli)
    assert max(map(len, answer.lines)) <= room
    assert all(any(slot in line for line in answer.lines) for slot in slots)
    assert answer.out.split() == plain.out.split()
