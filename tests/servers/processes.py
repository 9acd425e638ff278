"""Looks at processes through /proc: a tree of them, whether one still lives, what this one holds open.

Where there is no /proc (macOS) a process has no visible children, and nothing is reported as held.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")


def birth(pid: int) -> str | None:
    """When a process began, in ticks since boot: with the pid, a name that is never used twice. None if it is gone."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal, and will go on with SIGCONT."""
    fields = _stat(pid)
    return fields is not None and fields[0] == "T"


def parent(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def children(pid: int) -> set[int]:
    """Living children of a process. Each thread has those that it started."""
    found: set[int] = set()
    try:
        threads = os.listdir(PROC / str(pid) / "task")
    except OSError:
        return found
    for thread in threads:
        try:
            listed = (PROC / str(pid) / "task" / thread / "children").read_text()
        except OSError:
            continue
        found.update(map(int, listed.split()))
    return {child for child in found if birth(child) is not None}


def tree(pid: int) -> list[int]:
    """A process and all its descendants, parents first."""
    found = [pid]
    for one in found:
        found.extend(child for child in sorted(children(one)) if child not in found)
    return found


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Signal each; one that is gone already is as good."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def wait_gone(pids: Iterable[int]) -> None:
    """Return when none of them lives; those that are not our children cannot be waited for otherwise."""
    nothing = threading.Event()
    for pid in pids:
        while birth(pid) is not None:
            nothing.wait(0.005)


def open_sockets() -> set[str]:
    """The sockets that this process holds, each by a name of its own."""
    found: set[str] = set()
    try:
        descriptors = os.listdir(PROC / "self" / "fd")
    except OSError:
        return found
    for descriptor in descriptors:
        try:
            target = os.readlink(PROC / "self" / "fd" / descriptor)
        except OSError:
            continue  # the one that listed the folder is closed by now
        if target.startswith("socket:"):
            found.add(target)
    return found


def command(pid: int) -> str:
    """How a process was called, for messages."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "ended"


def _stat(pid: int) -> list[str] | None:
    """The fields after the name, which may itself hold spaces and brackets: state, parent, ..."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
