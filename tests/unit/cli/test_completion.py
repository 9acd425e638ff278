"""Completion files: what they offer is what the parser knows, and the shells read them."""

from __future__ import annotations

import re
import shutil
import subprocess
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest

from solocron.cli import parser
from solocron.cli.completion import SHELLS, script


def subparsers() -> dict[str, ArgumentParser]:
    (found,) = [a for a in parser.build()._actions if isinstance(a, _SubParsersAction)]
    return dict(found.choices)


def flags(command: ArgumentParser) -> set[str]:
    return {flag for action in command._actions for flag in action.option_strings}


def completed(tmp_path: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    (tmp_path / "solocron").write_text(script("bash", parser.build()))
    line = " ".join(f"'{word}'" for word in ("solocron", *words))
    asked = f"source {tmp_path / 'solocron'}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _solocron"
    done = subprocess.run(
        ["bash", "--norc", "-c", f'set -eu; {asked}; printf "%s\\n" "${{COMPREPLY[@]}}"; complete -p solocron'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *offered, known = done.stdout.splitlines()
    assert known == "complete -o default -F _solocron solocron"
    return set(offered) - {""}


def test_bash_offers_the_commands_first_and_then_each_ones_flags(tmp_path: Path) -> None:
    commands = subparsers()
    assert completed(tmp_path, "") == set(commands) | {"--help", "-h", "--version", "--store", "--namespace"}
    assert completed(tmp_path, "re") == {name for name in commands if name.startswith("re")}
    for name, command in commands.items():
        assert completed(tmp_path, name, "-") == flags(command), name


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("run", "--log-format", ""), {"text", "json"}),
        (("run", "--log-format", "j"), {"json"}),
        (("explain", "--gap", ""), {"run-after", "skip"}),
        (("run", "--lease", ""), set()),
        (("--store", "jobs", "sta"), {"status"}),
        (("--store", ""), set()),
        (("completion", "f"), {"fish"}),
        (("trigger", "--wait", "--js"), {"--json"}),
    ],
)
def test_bash_knows_where_a_value_is_expected(tmp_path: Path, words: tuple[str, ...], offered: set[str]) -> None:
    assert completed(tmp_path, *words) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_every_flag_is_in_every_file(shell: str) -> None:
    text = script(shell, parser.build())
    for name, command in subparsers().items():
        assert re.search(rf"\b{name}\b", text), name
        for flag in flags(command):
            wanted = f"-l {flag[2:]} " if shell == "fish" and flag.startswith("--") else flag
            assert (f"-s {flag[1:]} " if shell == "fish" and not flag.startswith("--") else wanted) in text, (
                name,
                flag,
            )


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_can_read_its_file(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "completion"
    file.write_text(script(shell, parser.build()))
    done = subprocess.run([shell, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
