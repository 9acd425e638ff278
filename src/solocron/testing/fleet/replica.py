"""One process of a fleet, and the ways in which it can be hurt. Each of them is recorded with its boot time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solocron.clock import SystemClock
from solocron.testing.fleet.waiting import wait_until

__all__ = ["Incident", "Replica"]

_clock = SystemClock()
_PATIENCE = 30.0
"""Seconds for what the kernel does at once; the machine may be busy."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that was done to a replica: kill, freeze, thaw or term."""

    kind: str
    node: str
    pid: int
    at: float


class Replica:
    """A process of its own group with a log, its events, and a name that no other replica of the fleet has."""

    def __init__(
        self, node: str, process: subprocess.Popen[bytes], folder: Path, tell: Callable[[Incident], None]
    ) -> None:
        self.node = node
        self.process = process
        self.frozen = False
        self._folder = folder
        self._tell = tell

    def __repr__(self) -> str:
        state = "frozen" if self.frozen else "alive" if self.alive else f"ended with {self.process.returncode}"
        return f"<Replica {self.node} pid={self.pid} {state}>"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    # --- what it says

    def log(self) -> str:
        """Return what it has printed so far."""
        return (self._folder / f"{self.node}.log").read_text(errors="replace")

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return its events so far, all or those of one name, oldest first; each with its boot time as `at`."""
        path = self._folder / f"{self.node}.events"
        if not path.exists():
            return []
        whole = path.read_bytes().rpartition(b"\n")[0]
        found = map(json.loads, whole.splitlines())
        return [event for event in found if name in (None, event["event"])]

    def wait_event(self, name: str, *, within: float = _PATIENCE, after: float = 0.0) -> dict[str, Any]:
        """Wait for an event that happened after a boot time."""

        def look() -> dict[str, Any] | None:
            found = next((event for event in self.events(name) if event["at"] > after), None)
            if found is None and not self.alive:
                raise RuntimeError(f"{self!r} ended before {name!r}:\n{self.log()[-3000:]}")
            return found

        return wait_until(look, within=within, what=lambda: f"{name!r} of {self!r}:\n{self.log()[-3000:]}")

    # --- what is done to it

    def kill(self) -> None:
        """Kill it by kill -9, its children included; return when it is gone."""
        self._hurt("kill", signal.SIGKILL)
        self.process.wait(_PATIENCE)
        self.frozen = False

    def stop(self) -> None:
        """Send SIGSTOP; return when it stands still, in the middle of whatever it was doing."""
        self._hurt("freeze", signal.SIGSTOP)
        if self.alive and hasattr(os, "waitid"):  # macOS has none
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.frozen = True

    def thaw(self) -> None:
        """Send SIGCONT."""
        self._hurt("thaw", signal.SIGCONT)
        self.frozen = False

    def term(self) -> None:
        """Send SIGTERM: it drains."""
        self._hurt("term", signal.SIGTERM)

    def wait(self, within: float = _PATIENCE) -> int:
        """Wait until it has ended by itself; return its exit code."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self!r} did not end within {within:g} s:\n{self.log()[-3000:]}") from None

    def _hurt(self, kind: str, number: signal.Signals) -> None:
        if self.alive:
            self._tell(Incident(kind, self.node, self.pid, _clock.boot()))
            os.killpg(self.pid, number)
