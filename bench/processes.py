"""Child processes of a measurement: each speaks JSON lines, and all of them end when the measurement does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "Child", "Children"]

ROOT = Path(__file__).resolve().parent.parent


class Child:
    """A process that says things."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> None:
        self.said: dict[str, Any] = {}
        self.process = subprocess.Popen(
            list(command),
            cwd=cwd,
            # Also where another copy is installed, the one beside these files is measured.
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
                "PYTHONUNBUFFERED": "1",
                **(env or {}),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._hear, daemon=True),
            threading.Thread(target=self._hear_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @classmethod
    def module(cls, name: str, orders: Mapping[str, Any], *, python: str = sys.executable) -> Child:
        return cls([python, "-m", name, json.dumps(orders)])

    @property
    def errors(self) -> str:
        return "".join(self._errors[-40:])

    def wait_for(self, key: str, within: float) -> Any:
        """Wait until it has said this."""
        wait_until(lambda: key in self.said or self.process.poll() is not None, within, f"{key}: {self.errors}")
        if key not in self.said:
            for thread in self._threads:
                thread.join(1)
        if key not in self.said:
            raise RuntimeError(f"a process ended with {self.process.returncode} before {key!r}:\n{self.errors}")
        return self.said[key]

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(f"a process is gone:\n{self.errors}") from None

    def count(self) -> dict[str, Any]:
        """Ask a node what it has sent so far, and for its processor time."""
        self.said.pop("counted", None)
        self.tell("count")
        self.wait_for("counted", 10)
        return {name: self.said.get(name) for name in ("counted", "sent", "cpu", "at")}

    def end(self, within: float = 60) -> dict[str, Any]:
        """Ask it to end; its last words."""
        self.tell()
        self.wait_for("over", within)
        self.process.wait(within)
        return self.said

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.said |= json.loads(line)

    def _hear_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)


class Children:
    """Several of them; none survives the `with`."""

    def __init__(self) -> None:
        self.all: list[Child] = []

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self.all:
            child.kill()

    def add(self, child: Child) -> Child:
        self.all.append(child)
        return child

    def total(self, key: str) -> int:
        return sum(child.said.get(key, 0) for child in self.all)


def wait_until(true: Callable[[], bool], within: float, what: str) -> None:
    """Look every few milliseconds; the bound of a scenario is kept here."""
    until = time.monotonic() + within
    while not true():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {within:g} s: {what}")
        time.sleep(0.01)
