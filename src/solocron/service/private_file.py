"""Files with secrets: read only where no stranger can have read or replaced them.

Links are followed, because an orchestrator mounts a secret as one. Its group may read it, because a container's user
often reaches a mounted secret only through its group.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

from solocron.errors import ConfigurationError

__all__ = ["check_private", "identity_of", "open_private"]


def open_private(path: Path, *, what: str, untouched: str, mode: Literal["read", "append"] = "read") -> int:
    """Return a descriptor of the file, which `append` creates for its owner alone; raise if it cannot be trusted."""
    _check_link(path, what, untouched)
    flags = os.O_RDONLY if mode == "read" else os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(path, what, untouched, error) from None
    try:
        _check(path, os.fstat(descriptor), what, untouched)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_private(path: Path, *, what: str, untouched: str) -> None:
    """Refuse a file that cannot be trusted; nothing is read."""
    os.close(open_private(path, what=what, untouched=untouched))


def identity_of(path: Path, *, what: str, untouched: str) -> tuple[int, ...]:
    """Return what changes when the file, or the link to it, is replaced or written."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise _unusable(path, what, untouched, error) from None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _check_link(path: Path, what: str, untouched: str) -> None:
    try:
        owner = os.lstat(path).st_uid
    except OSError:
        return  # opening it says why
    if path.is_symlink() and owner not in (os.geteuid(), 0):
        raise ConfigurationError(
            f"the {what} {path} is a link of another user, who could redirect it. {untouched} "
            "Give the path of the file itself."
        )


def _check(path: Path, found: os.stat_result, what: str, untouched: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"the {what} {path} is not a file. {untouched}")
    if found.st_uid not in (os.geteuid(), 0):
        raise ConfigurationError(f"the {what} {path} belongs to another user. {untouched}")
    if found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise ConfigurationError(
            f"other users may use the {what} {path} (mode {stat.S_IMODE(found.st_mode):o}). {untouched} "
            f"Run: chmod 640 {path} (for a Kubernetes Secret: defaultMode: 0440)"
        )
    for folder in {path.absolute().parent, path.resolve().parent}:
        state = os.stat(folder).st_mode
        if state & stat.S_IWOTH and not state & stat.S_ISVTX:
            raise ConfigurationError(
                f"every user may write to the folder of {path}, so any of them could replace it. {untouched} "
                f"Run: chmod o-w {folder}"
            )


def _unusable(path: Path, what: str, untouched: str, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"the {what} {path} cannot be used ({error.strerror}). {untouched}")
