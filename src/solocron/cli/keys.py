"""A view that is drawn until `q` is pressed: `p` pauses it, `s` sorts otherwise, `/` filters by the name of jobs."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solocron.cli.watching import watch

if TYPE_CHECKING:
    from solocron.views import HoldView

__all__ = ["View", "watch_with_keys"]

_ENTER, _ESCAPE, _DELETE = ("\r", "\n"), "\x1b", ("\x7f", "\b")


@dataclass(slots=True)
class View:
    """The jobs that are shown, and how."""

    job: str = ""
    """Part of the names of the jobs that are shown."""
    pool: str | None = None
    by_name: bool = False
    paused: bool = False
    typing: bool = False

    @property
    def said(self) -> str:
        """Return what a person has chosen, for the first line."""
        words = [f"jobs with {self.job!r}"] if self.job or self.typing else []
        words += ["paused: p goes on"] if self.paused else []
        return f"  [{', '.join(words)}]" if words else ""

    def place(self, run: HoldView) -> tuple[object, ...]:
        """Return by what running attempts are sorted: the oldest first, or by name."""
        return (run.job, run.run) if self.by_name else (run.claimed_at or run.slot, run.run)

    def press(self, key: str) -> bool:
        """Take a key; return False for the one that ends it."""
        if self.typing:
            if key in _ENTER or key == _ESCAPE:
                self.typing = False
            elif key in _DELETE:
                self.job = self.job[:-1]
            elif key.isprintable():
                self.job += key
            return True
        if key == "p":
            self.paused = not self.paused
        elif key == "s":
            self.by_name = not self.by_name
        elif key == "/":
            self.job, self.typing = "", True
        return key != "q"


class _Quit(Exception):
    """The key that ends the view."""


def watch_with_keys(draw: Callable[[], None], view: View, *, every: float) -> None:
    """Draw until `q` or Ctrl-C; a key is answered at once."""

    def wait(seconds: float) -> None:
        until = time.monotonic() + every
        while (left := until - time.monotonic()) > 0 or view.paused:
            ready, _, _ = select.select([sys.stdin], [], [], None if view.paused else left)
            if not ready:
                return
            pressed = os.read(sys.stdin.fileno(), 64).decode(errors="ignore")
            for key in pressed or "q":
                if not view.press(key):
                    raise _Quit
            if not view.paused:
                return

    with _keys_at_once():
        try:
            watch(draw, wait)
        except _Quit:
            return


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Give keys to the program as they are pressed, unseen, while the body runs."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    sys.stdout.write("\x1b[2J")
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
