"""Completion files: what they offer is what the parser knows, and the shells read them."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import threading
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.cli import parser
from solocron.cli.commands.jobs import STATES
from solocron.cli.completion import SHELLS, script
from solocron.client.job_listing import JobState
from solocron.model.change import Kind
from solocron.stores.contract import All, Doc, Which
from solocron.stores.memory import MemoryStore
from tests.unit.cli.kit import Cli, Shop


def subparsers() -> dict[str, ArgumentParser]:
    (found,) = [a for a in parser.build()._actions if isinstance(a, _SubParsersAction)]
    return dict(found.choices)


def flags(command: ArgumentParser) -> set[str]:
    return {flag for action in command._actions for flag in action.option_strings}


def completed(tmp_path: Path, *words: str, environment: Mapping[str, str] | None = None) -> set[str]:
    """What bash puts in the place of the last word."""
    (tmp_path / "solocron").write_text(script("bash", parser.build()))
    line = " ".join(("solocron", *words))
    asked = f"source {tmp_path / 'solocron'}; COMP_LINE='{line}'; COMP_POINT={len(line)}; _solocron"
    done = subprocess.run(
        ["bash", "--norc", "-c", f'set -eu; {asked}; printf "%s\\n" "${{COMPREPLY[@]-}}"; complete -p solocron'],
        capture_output=True, text=True, check=True, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    assert done.stderr == ""
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
        (("--store", "redis://h:1/0", "sta"), {"status"}),
        (("--store=redis://h:1/0", "sta"), {"status"}),
        (("run", "--log-format=j"), {"json"}),
        (("runs", "--status", "fai"), {"failed"}),
        (("runs", "--status", "lost,fai"), {"lost,failed"}),
        (("runs", "--status=lost,fai"), {"lost,failed"}),
        (("jobs", "--state", "or"), {"orphaned"}),
        (("runs", "--origin", "b"), {"backfill"}),
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


def test_the_states_that_are_offered_are_those_that_there_are() -> None:
    assert tuple(JobState) == STATES


# --- names from the store --------------------------------------------------------------------------------------------


def test_the_names_of_jobs_and_runs_are_those_of_the_store(cli: Cli, shop: Shop) -> None:
    run = shop.ran("invoices")
    shop.scheduler.remove("report")
    at = ("completion", "--store", shop.url, "--values")
    assert cli(*at, "jobs").lines == ["broken", "invoices"]
    assert cli(*at, "jobs", "--prefix=inv").lines == ["invoices"]
    assert cli(*at, "jobs", "--prefix=invoices").lines == ["invoices"]
    assert cli(*at, "jobs", "--prefix=x").lines == []
    assert cli(*at, "runs").lines == [run]
    assert cli(*at, "runs", "--prefix=invoices@").lines == [run]
    assert cli(*at, "runs", f"--prefix={run[:-1]}").lines == [run]
    assert cli(*at, "runs", "--prefix=broken@").lines == []


def test_what_runs_or_waits_is_offered_too(cli: Cli, shop: Shop) -> None:
    waiting = shop.scheduler.trigger("invoices")
    assert cli("completion", "--store", shop.url, "--values", "runs", "--prefix=invoices@").lines == [waiting]


def test_no_more_names_are_read_than_are_offered(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.cli.completion.candidates._MOST", 1)
    asked, read = list[Which](), MemoryStore.read

    def counted(store: MemoryStore, which: Which) -> tuple[Doc, ...]:
        asked.append(which)
        return read(store, which)

    monkeypatch.setattr(MemoryStore, "read", counted)
    assert cli("completion", "--store", shop.url, "--values", "jobs").lines == ["broken"]
    assert asked == [All(Kind.JOB, limit=1)]


@pytest.mark.parametrize(
    "url", ["sqlite:///nowhere.db", "redis://127.0.0.1:1/0", "nonsense://", "memory://nothing-there"], ids=str
)
@pytest.mark.parametrize("kind", ["jobs", "runs"])
def test_a_store_that_is_away_is_silence(cli: Cli, url: str, kind: str) -> None:
    answer = cli("completion", "--store", url, "--values", kind)
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_a_store_that_does_not_answer_is_given_up(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell freezes while it completes, and drivers wait for longer than a person does."""
    answers = threading.Event()

    def deaf(*_: object, **__: object) -> None:
        assert answers.wait(60)

    monkeypatch.setattr("solocron.cli.completion.candidates._PATIENCE", 0.01)
    monkeypatch.setattr(MemoryStore, "open", deaf)
    try:
        answer = cli("completion", "--store", "memory://deaf", "--values", "jobs")
    finally:
        answers.set()
        for thread in threading.enumerate():
            if thread.name == "completion":
                thread.join()
    assert (answer.code, answer.out, answer.err) == (0, "", "")


