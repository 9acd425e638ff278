"""Show the demo: a live table on a terminal with rich, plain lines elsewhere, nothing for programs."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TextIO

from solocron.clock import from_us
from solocron.testing.fleet import Fleet, FleetVerdict, Line

__all__ = ["AttemptRow", "Screen", "make_screen", "rows_of", "sentences"]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt: its slot, its replica, and its state according to the ledger of the bodies."""

    job: str
    slot: str
    node: str
    attempt: int
    fence: int
    state: str

    @property
    def over(self) -> bool:
        return self.state not in ("running", "frozen")


def rows_of(lines: Sequence[Line], *, dead: frozenset[int], frozen: frozenset[int]) -> Iterator[AttemptRow]:
    """Return every attempt in the order of its start."""
    ends = {(line.run, line.fence, line.pid): line for line in lines if line.event != "start"}
    starts = [line for line in lines if line.event == "start"]
    latest = {line.run: max(other.fence for other in starts if other.run == line.run) for line in starts}
    begun = {(line.run, line.fence): line.at for line in starts}
    for line in starts:
        end = ends.get((line.run, line.fence, line.pid))
        superseded = latest[line.run] > line.fence
        if end is None:
            state = "killed" if line.pid in dead else "frozen" if line.pid in frozen else "running"
            state = "taken over" if superseded and state != "running" else state
        elif superseded and end.at > begun[line.run, latest[line.run]]:
            state = "refused: taken over"
        else:
            state = "done" if end.event == "end" else "failed"
        yield AttemptRow(line.job, f"{from_us(line.slot):%H:%M:%S}", line.node, line.attempt, line.fence, state)


def sentences(verdict: FleetVerdict, lease: float) -> list[tuple[str, str]]:
    """Return the verdict in words and figures."""
    took = "no replica died" if verdict.takeover_s is None else f"{verdict.takeover_s:.2f} s after the last renewal"
    return [
        ("slots due", str(verdict.slots)),
        ("run once", str(verdict.once)),
        ("run twice", str(verdict.twice)),
        ("lost", str(verdict.lost)),
        ("takeover", f"{took} (lease {lease:g} s)"),
        ("stale results refused", str(verdict.stale_refused)),
        ("verdict", "every slot ran once" if verdict.clean else "NOT as promised"),
        *(("", fault) for fault in verdict.faults[:20]),
    ]


class Screen:
    """Shows nothing: for programs, and the base of the other screens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the screen."""

    def say(self, text: str) -> None:
        """Show an event of a replica."""

    def show(self, fleet: Fleet) -> None:
        """Show the attempts."""

    def tell(self, verdict: FleetVerdict, lease: float) -> None:
        """Show the verdict."""

    @staticmethod
    def rows(fleet: Fleet) -> list[AttemptRow]:
        """Return every attempt so far."""
        dead = frozenset(replica.pid for replica in fleet.replicas if not replica.alive)
        frozen = frozenset(replica.pid for replica in fleet.replicas if replica.frozen)
        return list(rows_of(fleet.ledger.lines(), dead=dead, frozen=frozen))


class PlainScreen(Screen):
    """Prints one line for each attempt that is over, and for each event of a replica."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._since = time.monotonic()
        self._told: dict[tuple[str, int, str], str] = {}

    def say(self, text: str) -> None:
        self._print(f"* {text}")

    def show(self, fleet: Fleet) -> None:
        for row in self.rows(fleet):
            if row.over and self._told.get((row.job, row.fence, row.node)) != row.state:
                self._told[row.job, row.fence, row.node] = row.state
                facts = f"attempt {row.attempt}  fence {row.fence}  {row.state}"
                self._print(f"{row.job:<9} {row.slot}  {row.node:<10}  {facts}")

    def tell(self, verdict: FleetVerdict, lease: float) -> None:
        for name, value in sentences(verdict, lease):
            self._out.write(f"{name:>22}  {value}\n")
        self._out.flush()

    def _print(self, text: str) -> None:
        self._out.write(f"{time.monotonic() - self._since:5.1f} s  {text}\n")
        self._out.flush()


def make_screen(*, silent: bool) -> Screen:
    """Return the best screen for this terminal."""
    if silent:
        return Screen()
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        from solocron.demo.live import LiveScreen

        return LiveScreen()
    return PlainScreen(sys.stdout)
