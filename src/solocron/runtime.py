"""The seam through which the engine gets threads, events, mutexes, randomness and time.

The engine imports no threading of its own: under the simulator the same loops run as greenlets on virtual time, because
everything that can wait, race or be random comes from here.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from solocron.clock import Clock, SystemClock

__all__ = ["Flag", "Rng", "Runtime", "Task", "Threads"]


def _failpoint(text: str | None) -> tuple[str, str, int] | None:
    """Parse `name:action` or `name:action:nth`; action is kill, stop (SIGSTOP), exit or raise."""
    if not text:
        return None
    name, _, rest = text.partition(":")
    action, _, nth = rest.partition(":")
    return name, action, int(nth or 1)


_FAILPOINT = _failpoint(os.environ.get("SOLOCRON_FAILPOINT"))
_reached: dict[str, int] = {}


def _reach(here: str, name: str, action: str, nth: int) -> None:
    if here != name:
        return
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] != nth:
        return
    if action == "raise":
        raise RuntimeError(f"failpoint {name}")
    if action == "exit":
        os._exit(70)
    os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)


class Flag(Protocol):
    """A flag that one side sets and another waits for."""

    def set(self) -> None: ...
    def clear(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Task(Protocol):
    """Something spawned; can be waited for."""

    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


class Rng(Protocol):
    """Randomness: ids that are never reused, and jitter."""

    def token(self) -> str:
        """Return a random 128-bit id in hexadecimal."""
        ...

    def uniform(self, low: float, high: float) -> float: ...


class Runtime(Protocol):
    """Everything of the outside world that a node needs besides its store and its dispatchers."""

    @property
    def clock(self) -> Clock: ...
    @property
    def rng(self) -> Rng: ...
    def spawn(self, body: Callable[[], None], name: str) -> Task: ...
    def event(self) -> Flag: ...
    def mutex(self) -> AbstractContextManager[object]: ...
    def process(self) -> int:
        """Return an id of the present process; a change of it means a fork."""
        ...

    def failpoint(self, name: str) -> None:
        """Mark a place where tests kill, freeze or break a node; does nothing in normal runs."""
        ...


class SystemRng:
    """Ids from the operating system's randomness, jitter from a private generator."""

    def __init__(self) -> None:
        self._random = random.Random()  # noqa: S311 - jitter, not a secret

    def token(self) -> str:
        return secrets.token_hex(16)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


class Threads:
    """The runtime of production: daemon threads and the machine's clock."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self.rng: Rng = SystemRng()

    def spawn(self, body: Callable[[], None], name: str) -> Task:
        thread = threading.Thread(target=body, name=name, daemon=True)
        thread.start()
        return thread

    def event(self) -> Flag:
        return threading.Event()

    def mutex(self) -> AbstractContextManager[object]:
        return threading.Lock()

    def process(self) -> int:
        return os.getpid()

    def failpoint(self, name: str) -> None:
        if _FAILPOINT is not None:
            _reach(name, *_FAILPOINT)
