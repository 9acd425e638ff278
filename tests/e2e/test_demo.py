"""`solocron demo` as people run it: it ends by itself, tells the truth, and fails when the claim is broken."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from solocron.cli import main
from solocron.demo.screen import rows_of
from solocron.testing.fleet import Fleet, FleetVerdict, Line
from tests.required import require_module

SABOTAGE = Path(__file__).parent / "sabotage"
NOTHING = FleetVerdict(
    slots=0, once=0, twice=0, lost=0, takeover_s=None, stale_refused=0, stale_accepted=0, early=0, unrecorded=0,
    kills=0, freezes=0, takeovers=(), faults=(),
)  # fmt: skip
KEYS = {"slots", "once", "twice", "lost", "takeover_s", "stale_refused"}


def demo(*arguments: str, path: Path | None = None, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo as a program of its own, with its temporary files in a folder of the test's."""
    paths = [str(path)] if path else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *filter(None, sys.path)])}
    environment |= {"TMPDIR": str(folder), "SOLOCRON_STORE": "postgresql://nobody@127.0.0.1:1/not-for-demos"}
    command = [sys.executable, "-m", "solocron.demo", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, f"{pattern} is not in:\n{text}"
    return match[1]


def test_the_demo_kills_and_freezes_and_every_slot_runs_once(tmp_path: Path) -> None:
    """On a store that is given to it, from which it takes its jobs out again."""
    store, temporary = tmp_path / "own.db", tmp_path / "temporary"
    temporary.mkdir()
    options = ["--seconds", "5", "--replicas", "3", "--json", "--store", f"sqlite:///{store}"]
    done = demo(*options, folder=temporary)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict.keys() >= KEYS
    assert 3 * 5 <= verdict["slots"] == verdict["once"]
    assert (verdict["twice"], verdict["lost"]) == (0, 0)
    assert 0 < verdict["takeover_s"] < 60
    assert verdict["stale_refused"] >= 1
    assert (verdict["kills"], verdict["freezes"]) == (1, 1)
    assert list(temporary.iterdir()) == [], "nothing is left behind"
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("SELECT count(*) FROM solocron_jobs").fetchone() == (0,)
        (namespaces,) = database.execute("SELECT DISTINCT namespace FROM solocron_runs").fetchall()
    assert re.fullmatch("demo-[0-9a-f]{8}", namespaces[0])


@pytest.mark.long
def test_the_demo_as_it_is_takes_about_forty_seconds(tmp_path: Path) -> None:
    since = time.monotonic()
    done = demo("--json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - since < 50
    verdict = json.loads(done.stdout)
    assert verdict["slots"] >= 3 * 30
    assert verdict["takeover_s"] <= 4
    assert list(tmp_path.iterdir()) == []


def test_the_demo_fails_when_the_claim_is_broken(tmp_path: Path) -> None:
    """The same demo over a store that now and then forgets to write a claim: the judge must see it.

    Without a terminal it prints a line for each attempt, and what is done to the replicas.
    """
    done = demo("--seconds", "3", "--replicas", "2", path=SABOTAGE, folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert int(found(r"run twice +(\d+)", done.stdout)) > 0
    assert "NOT as promised" in done.stdout
    assert re.search(r"twice: \w+ .*: attempt 1 started \d times", done.stdout)
    assert "are kept in" in done.stderr
    assert found(r"(replica-\d) killed with SIGKILL in the middle of report", done.stdout)
    assert found(r"(replica-\d) frozen with SIGSTOP in the middle of report", done.stdout)
    assert found(r"ping +\d\d:\d\d:\d\d +replica-\d +attempt 1  fence \d+  (done)", done.stdout)
    assert "\x1b" not in done.stdout, "colours are for terminals"


@pytest.mark.parametrize("arguments", [("--replicas", "1"), ("--replicas", "many"), ("--seconds", "0")])
def test_impossible_arguments_are_a_usage_error(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *arguments]) == 2
    assert "is not a number" in capsys.readouterr().err


def test_a_store_that_processes_cannot_share_is_refused(tmp_path: Path) -> None:
    done = demo("--store", "memory://", folder=tmp_path)
    assert done.returncode == 2
    assert "cannot be shared by processes" in done.stderr
    assert list(tmp_path.iterdir()) == []


def line(event: str, *, fence: int, pid: int, at: float) -> Line:
    return Line(
        event=event, job="report", run="report@1", key="report@x", slot=0, attempt=fence, fence=fence, node=f"n{pid}",
        pid=pid, at=at,
    )  # fmt: skip


def test_the_table_tells_the_states_apart() -> None:
    lines = [line("start", fence=1, pid=1, at=1), line("start", fence=2, pid=2, at=5)]
    shown = [row.state for row in rows_of(lines, dead=frozenset({1}), frozen=frozenset({2}))]
    assert shown == ["taken over", "frozen"]
    lines += [line("end", fence=2, pid=2, at=6), line("end", fence=1, pid=1, at=7)]
    assert [row.state for row in rows_of(lines, dead=frozenset(), frozen=frozenset())] == [
        "refused: taken over",
        "done",
    ]
    alone = [line("start", fence=1, pid=1, at=1)]
    assert [row.state for row in rows_of(alone, dead=frozenset({1}), frozen=frozenset())] == ["killed"]
    assert [row.state for row in rows_of(alone, dead=frozenset(), frozen=frozenset())] == ["running"]
    raised = [*alone, line("raised", fence=1, pid=1, at=2)]
    assert [row.state for row in rows_of(raised, dead=frozenset(), frozen=frozenset())] == ["failed"]


def test_on_a_terminal_the_table_is_live(tmp_path: Path) -> None:
    """What rich draws, without a replica: the rows come from the ledger alone."""
    rich = require_module("rich.console")
    from solocron.demo.live import LiveScreen

    out = io.StringIO()
    console = rich.Console(file=out, force_terminal=True, width=120, height=40, highlight=False)
    with Fleet(["solocron.demo.jobs"], store=f"sqlite:///{tmp_path / 'store.db'}", folder=tmp_path) as fleet:
        lines = [line("start", fence=1794782394000, pid=1, at=1), line("end", fence=1794782394000, pid=1, at=2)]
        (fleet.ledger.folder / "1.ledger").write_text("".join(json.dumps(asdict(one)) + "\n" for one in lines))
        with LiveScreen(console) as screen:
            screen.say("replica-3 killed with SIGKILL")
            screen.show(fleet)
            screen.tell(NOTHING, lease=3)
    shown = out.getvalue()
    for text in ("ran on", "1794782394000", "done", "replica-3 killed with SIGKILL", "every slot ran once"):
        assert text in shown
    assert "\x1b[" in shown
