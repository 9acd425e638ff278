"""Reports of the bodies themselves: one line when they start, one when they end. The engine never writes here.

Every process appends to a file of its own, one line by one write, so that nothing is lost or torn by kill -9 and no
process waits for another. Times are boot time, which all processes of a machine share and no clock step moves.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from solocron.clock import SystemClock, to_us
from solocron.errors import InvalidError
from solocron.runs.base import BaseRun

__all__ = ["FOLDER", "Ledger", "Line", "witness"]

FOLDER = "SOLOCRON_LEDGER"
"""The environment variable that names the ledger's folder."""

START, END, RAISED = "start", "end", "raised"
_clock = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One report of a body."""

    event: str
    """start, end (the body returned) or raised."""
    job: str
    run: str
    key: str
    """Names the slot: equal over attempts and nodes, different for every other slot or trigger."""
    slot: int
    attempt: int
    fence: int
    node: str
    pid: int
    at: float
    """Boot time, in seconds."""


@contextmanager
def witness(run: BaseRun) -> Iterator[None]:
    """Record that a body starts, and how it ends; for plain functions and coroutines alike."""
    _write(START, run)
    try:
        yield
    except BaseException:
        _write(RAISED, run)
        raise
    _write(END, run)


class Ledger:
    """Everything that the bodies have said so far, read as it grows. Every method may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mutex = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._lines: list[Line] = []
        self._read: dict[Path, int] = {}

    def poll(self) -> list[Line]:
        """Return what was said since the last call, in order of time."""
        with self._mutex:
            new: list[Line] = []
            for path in sorted(self.folder.glob("*.ledger")):
                with path.open("rb") as file:
                    file.seek(self._read.get(path, 0))
                    whole, newline, _ = file.read().rpartition(b"\n")
                self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)
                new += [Line(**json.loads(text)) for text in whole.splitlines()]
            new.sort(key=lambda line: line.at)
            self._lines += new
            return new

    def lines(self, job: str | None = None, event: str | None = None) -> list[Line]:
        """Return everything said by now, in order of time; of one job or one kind, if given."""
        self.poll()
        with self._mutex:
            lines = list(self._lines)
        found = (line for line in lines if job in (None, line.job) and event in (None, line.event))
        return sorted(found, key=lambda line: line.at)

    def open(self, job: str | None = None) -> list[Line]:
        """Return the starts whose bodies have not ended, dead ones included, newest last."""
        lines = self.lines(job)
        over = {(line.run, line.fence, line.pid) for line in lines if line.event != START}
        return [line for line in lines if line.event == START and (line.run, line.fence, line.pid) not in over]


_books: dict[tuple[str, int], int] = {}
"""The open file of a folder and a process; a fork gets one of its own."""


def _write(event: str, run: BaseRun) -> None:
    line = Line(
        event=event,
        job=run.job,
        run=run.id,
        key=run.key,
        slot=to_us(run.slot),
        attempt=run.attempt,
        fence=run.fence,
        node=run.node,
        pid=os.getpid(),
        at=_clock.boot(),
    )
    os.write(_book(), (json.dumps(asdict(line)) + "\n").encode())


def _book() -> int:
    folder = os.environ.get(FOLDER)
    if not folder:
        raise InvalidError(
            f"{FOLDER} names no folder, so there is no ledger to write to; start the fleet through `Fleet`."
        )
    here = (folder, os.getpid())
    if here not in _books:
        name = f"{os.getpid()}-{int(_clock.boot() * 1e6)}.ledger"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        _books[here] = os.open(Path(folder) / name, flags, 0o600)
    return _books[here]
