"""Ends every server and deletes its folder when the process that started them is gone, even by kill -9.

One small process per test process, started with the first server. It reads lines from a pipe; when the pipe
ends it cleans up what is still on its list. It is a session of its own, so that Ctrl-C does not reach it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.servers import processes

_running: tuple[int, subprocess.Popen[str]] | None = None
"""The janitor and the process that it serves: a fork must not write into its parent's pipe."""


def pid() -> int | None:
    """The janitor of this process, if there is one."""
    return _running[1].pid if _running and _running[0] == os.getpid() else None


def watch(server: int, folder: Path) -> None:
    """From now on, this server and folder will not outlive us."""
    _tell(f"watch {server} {processes.birth(server)} {folder}")


def forget(folder: Path) -> None:
    """The folder has been cleaned up in the normal way."""
    _tell(f"forget {folder}")


def _tell(line: str) -> None:
    global _running
    if _running is None or _running[0] != os.getpid():
        # -S: without site-packages it starts in 10 ms.
        command = [sys.executable, "-S", __file__]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
        _running = (os.getpid(), process)
    pipe = _running[1].stdin
    assert pipe is not None
    pipe.write(line + "\n")
    pipe.flush()


def main() -> None:
    folders: dict[str, tuple[int, str]] = {}
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "watch":
            server, born, folder = rest.split(" ", 2)
            folders[folder] = (int(server), born)
        else:
            folders.pop(rest, None)
    for folder, (server, born) in folders.items():
        if str(processes.birth(server)) == born:  # else the number belongs to someone else by now
            pids = processes.tree(server)
            processes.send(signal.SIGKILL, pids)
            processes.wait_gone(pids)  # one that still writes would make its folder anew
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
