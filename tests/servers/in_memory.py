"""Keep the temporary files of a test run in memory: databases, folders of tests, files of their processes.

A run waits for tens of thousands of syncs otherwise, two to four milliseconds each. The servers and SQLite keep the
settings of a durable store, and `kill -9` of a process loses nothing that is in memory. Only a power cut would, and no
test cuts the power. A test about a full or broken disk mounts its own.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 4 << 30
"""Bytes that must be free: two workers with a PostgreSQL and a MariaDB each use less than one GiB."""


def keep_temporary_files() -> None:
    """Point `TMPDIR` of this process and its children at memory, unless it is set, or memory is short."""
    if "TMPDIR" in os.environ or not is_suitable(MEMORY):
        return
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # computed before: pytest captures output in temporary files


def is_suitable(folder: Path) -> bool:
    """Return whether a folder is writable, large enough, and lets tests run the programs that they write."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= ENOUGH and not found.f_flag & os.ST_NOEXEC
