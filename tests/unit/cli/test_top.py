"""`solocron top`: one frame byte for byte, and the keys in a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pyte
import pytest

from solocron import Message, Run, Scheduler
from solocron.cli.keys import View
from solocron.stores.memory import World
from solocron.testing.fleet import wait_until
from tests.unit.cli.kit import Cli, Shop

SIZE = 30, 100
SOON = 60


def test_keys_filter_pause_and_end_it_in_a_terminal(tmp_path: Path) -> None:
    url, going = f"sqlite:///{tmp_path}/jobs.db", threading.Event()
    scheduler = Scheduler(url, enabled=True, node="the-node")

    @scheduler.every("365d", name="orders", timeout="5m")
    def orders(run: Run) -> None:
        run.progress(3, 40, "orders")
        going.wait(SOON)

    scheduler.every("365d", name="bills")(lambda: None)
    with scheduler:
        scheduler.trigger("orders")
        screen = pyte.Screen(SIZE[1], SIZE[0])
        stream = pyte.ByteStream(screen)
        fd, terminal = pty.openpty()
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        command = [sys.executable, "-m", "solocron", "top", "--store", url, "--every", "200ms"]
        top = subprocess.Popen(command, stdin=terminal, stdout=terminal, env={**os.environ, "TERM": "xterm"})
        os.close(terminal)

        def shows(pattern: str) -> None:
            def look() -> bool:
                while select.select([fd], [], [], 0)[0]:
                    stream.feed(os.read(fd, 65_536))
                return re.search(pattern, "\n".join(screen.display)) is not None

            wait_until(look, within=SOON, what=lambda: f"{pattern}\n" + "\n".join(screen.display))

        shows(r"the-node +live +1 of 32")
        shows(r"orders +\S+ \S+ +1 +the-node .* 5 m +3 of 40 orders")
        shows(r"bills +\d{4}-")
        os.write(fd, b"/ord\r")
        shows(r"\[jobs with 'ord'\]")
        shows(r"NEXT[^\n]*\n *orders [^\n]*\n *\n")
        os.write(fd, b"p")
        os.write(fd, b"q")
        going.set()
        try:
            assert top.wait(SOON) == 0
        finally:
            top.kill()
            os.close(fd)


def test_one_frame_has_no_escapes_and_is_the_same_twice(cli: Cli, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    now = shop.store.clock()
    monkeypatch.setattr(World, "now", lambda world: now)
    first, second = (cli("top", "--once", "--store", shop.url) for _ in range(2))
    assert first.code == 0
    assert "\x1b" not in first.out
    assert [line.split()[0] for line in first.lines if line and line.split()[0].isupper()] == [
        "NODE",
        "RUNNING",
        "NEXT",
    ]
    assert first.out == second.out


def test_each_carrier_has_a_line(cli: Cli, tmp_path: Path) -> None:
    """What its queue has, and what workers have picked up."""
    url, messages, going, begun = f"sqlite:///{tmp_path}/jobs.db", list[Message](), threading.Event(), threading.Event()

    class Queue:
        follows = True

        def publish(self, message: Message) -> None:
            messages.append(message)

    schedulers = [Scheduler(url, enabled=True, lease="30s") for _ in range(2)]
    for scheduler in schedulers:
        scheduler.carrier("queue", Queue())
        for name in ("one", "two"):
            scheduler.every("365d", name=name, run_in="queue")(lambda: (begun.set(), going.wait(SOON), None)[2])
    node, worker = schedulers
    node.tick()
    assert "CARRIER" not in cli("top", "--once", "--store", url).out, "nothing is under way"
    for name in ("one", "two"):
        node.trigger(name)
    node.tick()
    works = threading.Thread(target=worker.carry_out, args=(messages[0],))
    works.start()
    try:
        assert begun.wait(SOON)
        shown = cli("top", "--once", "--store", url).out
        assert re.search(r"CARRIER +IN ITS QUEUE +LONGEST WAIT +PICKED UP\n", shown), shown
        assert re.search(r"\n *queue +1 +[\d.]+ \S+ +1\n", shown), shown
    finally:
        going.set()
        works.join(SOON)
        for scheduler in schedulers:
            scheduler.stop("5s")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--every", "10ms"), "--every 10ms: give at least 0.2 s"),
        ((), "top draws on a terminal, and stdout or stdin is not one; use --once."),
    ],
)
def test_a_mistake_is_one_line(cli: Cli, shop: Shop, args: tuple[str, ...], why: str) -> None:
    answer = cli("top", *args, "--store", shop.url)
    assert answer.code == 2
    assert why in answer.err


def test_keys_change_the_view() -> None:
    view = View()
    assert all(view.press(key) for key in "/abx\x7f\r")
    assert (view.job, view.typing) == ("ab", False)
    assert view.press("s")
    assert view.press("p")
    assert (view.by_name, view.paused) == (True, True)
    assert view.said == "  [jobs with 'ab', paused: p goes on]"
    assert not view.press("q")
