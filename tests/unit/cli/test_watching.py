"""`--watch`: frames in place, cut to the screen; Ctrl-C ends it quietly, a store that is away does not."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NoReturn

import pytest

from solocron import Scheduler
from solocron.cli import main, output
from solocron.cli.watching import watch
from solocron.errors import StoreUnavailable
from tests.unit.cli.kit import Shop
from tests.unit.cli.test_output import Terminal


def frames(draw: Callable[[], None], many: int) -> list[list[str]]:
    """What stands on the screen after each of the first frames."""
    left = iter(range(many - 1))

    def sleep(_: float) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    terminal = Terminal()
    with redirect_stdout(terminal), pytest.raises(KeyboardInterrupt):
        watch(draw, sleep)
    return [frame.removesuffix("\x1b[J").split("\x1b[K\n")[:-1] for frame in terminal.getvalue().split("\x1b[H")[1:]]


def say_each(lines: Iterable[str]) -> None:
    for line in lines:
        output.say(line)


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "6")


def test_each_frame_begins_at_the_top_and_clears_what_the_one_before_left() -> None:
    texts = iter([["one", "two"], ["three"]])
    assert frames(lambda: say_each(next(texts)), 2) == [["one", "two"], ["three"]]


def test_a_frame_is_cut_to_the_screen() -> None:
    assert frames(lambda: say_each("abcdefgh"), 1) == [["a", "b", "c", "d", "... 4 more lines"]]


def test_a_store_that_is_away_is_said_below_the_last_frame() -> None:
    def draw() -> None:
        if next(there):
            output.say("jobs")
        else:
            raise StoreUnavailable("redis://h does not answer.")

    there: Iterator[bool] = iter([True, False, False, True])
    away = ["jobs", "", "redis://h does not answer. Asked again every 2 s."]
    assert frames(draw, 4) == [["jobs"], away, away, ["jobs"]]


def test_a_store_that_is_away_from_the_beginning_is_an_error() -> None:
    def draw() -> None:
        raise StoreUnavailable("redis://h does not answer.")

    with pytest.raises(StoreUnavailable):
        watch(draw, lambda _: None)


@pytest.mark.parametrize("command", ["jobs", "runs"])
def test_ctrl_c_ends_it_quietly_on_a_real_terminal(command: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'watched.db'}"
    scheduler = Scheduler(url, node="kitchen")
    scheduler.every("1h", name="invoices:of-the-north")(lambda: None)
    scheduler.tick()
    run = scheduler.trigger("invoices:of-the-north")
    scheduler.tick()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-m", "solocron", command, "--watch", "--store", url],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            | {"TERM": "xterm"},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        seen = b""
        while b"\x1b[J" not in seen:
            seen += os.read(terminal.fileno(), 4096)
        terminal.write(b"\x03")
        assert process.wait(60) == 130
        try:
            while rest := os.read(terminal.fileno(), 4096):
                seen += rest
        except OSError:  # its end of the terminal is closed
            pass
    shown = seen.decode()
    assert "Traceback" not in shown
    assert (run if command == "runs" else "invoices:of-the-north ") in shown


def test_a_frame_of_jobs_reads_no_more_than_a_screen_shows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch of very many jobs must not read all of them every two seconds."""
    drawn = list[list[str]]()

    def once(draw: Callable[[], None]) -> NoReturn:
        terminal = Terminal()
        with redirect_stdout(terminal):
            draw()
        drawn.append(terminal.getvalue().splitlines())
        raise KeyboardInterrupt

    monkeypatch.setattr("solocron.cli.watching.watch", once)
    monkeypatch.setattr("solocron.cli.watching.refuse_without_terminal", lambda: None)
    monkeypatch.setenv("TERM", "dumb")
    for lines in ("2", "3"):
        monkeypatch.setenv("LINES", lines)
        assert main(["jobs", "--watch", "--store", shop.url]) == 130
    few, enough = drawn
    assert [line.split()[0] for line in few if line[0].isalpha()] == ["JOB", "broken", "invoices"]
    assert few[-1] == "... and more jobs"
    assert "... and more jobs" not in enough
