"""`--watch`: draw a listing again and again in place, until Ctrl-C.

A frame is written at once, from the top of the screen, and cut to its height: nothing flickers and nothing scrolls. It
stays on the screen at the end. A store that is away is said below the last frame, and asked again.
"""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import NoReturn

from solocron.cli.tables import wrapped
from solocron.errors import InvalidError, StoreUnavailable
from solocron.printable import clean

__all__ = ["refuse_without_terminal", "watch"]

_EVERY = 2.0
"""Seconds between two frames."""
_TOP, _END_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


class _Frame(io.StringIO):
    """Takes what a listing prints for a terminal."""

    def isatty(self) -> bool:
        return True


def refuse_without_terminal() -> None:
    """Raise if stdout is not a terminal that can be drawn on."""
    if not sys.stdout.isatty():
        raise InvalidError("--watch draws on a terminal, and stdout is not one; nothing was read. Leave --watch out.")


def watch(draw: Callable[[], None], sleep: Callable[[float], None] = time.sleep) -> NoReturn:
    """Draw every two seconds what `draw` prints. Ctrl-C ends it, as it ends any command."""
    frame, below = _drawn(draw), list[str]()  # a mistake in the arguments is reported before anything is drawn
    while True:
        _show(frame, below)
        sleep(_EVERY)
        try:
            frame, below = _drawn(draw), []
        except StoreUnavailable as error:
            below = ["", *_said(error)]


def _drawn(draw: Callable[[], None]) -> list[str]:
    frame = _Frame()
    with redirect_stdout(frame):
        draw()
    return frame.getvalue().splitlines()


def _said(error: StoreUnavailable) -> list[str]:
    return wrapped(clean(f"{error} Asked again every {_EVERY:.0f} s."), shutil.get_terminal_size().columns)


def _show(frame: list[str], below: list[str]) -> None:
    room = max(shutil.get_terminal_size().lines - 1 - len(below), 2)
    if len(frame) > room:
        frame = [*frame[: room - 1], f"... {len(frame) - room + 1} more lines"]
    sys.stdout.write(_TOP + "".join(f"{line}{_END_OF_LINE}\n" for line in [*frame, *below]) + _BELOW)
    sys.stdout.flush()
