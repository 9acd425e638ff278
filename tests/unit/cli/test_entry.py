"""Manners: one message for a mistake, the right exit code, help that tells them, nothing made by accident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import solocron
from solocron import errors
from solocron.cli import commands, parser
from solocron.cli.exits import EXITS
from tests.servers.base import free_port
from tests.unit.cli.kit import Cli, Shop

LOOKING = ["jobs", "runs", "nodes", "status", "restored"]
NAMING = [("show", "x@1"), ("next", "x"), ("trigger", "x"), ("pause", "x"), ("resume", "x"), ("cancel", "x@1")]


def test_help_has_every_command_and_every_exit_code(cli: Cli) -> None:
    answer = cli("--help")
    assert answer.code == 0
    for name in parser.COMMANDS:
        assert f"\n    {name} " in answer.out
    for code, meaning in EXITS.items():
        assert f"  {code:<4} {meaning}" in answer.out


@pytest.mark.parametrize("command", list(parser.COMMANDS))
def test_every_command_has_help_with_exit_codes(cli: Cli, command: str) -> None:
    answer = cli(command, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"usage: solocron {command} ")
    assert "exit codes:" in answer.out


def test_every_error_has_an_exit_code_that_help_explains() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    assert {kind.exit_code for kind in kinds if not issubclass(kind, errors.RunStopped)} <= set(EXITS)


def test_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("solocron 0.")


def test_without_a_command_the_help_is_on_stderr(cli: Cli) -> None:
    answer = cli()
    assert (answer.code, answer.out) == (2, "")
    assert "usage: solocron" in answer.err


def test_an_unknown_command_is_refused_with_the_nearest(cli: Cli) -> None:
    answer = cli("stauts")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines() == [
        "solocron: there is no command 'stauts'; did you mean 'status'?",
        "next: solocron --help",
    ]


def test_an_unknown_flag_is_refused_with_the_nearest(cli: Cli) -> None:
    answer = cli("runs", "--limitt", "3")
    assert answer.code == 2
    assert answer.err.splitlines() == [
        "solocron runs: unrecognized arguments: --limitt; did you mean '--limit'?",
        "next: solocron runs --help",
    ]


def test_a_flag_that_is_near_to_none_gets_no_guess(cli: Cli) -> None:
    answer = cli("resume", "--all", "--until", "2h")
    assert answer.code == 2
    assert answer.err.splitlines()[0] == "solocron resume: unrecognized arguments: --until"


def test_flags_are_not_abbreviated(cli: Cli, shop: Shop) -> None:
    assert cli("jobs", "--sto", shop.url).code == 2


@pytest.mark.parametrize("bad", ["0", "-1", "many"])
def test_a_limit_is_a_whole_number_from_one_up(cli: Cli, bad: str) -> None:
    answer = cli("runs", "--limit", bad)
    assert answer.code == 2
    assert "whole number from 1 up" in answer.err


@pytest.mark.parametrize("command", [*[(name,) for name in LOOKING], *NAMING])
def test_a_missing_file_is_not_made(cli: Cli, elsewhere: Path, command: tuple[str, ...]) -> None:
    answer = cli(*command, "--store", "sqlite:///solocron.db")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("solocron: nothing of Solocron's is at sqlite:///solocron.db: there is no file")
    assert "Nothing was made." in answer.err
    assert list(elsewhere.iterdir()) == []


def test_a_missing_default_store_says_that_it_is_the_default(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "(the default)" in cli("jobs").err
    monkeypatch.setenv("SOLOCRON_STORE", "sqlite:///else.db")
    assert "(from SOLOCRON_STORE)" in cli("jobs").err


def test_a_symbolic_link_that_leads_nowhere_is_refused_as_a_link(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "link.db").symlink_to("nothing.db")
    answer = cli("jobs", "--store", "sqlite:///link.db")
    assert answer.code == 5
    assert "symbolic link" in answer.err


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("postgrse://db", 2, "Did you mean postgres"),
        ("solocron.db", 2, "no scheme"),
        ("sqlite:///x.db?sync=off", 2, "option 'sync' is not known"),
        ("sqlite:///no-such-folder/x.db", 3, "no file"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_clear_message(cli: Cli, url: str, code: int, said: str) -> None:
    answer = cli("jobs", "--store", url)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_command_whose_store_is_away_says_that_it_is_over(cli: Cli) -> None:
    """A node tries again by itself. A command does not, and must not say so."""
    for url in (f"postgresql://x@127.0.0.1:{free_port()}/y", f"mysql://x@127.0.0.1:{free_port()}/y"):
        answer = cli("jobs", "--store", url)
        assert (answer.code, answer.out) == (5, "")
        first = answer.err.splitlines()[0]
        assert "tried again" not in first
        assert first.endswith("nothing was written. This command exits with 5; run it again when the store is back.")
        assert "tried again" not in cli("doctor", "--store", url).out


def test_a_bad_namespace_is_refused(cli: Cli) -> None:
    assert cli("jobs", "--store", "memory://", "--namespace", "a b").code == 2


def test_a_file_that_is_not_a_database_is_refused(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "notes.txt").write_text("Dear diary, " * 100)
    answer = cli("jobs", "--store", "sqlite:///notes.txt")
    assert answer.code == 5
    assert "not a SQLite database" in answer.err
    assert (elsewhere / "notes.txt").read_text().startswith("Dear diary")


def test_a_password_is_shown_nowhere(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOCRON_STORE", "mysqll://me:canary-7351@db/app")
    answer = cli("jobs")
    assert answer.code == 2
    assert "canary" not in answer.out + answer.err


def test_the_next_step_names_the_same_store_but_no_password(cli: Cli) -> None:
    assert cli("jobs", "--store", "mysql://127.0.0.1:1/app").err.splitlines()[-1] == (
        "next: solocron doctor --store mysql://127.0.0.1:1/app"
    )
    answer = cli("jobs", "--namespace", "billing", "--store", "mysql://me:canary-7351@127.0.0.1:1/app")
    assert answer.code == 5
    assert answer.err.splitlines()[-1] == "next: solocron doctor --store URL --namespace billing"
    assert "canary" not in answer.err


def test_the_demo_takes_a_store_before_or_after_its_name() -> None:
    assert parser.parse(["demo"]).store is None
    assert parser.parse(["demo", "--store", "memory://a", "--seconds", "2"]).store == "memory://a"
    assert parser.parse(["--store", "memory://b", "demo"]).store == "memory://b"


def test_the_demos_verdict_is_the_exit_code(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.demo.main", lambda args: int(args.seconds))
    assert cli("demo", "--seconds", "7").code == 7


def test_an_interrupt_is_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solocron.cli.commands.jobs.opened", interrupted)
    answer = cli("jobs")
    assert (answer.code, answer.err) == (130, "")


@pytest.mark.parametrize("argv", [("--help",), ("trigger", "--help"), ("completion", "bash")], ids=" ".join)
def test_help_and_completion_import_nothing_that_a_command_needs(argv: tuple[str, ...]) -> None:
    """They are asked often, and the wheel is built without the package's dependencies."""
    look = (
        "import sys, io, contextlib\n"
        "from solocron.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()): assert main({argv!r}) == 0\n"
        "heavy = {'rich', 'cronsim', 'tzdata', 'asyncio', 'sqlite3', 'subprocess'}\n"
        "ours = ('client', 'doctor', 'effects', 'engine', 'scheduler', 'schedules', 'stores', 'views')\n"
        "heavy |= {f'solocron.{name}' for name in ours}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    here = {"PYTHONPATH": str(Path(solocron.__file__).parent.parent)}
    shown = subprocess.run([sys.executable, "-c", look], env=here, capture_output=True, text=True, timeout=60)
    assert shown.stderr == ""
    assert shown.stdout.strip() == "[]"


def test_help_imports_no_file_of_a_command() -> None:
    look = (
        "import sys, io, contextlib\n"
        "from solocron.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): assert main(['--help']) == 0\n"
        "print(sorted(name for name in sys.modules if name.startswith('solocron.cli.commands')))\n"
    )
    here = {"PYTHONPATH": str(Path(solocron.__file__).parent.parent)}
    shown = subprocess.run([sys.executable, "-c", look], env=here, capture_output=True, text=True, timeout=60)
    assert (shown.stdout.strip(), shown.stderr) == ("[]", "")


def test_every_command_has_the_file_of_its_name_and_no_file_is_left_over() -> None:
    folder = Path(commands.__file__).parent
    assert {file.stem for file in folder.glob("*.py")} == {
        "__init__",
        *(name.replace("-", "_") for name in parser.COMMANDS),
    }
