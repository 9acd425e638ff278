"""Where credentials come from besides the URL: a file that a secret is mounted as, or a command that prints one."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

from solocron.errors import ConfigurationError

__all__ = ["printed_by", "written_in"]

_PATIENCE = 5.0
"""Seconds that a command may take: a lease is renewed through the connection that waits for it."""
_SIZE = 64 * 1024


def written_in(file: str) -> str:
    """Return the URL in a file, without the line break at its end."""
    try:
        with Path(file).open(encoding="utf-8") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            text = opened.read(_SIZE).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(
            f"SOLOCRON_STORE_FILE={file!r:.200} cannot be read ({why}); nothing was opened."
        ) from None
    if mode & stat.S_IWOTH:  # that others may read it is said by the doctor: orchestrators mount secrets so
        raise ConfigurationError(
            f"SOLOCRON_STORE_FILE={file!r:.200} can be changed by every user of this machine, who could lead "
            f"this one to another store; nothing was opened. Run: chmod o-w {file}"
        )
    if not text:
        raise ConfigurationError(
            f"SOLOCRON_STORE_FILE={file!r:.200} is empty; nothing was opened. Put the store's URL into it."
        )
    return text


def printed_by(command: str) -> str:
    """Return what a command prints, without the line break at its end. No shell is involved; stderr is not shown."""
    try:
        argv = shlex.split(command)
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False)
        text = done.stdout.decode().rstrip("\r\n")
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        why = f"takes more than {_PATIENCE:g} s" if isinstance(error, subprocess.TimeoutExpired) else "cannot be run"
        raise ConfigurationError(f"SOLOCRON_PASSWORD_COMMAND {why}; nothing was opened. Try it in a shell.") from None
    if done.returncode or not text:
        why = f"exits with {done.returncode}" if done.returncode else "prints nothing"
        raise ConfigurationError(f"SOLOCRON_PASSWORD_COMMAND {why}; nothing was opened. Try it in a shell.")
    return text