@pytest.mark.parametrize("given", [(), ("bash", "--values", "jobs")], ids=["neither", "both"])
def test_a_shell_or_values_must_be_asked_for(cli: Cli, given: tuple[str, ...]) -> None:
    answer = cli("completion", *given)
    assert answer.code == 2
    assert "give either a shell (bash, zsh, fish) or --values; nothing was printed." in answer.err


@pytest.fixture
def eu(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A store whose job has a colon in its name, and the environment in which shells find it."""
    url = f"sqlite:///{tmp_path / 'eu.db'}"
    scheduler = Scheduler(url)
    scheduler.every("1h", name="invoice:eu")(lambda: None)
    scheduler.tick()
    run = scheduler.trigger("invoice:eu")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    yield {"SOLOCRON_STORE": url, "PATH": programs, "RUN": run}
    scheduler.stop()


def test_bash_completes_names_with_colons_and_ids(tmp_path: Path, eu: dict[str, str]) -> None:
    """bash splits a word at colons and at signs, and replaces only what stands after the last of them."""
    run = eu["RUN"]
    assert completed(tmp_path, "trigger", "inv", environment=eu) == {"invoice:eu"}
    assert completed(tmp_path, "trigger", "invoice:e", environment=eu) == {"eu"}
    assert completed(tmp_path, "show", run[:-3], environment=eu) == {run.partition("@")[2]}
    there = {**eu, "SOLOCRON_STORE": "sqlite:///nowhere.db"}
    assert completed(tmp_path, "trigger", "inv", environment=there) == set()
    at = ("--store", eu["SOLOCRON_STORE"])
    assert completed(tmp_path, *at, "jobs", "--after", "inv", environment=there) == {"invoice:eu"}


def test_fish_completes_names_and_lists(tmp_path: Path, eu: dict[str, str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    (tmp_path / "solocron.fish").write_text(script("fish", parser.build()))

    def offered(line: str) -> list[str]:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {tmp_path / 'solocron.fish'}; complete -C '{line}'"],
            capture_output=True, text=True, check=True, env={**os.environ, **eu, "HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.stderr == ""
        return [answer.partition("\t")[0] for answer in done.stdout.splitlines()]

    assert offered("solocron trigger inv") == ["invoice:eu"]
    assert offered(f"solocron show {eu['RUN'][:-3]}") == [eu["RUN"]]
    assert offered("solocron runs --status lost,fai") == ["lost,failed"]
    assert offered("solocron runs --status fai") == ["failed"]
    assert offered("solocron --store sqlite:///nowhere.db trigger inv") == []


def test_zsh_completes_names_and_lists(tmp_path: Path, eu: dict[str, str]) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    (tmp_path / "_solocron").write_text(script("zsh", parser.build()))
    typed = {
        f"solocron show {eu['RUN'][:-3]}\t": f"solocron show {eu['RUN']}",
        "solocron trigger invoice:e\t": "solocron trigger invoice:eu",
        "solocron runs --status fai\t": "solocron runs --status failed",
        "solocron --store sqlite:///nowhere.db trigger inv\t": "solocron --store sqlite:///nowhere.db trigger inv",
    }
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(eu, HOME=str(tmp_path), TERM="dumb", PS1="")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    with os.fdopen(terminal, "r+b", buffering=0) as file:
        ready = f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -D -u; unsetopt prompt_cr beep"
        file.write(f"{ready}; print READY$((1))\n".encode())
        read_until(file.fileno(), b"READY1")
        for number, (keys, line) in enumerate(typed.items()):
            # The completed line is not run but quoted: Ctrl-A goes to its beginning, Ctrl-E to its end.
            file.write(keys.encode() + b"\x05'; print " + b"END$((%d))" % number + b"\x01print -r LINE: '\n")
            seen = read_until(file.fileno(), b"END%d" % number)
            assert f"LINE: {line}" in re.sub(r"\s+", " ", seen.decode()), seen
        file.write(b"exit\n")
        os.waitpid(process, 0)


def read_until(terminal: int, word: bytes) -> bytes:
    seen = b""
    while word not in seen:
        seen += os.read(terminal, 4096)
    return seen
